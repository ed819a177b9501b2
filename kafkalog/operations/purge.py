"""Give the space of the files back that a run replaced; it cannot be undone any more."""

from __future__ import annotations

from pathlib import Path

from kafkalog.operations.earlier_run import PURGED, UndoResult, UndoRun, locked_run
from kafkalog.operations.run_history import Place, scratch_of
from kafkalog.operations.run_steps import Tell
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import drop_undo


def purge_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Remove what a run keeps: it cannot be undone any more. Raises as `locked_run`."""
    with locked_run(run_dir, run_id, files) as earlier:

        def drop(place: Place) -> UndoResult:
            freed = drop_undo(scratch_of(place, run_id), earlier.files)
            return UndoResult(place, PURGED, freed_bytes=freed)

        earlier.for_each(drop)
        earlier.drop_checkpoints(earlier.present)
    results = [earlier.results[place.path] for place in earlier.present]
    return earlier.finish("purged", results, tell)
