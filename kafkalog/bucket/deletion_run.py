"""`bucket --apply`: the objects of the delete list are deleted, each looked at once more right
before.

A segment is one step: what it was when it was judged is what it must be now, objects that were
missing included. The journal has its objects, forced to disk, before the first of them goes, and
how it ended. What is cut off is taken up by the next look: objects that are left are judged anew.

Where the store keeps versions of what is deleted `undo` puts them back; where it does not they go
only if that was asked for. One segment goes after the other: nobody waits for them, and brokers use
the store as well.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafkalog import __version__
from kafkalog.bucket.deletion_records import DeletionRecords
from kafkalog.bucket.judgement import Deletion
from kafkalog.clock import now_ms
from kafkalog.errors import KafkaLogError, LogChangedError, describe_error
from kafkalog.planning.statuses import FAILED, LEFT, REFUSED
from kafkalog.remote.stored_segments import StoredSegment, every_path
from kafkalog.remote.stores import StoredObject, store_of
from kafkalog.runs.journal import append_events
from kafkalog.runs.run_dir import Run, begin_run, finish_run, new_run_id
from kafkalog.texts import format_count

KIND: Final = "bucket-deletions"
DELETED: Final = "deleted"
# What a store that others use is asked for at most, and when it is left alone.
OBJECTS_PER_SECOND = 100
_MOST_FAILURES = 3

NO_VERSIONS = "its store keeps no versions: it cannot be undone (--no-undo deletes it all the same)"

# An object, and by which version id its store keeps it; empty where it does not.
Versioned = tuple[StoredObject, str]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What became of a segment: `deleted`, `refused`, `failed`, or `left` behind others that
    failed."""

    deletion: Deletion
    status: str
    reason: str = ""
    objects_count: int = 0
    size_in_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeletionRun:
    """run_id: of its journal, None where nothing was to be deleted; run_dir: where that is kept."""

    run_id: str | None
    results: tuple[DeletionResult, ...]
    keeps_undo: bool
    run_dir: Path | None = None

    @property
    def is_done(self) -> bool:
        """Whether all of the list is gone."""
        return all(result.status == DELETED for result in self.results)


def delete_segments(
    deletions: Sequence[Deletion],
    run_dir: Path,
    options: dict[str, Any],
    *,
    keeps_undo: bool,
    tell: Tell,
    bytes_per_second: float | None = None,
    records: DeletionRecords | None = None,
) -> DeletionRun:
    """Delete the objects of these segments, no more than so many bytes of them a second; `records`:
    where `__remote_log_metadata` is told. OSError where the journal cannot be written: nothing is
    deleted then that it does not have."""
    if not deletions and (records is None or not records.without_objects):
        return DeletionRun(None, (), keeps_undo)
    run_id = new_run_id()
    run = begin_run(
        run_dir, run_id, KIND, version=__version__, started_ms=now_ms(), options=options
    )
    tell(f"run {run_id}: {format_count(len(deletions), 'segment')} to delete")
    results: list[DeletionResult] = []
    if records is not None:
        # What has begun cannot be taken back in the topic, so what is refused does not begin.
        results = [r for each in deletions if (r := _refused(each, keeps_undo=keeps_undo))]
        refused = [result.deletion for result in results]
        deletions = [each for each in deletions if each not in refused]
        records.begin(run.path, _ids(deletions))
    failures = 0
    for deletion in deletions:
        if failures >= _MOST_FAILURES:
            why = f"not begun: the {failures} before it failed"
            results.append(DeletionResult(deletion, LEFT, why))
            continue
        result = _delete(run, deletion, keeps_undo=keeps_undo, bytes_per_second=bytes_per_second)
        failures = failures + 1 if result.status == FAILED else 0
        results.append(result)
    if records is not None:
        records.end(run.path, _ids(r.deletion for r in results if r.status == DELETED))
    counts = Counter(result.status for result in results)
    finish_run(run, finished_ms=now_ms(), facts={"segments": dict(counts)})
    return DeletionRun(run_id, tuple(results), keeps_undo, run_dir)


def _delete(
    run: Run, deletion: Deletion, *, keeps_undo: bool, bytes_per_second: float | None
) -> DeletionResult:
    segment = deletion.segment
    gone: list[StoredObject] = []
    try:
        present = _checked(segment, keeps_undo=keeps_undo)
        append_events(run.path, [_event(deletion, present)], at_ms=now_ms())
        for stored, version_id in present:
            started = time.monotonic()
            _remove(stored, version_id, keeps_undo=keeps_undo)
            gone.append(stored)
            _wait(started, stored.size, bytes_per_second)
        result = DeletionResult(deletion, DELETED)
    except LogChangedError as error:
        result = DeletionResult(deletion, REFUSED, str(error))
    except (KafkaLogError, OSError) as error:
        result = DeletionResult(deletion, FAILED, describe_error(error, segment.place))
    size = sum(stored.size for stored in gone)
    result = DeletionResult(deletion, result.status, result.reason, len(gone), size)
    append_events(run.path, [_ended(result)], at_ms=now_ms(), syncs=False)
    return result


def _ids(deletions: Iterable[Deletion]) -> list[str]:
    return [each.segment.segment_id for each in deletions if each.segment.segment_id is not None]


def _refused(deletion: Deletion, *, keeps_undo: bool) -> DeletionResult | None:
    """The result of a segment that may not be deleted as things are; None of another."""
    try:
        _checked(deletion.segment, keeps_undo=keeps_undo)
    except LogChangedError as error:
        return DeletionResult(deletion, REFUSED, str(error))
    except (KafkaLogError, OSError) as error:
        return DeletionResult(deletion, FAILED, describe_error(error, deletion.segment.place))
    return None


def _checked(segment: StoredSegment, *, keeps_undo: bool) -> list[Versioned]:
    """As `_still_the_same`; LogChangedError also where it could not be undone and has to."""
    present = _still_the_same(segment)
    if keeps_undo and not _are_kept(present):
        raise LogChangedError(NO_VERSIONS, path=segment.place)
    return present


def _still_the_same(segment: StoredSegment) -> list[Versioned]:
    """Its objects that are there, the one that readers look for first: a segment without a manifest
    is none. LogChangedError if one is another now, or one that was missing is there."""
    known = {stored.path: stored for _, stored in segment.objects}
    present = []
    for path in every_path(segment):
        with suppress(FileNotFoundError):
            (now, version_id), before = store_of(path).look_at_version(path), known.get(path)
            if before is None:
                raise LogChangedError("it was not there when its segment was judged", path=path)
            if not _is_same(now, before):
                raise LogChangedError("changed since its segment was judged", path=path)
            present.append((now, version_id))
    return present


def _are_kept(present: Iterable[Versioned]) -> bool:
    """Whether their store keeps what is deleted. OSError."""
    return all(
        version_id and store_of(stored.path).keeps_versions(stored.path.rpartition("/")[0])
        for stored, version_id in present
    )


def _is_same(now: StoredObject, before: StoredObject) -> bool:
    """Of a bucket the ETag tells; times have a second there, or a thousandth."""
    if before.tag:
        return (now.tag, now.size) == (before.tag, before.size)
    return now == before


def _remove(stored: StoredObject, version_id: str, *, keeps_undo: bool) -> None:
    """One object, if it is the one that was looked at."""
    store = store_of(stored.path)
    now, version_now = store.look_at_version(stored.path)
    if not _is_same(now, stored) or version_now != version_id:
        raise LogChangedError("changed while its segment was deleted", path=stored.path)
    store.remove(stored.path)
    if keeps_undo and not store.has_version(stored.path, version_id):
        raise OSError(5, f"the store did not keep version {version_id}, as it keeps others")


def _wait(started: float, size: int, bytes_per_second: float | None) -> None:
    """For what an object of this size is worth, since then."""
    worth = 1 / OBJECTS_PER_SECOND
    if bytes_per_second is not None:
        worth = max(worth, size / bytes_per_second)
    time.sleep(max(0.0, worth - (time.monotonic() - started)))


def _event(deletion: Deletion, present: Iterable[Versioned]) -> dict[str, Any]:
    return {
        "event": "deleting",
        "topic": deletion.topic,
        "partition": deletion.segment.partition,
        "path": deletion.segment.place,
        "segmentId": deletion.segment.segment_id,
        "kind": deletion.kind,
        "objects": [
            {
                "path": stored.path,
                "size": stored.size,
                "mtimeNs": stored.mtime_ns,
                "tag": stored.tag,
                "versionId": version_id,
            }
            for stored, version_id in present
        ],
    }


def _ended(result: DeletionResult) -> dict[str, Any]:
    return {
        "event": "ended",
        "topic": result.deletion.topic,
        "partition": result.deletion.segment.partition,
        "path": result.deletion.segment.place,
        "status": result.status,
        "reason": result.reason,
    }
