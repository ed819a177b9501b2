"""Give the space of the files back that a run replaced; it cannot be undone any more."""

from __future__ import annotations

from pathlib import Path

from kafkalog.operations.run_history import log_dirs_of, open_history, scratch_of
from kafkalog.operations.run_steps import Tell, lock_log_dirs
from kafkalog.operations.undo import (
    PURGED,
    UndoResult,
    UndoRun,
    describe_result,
    drop_checkpoints,
    failed_result,
    note_results,
)
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.partition_lock import wait_for_other_runs
from kafkalog.swap.replacement import drop_undo


def purge_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Remove what a run keeps: it cannot be undone any more. Raises as `undo_run`."""
    files = files or LocalFiles()
    run, places, changed = open_history(run_dir, run_id)
    results: list[UndoResult] = []
    resolved: list[str] = []
    present = [place for place in places if Path(place.path).is_dir()]
    with lock_log_dirs(log_dirs_of(run, present), [place.path for place in present]):
        for place in present:
            wait_for_other_runs(place.path)
            try:
                done = resolve_interrupted_swap(place.path, files)
                resolved += (f"{place.topic_partition}: {line}" for line in done)
                freed = drop_undo(scratch_of(place, run_id), files)
                results.append(UndoResult(place, PURGED, freed_bytes=freed))
            except Exception as error:
                results.append(failed_result(place, error))
        problems = drop_checkpoints(changed, present, run_id, files)
    problems += note_results(run, "purged", results)
    for line in (*resolved, *problems, *map(describe_result, results)):
        tell(line)
    return UndoRun(run_id, tuple(results), tuple(resolved), tuple(problems))
