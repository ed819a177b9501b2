"""What a verify run keeps for the next one: a line of JSON a segment, in `segments.jsonl` of its
run directory.

A line is a SegmentReport: who the segment and its indexes were (size, modification time in ns and
inode of each file), what was found, and the facts its neighbours are compared by. A later run takes
it over where all of them are the same. Records of another version of kafkalog are not used: its
checks may differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkalog import __version__
from kafkalog.checking.segment import GONE
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.errors import InvalidConfigError
from kafkalog.runs.run_dir import begin_run, find_run, finish_run

KIND = "verify"
SEGMENTS_FILE = "segments.jsonl"


def read_known_reports(run_dir: Path, run_id: str) -> dict[SegmentTask, SegmentReport]:
    """The reports of a run by what was checked; none of a run of another version.

    InvalidConfigError if there is no such run, or its records cannot be read.
    """
    run = find_run(run_dir, run_id, KIND)
    if run.facts.get("version") != __version__:
        return {}
    path = run.path / SEGMENTS_FILE
    try:
        return {report.task: report for report in _read(path)}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidConfigError(f"the run cannot be read: {error}", path=str(path)) from None


def _read(path: Path) -> Iterator[SegmentReport]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield SegmentReport.from_json(json.loads(line))


def write_run(
    run_dir: Path,
    run_id: str,
    reports: Iterable[SegmentReport],
    *,
    started_ms: int,
    finished_ms: int,
    options: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> None:
    """Keep a run. OSError where that cannot be done."""
    run = begin_run(
        run_dir, run_id, KIND, version=__version__, started_ms=started_ms, options=options
    )
    with (run.path / SEGMENTS_FILE).open("w", encoding="utf-8") as file:
        for report in reports:
            if report.tail != GONE:
                file.write(json.dumps(report.to_json(), separators=(",", ":")) + "\n")
    finish_run(run, finished_ms=finished_ms, facts=facts)
