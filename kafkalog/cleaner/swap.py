"""Putting verified segments in place of their sources, in the order Kafka's own cleaner does.

Per partition, once every group is written, synced and verified:

    1  the swap record is written and synced (which outputs replace which sources)
    2  the outputs of other attempts are removed

then group by group, in offset order:

    3  scratch names → `.cleaned`         a loader that finds one undoes the group
    4  `.cleaned` → `.swap`, log first    no `.cleaned` and a `.swap`: a loader completes the group
       directory synced                   from here on the group is new
    5  sources → `.deleted`, ascending    log, index, timeindex, txnindex where there is one
    6  `.swap` → final name, log first
       directory synced
    7  `.deleted` removed, and snapshots at base offsets that are no segments any more

last:

    8  the done record is written, the swap record removed

Dying between two groups leaves some groups new and the others old, which is a valid log. Dying
inside a group leaves what a broker's loader finishes or undoes by itself. `recover_partition` does
the same as the loader and better: the loader drops only the sources that start below the swapped
segment's last offset, so when trailing sources lost all their batches it leaves them; the swap
record names them. Sources go in ascending order so that no value outlives the tombstone behind it.

Source: Kafka LocalLog.replaceSegments, LogLoader.removeTempFilesAndCollectSwapFiles and
minSwapFileOffset.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaner.local_files import LocalFiles, list_names, path_in
from kafkalog.cleaner.output_segment import OutputFile
from kafkalog.cleaner.scratch import Scratch, is_turn
from kafkalog.errors import LogDirLockedError
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    LogFileKind,
    log_file_name,
    producer_snapshot_file_name,
)
from kafkalog.log.inventory import JsonFacts

# A swap renames a few files; one that takes longer than this hangs.
MAX_WAIT_FOR_TURN_S = 60.0

# The files of a segment that a swap moves, in Kafka's order: the `.log` first.
SEGMENT_KINDS = (
    LogFileKind.LOG,
    LogFileKind.OFFSET_INDEX,
    LogFileKind.TIME_INDEX,
    LogFileKind.TRANSACTION_INDEX,
)


@dataclass(frozen=True, slots=True)
class SwapGroup(JsonFacts):
    """The new segment's base offset, the base offsets of the segments it replaces, its own among
    them, and what is in it: a record that was left behind must not name the sources of a `.swap`
    that a broker made since.
    """

    base_offset: int
    sources: tuple[int, ...]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SwapRecord(JsonFacts):
    """What is written beside the log before a swap begins."""

    run_id: str
    groups: tuple[SwapGroup, ...]


@dataclass(frozen=True, slots=True)
class FinishedGroup:
    """A verified group, ready to be swapped in."""

    group: SwapGroup
    outputs: tuple[OutputFile, ...]


def fingerprint(rows: NDArray[np.void]) -> str:
    """A digest of a segment's batches from their headers, BATCH_ROW[b]; the CRCs stand for the
    rest.
    """
    digest = hashlib.sha256()
    for name in ("position", "base_offset", "last_offset", "size_in_bytes", "crc"):
        digest.update(rows[name].astype(np.int64).tobytes())
    return digest.hexdigest()


def swap_groups(
    scratch: Scratch, attempt_id: str, finished: Sequence[FinishedGroup], files: LocalFiles
) -> None:
    """Steps 1 to 7 for all groups. The caller holds the partition's turn and has checked that
    nothing changed.
    """
    record = SwapRecord(scratch.run_id, tuple(group.group for group in finished))
    write_record(scratch.swap_record, record, files)
    remove_other_attempts(scratch, attempt_id, files)
    for group in finished:
        _swap_group(scratch.directory, group, files)


def _swap_group(directory: str, finished: FinishedGroup, files: LocalFiles) -> None:
    for output in finished.outputs:
        files.rename(output.path, path_in(directory, output.name + CLEANED_SUFFIX))
    replaced = list(existing_files(directory, finished.group.sources, SEGMENT_KINDS))
    swap_in(directory, [output.name for output in finished.outputs], replaced, files)
    remove_snapshots(directory, finished.group.sources, files)


def swap_in(
    directory: str, names: Sequence[str], replaced: Sequence[str], files: LocalFiles
) -> None:
    """Steps 4 to 7: files that lie there as `.cleaned` take the place of others.

    Of several segments the `names` begin with the last: as long as one `.cleaned` is left a loader
    undoes all of them. They get their final names in ascending order.
    """

    def path(name: str, suffix: str = "") -> str:
        return path_in(directory, name + suffix)

    for name in names:
        files.rename(path(name, CLEANED_SUFFIX), path(name, SWAP_SUFFIX))
    files.sync_directory(directory)
    for name in replaced:
        files.rename(path(name), path(name, DELETED_SUFFIX))
    for name in sorted(names, key=_base_digits):
        files.rename(path(name, SWAP_SUFFIX), path(name))
    files.sync_directory(directory)
    for name in replaced:
        files.remove(path(name, DELETED_SUFFIX))


def _base_digits(name: str) -> str:
    return name.partition(".")[0]


def remove_snapshots(directory: str, base_offsets: Iterable[int], files: LocalFiles) -> None:
    """Remove the producer snapshots at those of these offsets where no segment starts any more."""
    for base_offset in base_offsets:
        if not os.path.lexists(path_in(directory, log_file_name(base_offset))):
            files.remove(path_in(directory, producer_snapshot_file_name(base_offset)))


def remove_other_attempts(scratch: Scratch, attempt_id: str, files: LocalFiles) -> None:
    """Remove outputs that other executions of the same task left or are still writing."""
    kept = {Path(path).name for path in (scratch.swap_record, scratch.done_record, scratch.turn)}
    own = Path(scratch.output(attempt_id, "")).name.removesuffix(".tmp")
    for name in list_names(scratch.directory):
        if scratch.owns(name) and name not in kept and not name.startswith(own):
            files.remove(path_in(scratch.directory, name))


def existing_files(
    directory: str, base_offsets: Sequence[int], kinds: Sequence[LogFileKind]
) -> Iterator[str]:
    """Names of the files of these segments that are there, segment by segment in offset order."""
    for base_offset in sorted(base_offsets):
        for kind in kinds:
            name = f"{base_offset:020d}{kind}"
            if os.path.lexists(path_in(directory, name)):
                yield name


def write_record(path: str, record: JsonFacts, files: LocalFiles) -> None:
    """Write a small JSON file and force it, and its name, to disk."""
    files.replace_contents(path, json.dumps(record.to_json()).encode(), path + ".new.tmp")


def read_swap_record(path: str) -> SwapRecord | None:
    """The swap record at `path`; None if it is not whole (then nothing was swapped under it)."""
    try:
        return SwapRecord.from_json(json.loads(Path(path).read_bytes()))
    except (ValueError, TypeError, KeyError, FileNotFoundError):
        return None


@contextmanager
def partition_turn(scratch: Scratch) -> Iterator[None]:
    """Only one attempt of a run at a time changes a partition; waits for its turn.

    The file is there while somebody has the turn, or died having it; the lock goes with its
    process. Attempts are processes: threads of one process would not wait for each other.
    """
    fd = _take_turn(scratch.turn)
    try:
        yield
    finally:
        Path(scratch.turn).unlink(missing_ok=True)
        os.close(fd)


def wait_for_other_runs(directory: str) -> None:
    """Until no task of an earlier run changes this partition any more.

    Such a task may outlive its driver (a Spark executor's does), and the lock of the log dir with
    it. The caller holds that lock now: a task that has its turn still to come will find that out
    and stop, so it is enough to wait for those that have it. LogDirLockedError if one does not end.
    """
    for name in list_names(directory):
        if not is_turn(name):
            continue
        path = path_in(directory, name)
        until = time.monotonic() + MAX_WAIT_FOR_TURN_S
        while not _is_free(path):
            if time.monotonic() > until:
                raise LogDirLockedError(
                    "a task of an earlier run is still at work on this partition", path=path
                )
            time.sleep(0.05)


def _is_free(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def _take_turn(path: str) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX)
            # Whoever had it before us removed the file, and somebody may have made it anew.
            if _is_at(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _is_at(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))  # noqa: PTH116 (beside fstat)
    except FileNotFoundError:
        return False
