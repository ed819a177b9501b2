"""Undo a run: put back what it replaced.

The journal says which partitions a run planned to change; what it replaced is in the records in
those directories. Each partition is undone or refused by itself. The order keeps every state on
the way one a broker may start on: a cleaner checkpoint goes back before the segments do (cleaning
more than is due costs time only), a log start after them. What is kept goes when all of that is
done in a log dir: until then `undo` can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.errors import LogChangedError, describe_error, fault_text
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, LOG_START_OFFSET_FILE
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.log.metadata_records import has_metadata_records
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.earlier_run import (
    NOTHING,
    UNDONE,
    EarlierRun,
    UndoResult,
    UndoRun,
    failed_result,
    locked_run,
)
from kafkalog.operations.run_history import Changes, Place, scratch_of
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.runs.journal import read_events
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.interrupted_swap import resolve_interrupted_swap
from kafkalog.swap.journal import RESTORE
from kafkalog.swap.local_files import LocalFiles, list_names
from kafkalog.swap.replacement import Replacement, read_record
from kafkalog.swap.staged_directories import discard_staged
from kafkalog.swap.undo_swap import check_undo, end_undo, read_undo_record, undo_partition


def undo_run(
    run_dir: Path, run_id: str, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> UndoRun:
    """Put back what a run replaced, holding the locks of its log dirs. Raises as `locked_run`."""
    records: dict[str, Replacement | None] = {}
    with locked_run(run_dir, run_id, files) as earlier:
        files, changed = earlier.files, earlier.changed

        started = _started_since(earlier.present, run_id)

        def check(place: Place) -> None:
            scratch = scratch_of(place, run_id)
            records[place.path] = record = read_undo_record(scratch)
            if record is not None:
                if started is not None:
                    raise LogChangedError(
                        "a broker has been started since: what the run made are topics of its "
                        "cluster now, which are deleted there",
                        path=started,
                    )
                check_undo(scratch, record)

        # Each pass is over all partitions before the next begins, so that a state between two
        # passes is one that a broker may start on; see above.
        earlier.for_each(check)
        if earlier.stopped and any(map(_is_of_metadata, earlier.places)):
            earlier.for_each(_with_the_others)
        unsettled = _restore(changed, CLEANER_OFFSET_FILE, run_id, earlier.stopped, files)
        earlier.for_each(lambda place: _undo(place, run_id, records[place.path], files))
        unsettled |= _restore(changed, LOG_START_OFFSET_FILE, run_id, earlier.stopped, files)
        earlier.problems += unsettled.values()
        for place in earlier.present:
            is_undone = earlier.results[place.path].status in (UNDONE, NOTHING)
            if is_undone and place.log_dir not in unsettled:
                earlier.problems += _forget(place, run_id, records.get(place.path), files)
        if not earlier.stopped and not unsettled:
            earlier.drop_checkpoints(earlier.places)
        results = _in_order(earlier)
    return earlier.finish("undone", results, tell)


def _in_order(earlier: EarlierRun) -> list[UndoResult]:
    """The results, with one for each place that is no directory. What a restore that died has made
    beside such a place is removed.
    """
    ended = {
        str(event["path"]): str(event["status"])
        for event in read_events(earlier.run.path)
        if event.get("event") in ("ended", "undone") and "path" in event
    }
    log_dirs = sorted({place.log_dir for place in earlier.places})
    makes_directories = earlier.run.facts.get("kind") == RESTORE
    staged = discard_staged(log_dirs, earlier.files, earlier.run_id) if makes_directories else []
    results = []
    for place in earlier.places:
        status = ended.get(place.path)
        result = UndoResult(place, REFUSED, "there is no such directory any more")
        if makes_directories and status in (UNDONE, NOTHING):
            result = UndoResult(place, NOTHING, "it was undone before")
        elif makes_directories and status in (None, FAILED):
            result = UndoResult(place, NOTHING, "it had no place yet")
            if any(Path(path).parent == Path(place.log_dir) for path in staged):
                reason = "it had no place yet; what was made of it is removed"
                result = UndoResult(place, UNDONE, reason)
        results.append(earlier.results.get(place.path, result))
    return results


def _is_of_metadata(place: Place) -> bool:
    return place.path in (place.log_dir, str(Path(place.log_dir, METADATA_DIR)))


def _with_the_others(place: Place) -> UndoResult:
    """Topics that the metadata still has, without their directories, would begin anew, empty; nodes
    that begin with different metadata are no cluster.
    """
    return UndoResult(
        place, REFUSED, "another directory of the run cannot be put back: all of it, or nothing"
    )


def _started_since(places: Sequence[Place], run_id: str) -> str | None:
    """The metadata log that tells of a start since a run made partitions in fresh log dirs; None of
    any other run. Files alone do not tell: an idle topic's are after a stop as they were made.
    """
    found = [(place, read_record(scratch_of(place, run_id).undo_record)) for place in places]
    makes_partitions = any(
        not _is_of_metadata(place) and record is not None and record.made and not record.every_kept
        for place, record in found
    )
    directories = sorted({Path(place.log_dir, METADATA_DIR) for place in places})
    # A run that makes partitions makes metadata of them, in the log dir itself.
    if not makes_partitions or all(place.path != place.log_dir for place in places):
        return None
    return next((str(path) for path in directories if has_metadata_records(path)), None)


def _undo(place: Place, run_id: str, record: Replacement | None, files: LocalFiles) -> UndoResult:
    if record is None:
        return UndoResult(place, NOTHING, "nothing of it is kept")
    try:
        undo_partition(scratch_of(place, run_id), record, files)
    except Exception as error:
        return _given_up(place, failed_result(place, error), files)
    return UndoResult(place, UNDONE, files=len(record.every_kept) + (record.cut is not None))


def _forget(
    place: Place, run_id: str, record: Replacement | None, files: LocalFiles
) -> Iterator[str]:
    """Drop what is kept of a partition that is undone; why not, if it cannot be."""
    try:
        if record is not None:
            end_undo(scratch_of(place, run_id), record, files)
        # A directory that the run made: no partition is without a file.
        if place.path != place.log_dir and not list_names(place.path):
            files.remove_directory(place.path)
    except OSError as error:
        why = describe_error(error, place.path)
        yield f"{place.topic_partition}: undone, but what was kept is there still: {why}"


def _given_up(place: Place, failed: UndoResult, files: LocalFiles) -> UndoResult:
    """The same after each group that was on its way back is back, or is not: a partition is never
    left in between. Undo can be repeated.
    """
    try:
        resolved = resolve_interrupted_swap(place.path, files)
    except Exception as error:
        why = describe_error(error, place.path)
        reason = f"{failed.reason}; cleaning up failed as well: {why}"
        return replace(failed, reason=reason, fault=failed.fault or fault_text(error))
    if not resolved:
        return failed
    return replace(failed, reason=f"{failed.reason} (interrupted: {'; '.join(resolved)})")


def _restore(
    changed: Changes,
    file_name: str,
    run_id: str,
    stopped: Iterable[tuple[str, TopicPartition]],
    files: LocalFiles,
) -> dict[str, str]:
    """Give the lines of a checkpoint back but for partitions that stay as they are. Why not, by log
    dir, where it failed.
    """
    without = {(log_dir, name.topic, name.partition) for log_dir, name in stopped}
    failed = {}
    for (log_dir, name), lines in changed.items():
        if name != file_name:
            continue
        back = {key: line for key, line in lines.items() if (log_dir, *key) not in without}
        try:
            CheckpointFile(log_dir, name, files).restore(run_id, back)
        except Exception as error:
            why = describe_error(error, log_dir)
            failed[log_dir] = f"{log_dir}: {name} was not put back: {why}"
    return failed
