"""`undo` of a run that deleted objects: each version that the store kept is an object again.

What was deleted stands in the run's journal. The bytes go through this machine, since a store's
copy of a version by itself is not what all of them can do; the object is a new version then, and
as old as that. One that is there again is left alone. What the run wrote into
`__remote_log_metadata` goes first: where it cannot go no object comes back, for the topic would
still have it as deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kafkalog.bucket.deletion_records import take_records_back
from kafkalog.bucket.deletion_run import KIND
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError, KafkaLogError, LogChangedError, describe_error
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.remote.stores import store_of
from kafkalog.runs.journal import append_events, read_events
from kafkalog.runs.run_dir import open_run

UNDONE: Final = "undone"
NOTHING: Final = "nothing"
_BACK = "undone", UNDONE


@dataclass(frozen=True, slots=True)
class UndoneSegment:
    """A segment of the run: `undone`, `nothing` (nothing of it was deleted), `refused` (no version,
    or another object is there) or `failed`; objects_count: that came back."""

    topic: str
    partition: int
    place: str
    status: str
    reason: str = ""
    objects_count: int = 0


def undo_deletions(run_dir: Path, run_id: str) -> list[UndoneSegment]:
    """Put back what a run deleted, as far as it is gone. It may be done again. InvalidConfigError
    for a run that deleted no objects, LogDirLockedError where a broker runs on a log dir whose
    records it wrote, OSError where its journal cannot be written."""
    run = open_run(run_dir, run_id)
    if run.facts.get("kind") != KIND:
        raise InvalidConfigError(f"run {run_id} is of {run.facts.get('kind')}, not of {KIND}")
    events = list(read_events(run.path))
    stays: KafkaLogError | OSError | None = None
    try:
        take_records_back(events)
    except (LogChangedError, OSError) as error:
        stays = error
    # A store may give what came back another ETag.
    done = {e.get("path") for e in events if (e.get("event"), e.get("status")) == _BACK}
    results = []
    for event in events:
        if event.get("event") == "deleting" and event.get("path") not in done:
            result = _undo(event, stays)
            results.append(result)
            append_events(run.path, [_undone(result)], at_ms=now_ms(), syncs=False)
    return results


def _undo(event: Mapping[str, Any], stays: KafkaLogError | OSError | None) -> UndoneSegment:
    try:
        place = str(event["topic"]), int(event["partition"]), str(event["path"])
        # The manifest was the first to go: it comes last.
        objects = [
            (str(each["path"]), int(each["size"]), str(each["tag"]), str(each["versionId"]))
            for each in reversed(event["objects"])
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidConfigError(f"the journal cannot be understood: {error!r}") from None
    if stays is not None:
        return UndoneSegment(*place, REFUSED, describe_error(stays, place[2]))
    count = 0
    try:
        for each in objects:
            count += _put_back(*each)
    except (FileExistsError, FileNotFoundError) as error:
        return UndoneSegment(*place, REFUSED, describe_error(error, place[2]), count)
    except (KafkaLogError, OSError) as error:
        return UndoneSegment(*place, FAILED, describe_error(error, place[2]), count)
    return UndoneSegment(*place, UNDONE if count else NOTHING, "", count)


def _put_back(path: str, size: int, tag: str, version_id: str) -> int:
    """Whether it came back, as 1; 0 where it is there as it was."""
    store = store_of(path)
    try:
        now = store.look(path)
    except FileNotFoundError:
        pass
    else:
        if now.size == size and (not tag or now.tag == tag):
            return 0
        raise FileExistsError(17, "another object is there now", path)
    if not version_id:
        raise FileNotFoundError(2, "the store kept no version of it", path)
    store.put_back(path, version_id)
    back = store.look(path)
    if back.size != size:
        raise OSError(5, f"{back.size} bytes came back of {size}", path)
    return 1


def _undone(result: UndoneSegment) -> dict[str, Any]:
    return {
        "event": "undone",
        "topic": result.topic,
        "partition": result.partition,
        "path": result.place,
        "status": result.status,
        "reason": result.reason,
    }
