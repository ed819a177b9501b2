"""A run that writes new segments beside the log dirs (`--output`): plan, write, manifest, script.

It only reads log dirs, so it takes no lock and changes nothing there, leftovers of interrupted
swaps included. A partition that changes meanwhile is a failure by name and leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafkalog import __version__
from kafkalog.clock import now_ms
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.log.pace import paced
from kafkalog.operations.clean_result import WRITTEN, CleanResult, failed_result, place_of
from kafkalog.operations.compact import (
    CompactionRun,
    Executor,
    checkpoint_lines,
    corrupt_kept,
    describe_result,
    in_order,
    new_clean_run,
    plan_all,
)
from kafkalog.operations.frame import results_of
from kafkalog.operations.run_steps import Problems, Tell
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.runs.durable import make_directories
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.output_dir import FileDigest, check_output
from kafkalog.swap.swap_script import SCRIPT_FILE, LinesOfLogDir, SwapOfPartition, swap_script

MANIFEST_FILE = "compaction.json"
# Manifests of another version are of another shape.
SCHEMA = 1


def output_run(
    request: CompactionRequest,
    execute: Executor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> CompactionRun:
    """Plan, and write what would replace the sources to `request.output`.

    Raises InvalidConfigError for a place that is not new or empty, or inside a log dir.
    """
    assert request.output is not None, "asked for"  # noqa: S101
    output, started = Path(request.output).absolute(), time.monotonic()
    with paced(request.max_bytes_per_second):
        found = request.open_all()
        selected = request.select(found)
        check_output(output, [each.path for each in selected], [each.log_dir for each in found])
        settings = request.read_settings(found)
        run_id = new_run_id()
        planned = plan_all(request, run_id, selected, settings)
        make_directories(output, exist_ok=True)
        run = replace(new_clean_run(request, run_id), output=str(output))
        problems = Problems()
        problems.add(planned)
        places = {_key_of(plan): output / Path(plan.path).name for plan in planned.plans}
        results: list[CleanResult] = []
        chosen = in_order(planned.plans, request)
        coming = results_of(chosen, execute(chosen, run), failed_result)
        try:
            with closing(coming):
                for plan, result in coming:
                    results.append(_found_again(result, places[_key_of(plan)]))
                    tell(describe_result(results[-1]))
        finally:
            _tidy(places, planned.plans, results, files or LocalFiles())
        _write_manifest(planned, results, output, files or LocalFiles())
    problems.add_faults((f"{result.topic}-{result.partition}", result.fault) for result in results)
    return replace(
        planned,
        output=str(output),
        results=tuple(results),
        problems=(*problems.texts, *corrupt_kept(results)),
        faults=tuple(problems.faults),
        estimate=planned.estimate and planned.estimate.taken(time.monotonic() - started),
    )


def _key_of(plan: CompactionPlan) -> tuple[str, str]:
    return plan.log_dir, str(plan.topic_partition)


def _found_again(result: CleanResult, directory: Path) -> CleanResult:
    """The result, failed if its files are not in this host's output."""
    for file in (file for group in result.written for file in group.files):
        path = directory / file.name
        if not path.is_file() or path.stat().st_size != file.size:
            reason = (
                f"{path}: not the file that was written: the output must be one directory for all "
                "hosts"
            )
            return replace(result, status=FAILED, reason=reason, next_dirty_offset=None, written=())
    return result


def _tidy(
    places: dict[tuple[str, str], Path],
    plans: Sequence[CompactionPlan],
    results: Sequence[CleanResult],
    files: LocalFiles,
) -> None:
    """Leave what was written well, and nothing else."""
    wanted = {
        str(places[place_of(result)] / file.name)
        for result in results
        for group in result.written
        for file in group.files
    }
    for plan in plans:
        directory = places[_key_of(plan)]
        if plan.status != CLEAN or not directory.is_dir():
            continue
        paths = [path_in(str(directory), name) for name in list_names(str(directory))]
        for path in paths:
            if path not in wanted:
                files.remove(path)
        if not wanted.intersection(paths):
            directory.rmdir()


def _write_manifest(
    planned: CompactionRun, results: Sequence[CleanResult], output: Path, files: LocalFiles
) -> None:
    plans = {_key_of(plan): plan for plan in planned.plans}
    done = [(plans[place_of(result)], result) for result in results if result.status == WRITTEN]
    changes = checkpoint_lines(planned.plans, results)
    lines = [
        LinesOfLogDir(
            str(Path(log_dir).absolute()),
            tuple((topic, number, offset) for (topic, number), offset in sorted(entries.items())),
        )
        for log_dir, entries in sorted(changes.items())
    ]
    manifest = {
        "schema": SCHEMA,
        "runId": planned.run_id,
        "version": __version__,
        "writtenMs": now_ms(),
        "script": SCRIPT_FILE,
        "partitions": [_partition(plan, result) for plan, result in done],
        "checkpoints": [
            {
                "logDir": each.log_dir,
                "file": CLEANER_OFFSET_FILE,
                "lines": [
                    {"topic": topic, "partition": number, "offset": offset}
                    for topic, number, offset in each.lines
                ],
            }
            for each in lines
        ],
    }
    script = swap_script(
        planned.run_id,
        [
            SwapOfPartition(
                str(Path(plan.path).absolute()), f"./{Path(plan.path).name}", result.written
            )
            for plan, result in done
        ],
        lines,
    )
    _write(output / SCRIPT_FILE, script, files)
    os.chmod(output / SCRIPT_FILE, 0o755)  # noqa: PTH101 (beside the file operations)
    _write(output / MANIFEST_FILE, json.dumps(manifest, indent=2).encode() + b"\n", files)


def _write(path: Path, data: bytes, files: LocalFiles) -> None:
    files.replace_contents(str(path), data, f"{path}.tmp")


def _partition(plan: CompactionPlan, result: CleanResult) -> dict[str, Any]:
    return {
        "topic": result.topic,
        "partition": result.partition,
        "path": str(Path(plan.path).absolute()),
        "logDir": str(Path(plan.log_dir).absolute()),
        "directory": Path(plan.path).name,
        "nextDirtyOffset": result.next_dirty_offset,
        "groups": [
            {
                "baseOffset": group.base_offset,
                "replaces": list(group.replaces),
                "sources": _digests(group.sources),
                "producerSnapshots": _digests(group.snapshots),
                "files": _digests(group.files),
            }
            for group in result.written
        ],
    }


def _digests(files: Sequence[FileDigest]) -> list[dict[str, Any]]:
    return [{"name": file.name, "sizeInBytes": file.size, "sha256": file.sha256} for file in files]
