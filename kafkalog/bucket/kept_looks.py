"""What deep looks found, kept as they go on: a line of JSON a segment, in `segments.jsonl` of the
run's directory.

A run that is cut off leaves what it had: the next one names it, and looks at the rest. A report
counts where the segment's objects have the same sizes, times and ETags. Reports of another version
of kafkalog do not: its checks may differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkalog import __version__
from kafkalog.checking.run_records import SEGMENTS_FILE
from kafkalog.checking.segment import GONE
from kafkalog.checking.segment_report import SegmentReport
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.runs.run_dir import begin_run, finish_run, open_run

KIND = "bucket"

Keep = Callable[[SegmentReport], None]


def read_kept(run_dir: Path, run_id: str) -> dict[str, SegmentReport]:
    """By the path of the `.log`, of a run that may have been cut off. InvalidConfigError if there
    is no such run, or its reports cannot be read."""
    run = open_run(run_dir, run_id)
    if run.facts.get("kind") != KIND:
        raise InvalidConfigError(f"run {run_id} is of {run.facts.get('kind')}, not of {KIND}")
    if run.facts.get("version") != __version__:
        return {}
    path = run.path / SEGMENTS_FILE
    found = {}
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break  # the line that was being written when the run was cut off
                report = SegmentReport.from_json(json.loads(line))
                found[report.task.path] = report
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidConfigError(f"the run cannot be read: {error}", path=str(path)) from None
    return found


@contextmanager
def keeping(run_dir: Path, run_id: str, options: Mapping[str, Any]) -> Iterator[Keep]:
    """Within, reports are kept as they come. OSError where that cannot be done."""
    run = begin_run(
        run_dir, run_id, KIND, version=__version__, started_ms=now_ms(), options=options
    )
    count = 0
    with (run.path / SEGMENTS_FILE).open("w", encoding="utf-8") as file:

        def keep(report: SegmentReport) -> None:
            nonlocal count
            if report.tail != GONE:
                file.write(json.dumps(report.to_json(), separators=(",", ":")) + "\n")
                file.flush()
                count += 1

        yield keep
    finish_run(run, finished_ms=now_ms(), facts={"segments": count})
