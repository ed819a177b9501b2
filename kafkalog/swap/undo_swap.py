"""Put back what a run replaced in one partition: names, bytes, owner, mode and times.

The files come back by their second names (see replacement.py), so each is the very file it was.
Nothing is put back unless the partition is as the run left it: every file the run made is there and
unchanged, every kept one has the bytes it had, and nothing has taken the name of one. What the run
did not touch may have changed: a broker may have appended to the active segment since.

A group of segments is swapped back as it was swapped in (steps.py), the last group first: a
tombstone must be back before the value it deletes. Deleted segments come back in descending order,
each `.log` after its indexes, so that the log has no gap on the way. Second names and the record go
last, when the log dir's checkpoints are back, too: dying anywhere leaves a log a broker loads, and
`undo` can be repeated. Where the order counts the directory is synced in between: a power cut loses
any part of what was not synced.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from kafkalog.errors import LogChangedError
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
)
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LEADER_EPOCH_CHECKPOINT_FILE,
    LIVE_SUFFIX,
    PARTITION_METADATA_FILE,
    QUORUM_STATE_FILE,
    LogFileKind,
    parse_file_name,
)
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from kafkalog.swap.file_facts import FileFacts, checksum_of
from kafkalog.swap.local_files import LocalFiles, path_in
from kafkalog.swap.replacement import (
    CutTail,
    Replacement,
    SwappedFiles,
    drop_undo,
    first_live_offset,
    read_record,
)
from kafkalog.swap.scratch import Scratch
from kafkalog.swap.steps import swap_steps
from kafkalog.swap.swap import take_steps

# Files without an offset that runs replace, as those of the metadata.
_BESIDE = (
    LEADER_EPOCH_CHECKPOINT_FILE, PARTITION_METADATA_FILE, QUORUM_STATE_FILE, BOOTSTRAP_FILE,
    LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE, CLEANER_OFFSET_FILE,
)  # fmt: skip
_CHUNK_BYTES = 8 * 1024 * 1024


def read_undo_record(scratch: Scratch) -> Replacement | None:
    """What the run keeps of this partition; None if nothing.

    LogChangedError for a record that is there and cannot be read.
    """
    record = read_record(scratch.undo_record)
    if record is None and os.path.lexists(scratch.undo_record):
        raise LogChangedError("the undo record cannot be read", path=scratch.undo_record)
    return record


def check_undo(scratch: Scratch, record: Replacement) -> None:
    """LogChangedError unless all that is kept can be put back over what is there."""
    if record.run_id != scratch.run_id:
        raise LogChangedError(f"it is the record of run {record.run_id}", path=scratch.undo_record)
    _check_names(scratch, record)
    for swap in record.swapped:
        if not _is_back(scratch, _segment_files(swap)):
            _check_made(scratch, swap.made)
        _check_free(scratch, swap.kept, swap.made)
    # An undo that was interrupted has put some of these back and removed others.
    back = {file.name for file in record.kept if _is_back(scratch, [file])}
    there = [f for f in record.made if f.name not in back and _exists(scratch, f.name)]
    _check_made(scratch, there)
    _check_free(scratch, record.kept, record.made)
    _check_start(scratch, record)
    if record.cut is not None:
        _check_cut(scratch, record.cut)
    for file in record.every_kept:
        _check_kept(scratch, file)


def undo_partition(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """Put everything back; it is kept all the same until `end_undo`. The caller holds the log dir's
    lock, has resolved what an interrupted run left, and has checked (`check_undo`).
    """
    # Deleted segments first, which lie in front of all others; then the swaps, the last one first:
    # a tombstone is back before the value that it deletes.
    _put_back(scratch, record, files)
    for swap in reversed(record.swapped):
        if not _is_back(scratch, _segment_files(swap)):
            _swap_back(scratch, swap, files)
        for file in swap.kept:  # snapshots
            _link_back(scratch, file, files)
    if record.cut is not None:
        _put_tail_back(scratch, record.cut, files)
    for file in record.kept:
        if _is_left_by_broker(file):  # last: on the way the names are needed
            _link_back(scratch, file, files)
    files.sync_directory(scratch.directory)


def end_undo(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """Forget what is back, in the log dir's checkpoints as well."""
    drop_undo(scratch, files)
    files.restore_times(scratch.directory, record.dir_mtime_ns)


# -- checks --------------------------------------------------------------------------------------


def _check_names(scratch: Scratch, record: Replacement) -> None:
    """A record is a file like any other: names in it must not lead out of the directory."""
    cut = [] if record.cut is None else [record.cut.before]
    for file in (*record.every_kept, *record.every_made, *cut):
        parsed = parse_file_name(file.name)
        is_segment_file = parsed is not None and parsed.suffix in (LIVE_SUFFIX, DELETED_SUFFIX)
        if not is_segment_file and file.name not in _BESIDE:
            raise LogChangedError(f"it names {file.name!r}", path=scratch.undo_record)


def _is_back(scratch: Scratch, kept: Iterable[FileFacts]) -> bool:
    return all(file.is_at(path_in(scratch.directory, file.name)) for file in kept)


def _segment_files(swap: SwappedFiles) -> list[FileFacts]:
    return [f for f in swap.kept if not f.name.endswith(LogFileKind.PRODUCER_SNAPSHOT)]


def _exists(scratch: Scratch, name: str) -> bool:
    return os.path.lexists(path_in(scratch.directory, name))


def _check_made(scratch: Scratch, made: Iterable[FileFacts]) -> None:
    """A `.log` must be the same file, of the small ones the bytes must be the same."""
    for file in made:
        path = path_in(scratch.directory, file.name)
        if file.name.endswith(LogFileKind.LOG):
            is_same = file.is_at(path)
        else:
            is_same = os.path.lexists(path) and checksum_of(path) == file.checksum
        if not is_same:
            raise _changed("is not as the run left it", path)


def _check_free(scratch: Scratch, kept: Iterable[FileFacts], made: Iterable[FileFacts]) -> None:
    """Nobody else may have a name that a kept file comes back to."""
    replaced = {file.name for file in made}
    for file in kept:
        path = path_in(scratch.directory, file.name)
        if file.name not in replaced and os.path.lexists(path) and not file.is_at(path):
            raise _changed("is there again, and is not the file that the run replaced", path)


def _check_start(scratch: Scratch, record: Replacement) -> None:
    if record.first_offset is None:
        return
    # A broker may have deleted further segments since: what was deleted before would come back in
    # front of a gap.
    first = first_live_offset(scratch.directory)
    named = (parse_file_name(file.name) for file in record.kept)
    kept = {name.offset for name in named if name is not None and name.suffix == LIVE_SUFFIX}
    if first != record.first_offset and first not in kept:
        raise _changed(
            f"the first segment was {record.first_offset} after the run, it is {first}",
            scratch.directory,
        )


def _check_kept(scratch: Scratch, file: FileFacts) -> None:
    """The kept file, or the live one where it is back already."""
    for path in (scratch.undo(file.name), path_in(scratch.directory, file.name)):
        if file.is_at(path):
            if file.checksum is not None and checksum_of(path) != file.checksum:
                raise _changed("has other bytes than it had when it was replaced", path)
            return
    raise _changed("is not there any more, or was changed", scratch.undo(file.name))


def _check_cut(scratch: Scratch, cut: CutTail) -> None:
    """What is behind the cut must be what an interrupted undo put there, if anything."""
    path, tail = path_in(scratch.directory, cut.before.name), scratch.undo(cut.before.name)
    stat = os.lstat(path)
    if stat.st_ino != cut.before.inode or stat.st_size < cut.valid_bytes:
        raise _changed("is not as the run left it", path)
    if _tail_is_back(path, cut):
        return
    if not os.path.lexists(tail) or checksum_of(tail) != cut.checksum:
        raise _changed("is not there any more, or was changed", tail)
    with Path(path).open("rb") as file, Path(tail).open("rb") as kept:
        file.seek(cut.valid_bytes)
        while data := file.read(_CHUNK_BYTES):
            # What was on its way back may lie there in part, with zeros in place of the rest.
            if not _is_torn(data, kept.read(len(data)), file):
                raise _changed("is not as the run left it", path)


def _tail_is_back(path: str, cut: CutTail) -> bool:
    """Whether nothing is cut off any more. A length alone proves nothing after a power cut."""
    is_long = os.lstat(path).st_size == cut.before.size
    return is_long and checksum_of(path, cut.valid_bytes, cut.kept_bytes) == cut.checksum


def _is_torn(found: bytes, written: bytes, behind: BinaryIO) -> bool:
    """Whether these bytes are those that were written, or begin so and are zeros from there on."""
    if found == written:
        return True
    pairs = zip(found, written, strict=False)
    same = next((n for n, (byte, other) in enumerate(pairs) if byte != other), len(written))
    rest = iter(lambda: behind.read(_CHUNK_BYTES), b"")
    return not any(data.strip(b"\0") for data in itertools.chain([found[same:]], rest))


def _changed(what: str, path: str) -> LogChangedError:
    return LogChangedError(f"the partition changed since the run: {what}", path=path)


# -- putting back --------------------------------------------------------------------------------


def _swap_back(scratch: Scratch, swap: SwappedFiles, files: LocalFiles) -> None:
    directory = scratch.directory
    segments = _segment_files(swap)
    # The highest first, its `.log` in front: see swap.py.
    # An undo that was interrupted has put some of them back: those must not be moved again.
    missing = [f.name for f in segments if not f.is_at(path_in(directory, f.name))]
    bases = sorted({name.split(".")[0] for name in missing}, reverse=True)
    names = [name for base in bases for name in missing if name.startswith(base)]
    # Links, not renames: what is kept stays kept until all of the undo is done.
    for name in names:
        target = path_in(directory, name + CLEANED_SUFFIX)
        files.remove(target)
        files.link(scratch.undo(name), target)
    files.sync_directory(directory)
    made = sorted(file.name for file in swap.made)
    # All of it lies in the offsets of what comes back.
    take_steps(directory, swap_steps(names, made, sys.maxsize), files)


def _put_back(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """Files one by one: kept ones over what the run made of them, then what it made new."""
    one_by_one = [file for file in record.kept if not _is_left_by_broker(file)]
    for stage in _stages_of_return(one_by_one):
        for file in stage:
            _link_back(scratch, file, files)
        files.sync_directory(scratch.directory)
    kept = {file.name for file in record.kept}
    # A segment that the run began goes as any does: the `.log` first, its name marked before.
    new = [f.name for f in record.made if f.name not in kept]
    new.sort(key=lambda name: (not name.endswith(LogFileKind.LOG), name))
    for name in new:
        path = path_in(scratch.directory, name)
        if os.path.lexists(path):
            files.rename(path, path + DELETED_SUFFIX)
            files.remove(path + DELETED_SUFFIX)


def _is_left_by_broker(file: FileFacts) -> bool:
    return file.name.endswith(DELETED_SUFFIX)


def _stages_of_return(kept: Iterable[FileFacts]) -> Iterator[list[FileFacts]]:
    """What may come back at once: what lies beside the segments, then each `.log` by itself in
    descending order, then what belongs to no segment.
    """
    parsed = [(file, parse_file_name(file.name)) for file in kept]
    of_segments = [(file, name) for file, name in parsed if name is not None]
    logs = [(name.offset, file) for file, name in of_segments if name.kind is LogFileKind.LOG]
    beside = [file for file, name in of_segments if name.kind is not LogFileKind.LOG]
    others = [file for file, name in parsed if name is None]
    logs.sort(key=lambda log: log[0], reverse=True)
    yield from filter(None, [beside, *([file] for _, file in logs), others])


def _link_back(scratch: Scratch, file: FileFacts, files: LocalFiles) -> None:
    """The kept file under its own name again, in one step over whatever has it."""
    path = path_in(scratch.directory, file.name)
    if file.is_at(path):
        return
    # A link cannot take a name that exists and a rename can, in one step: so linked beside first.
    between = scratch.output("undo", file.name)
    files.remove(between)
    files.link(scratch.undo(file.name), between)
    files.rename(between, path)


def _put_tail_back(scratch: Scratch, cut: CutTail, files: LocalFiles) -> None:
    path, tail = path_in(scratch.directory, cut.before.name), scratch.undo(cut.before.name)
    is_back = _tail_is_back(path, cut)
    try:
        if not is_back:
            # From the cut on, whatever an earlier attempt has put there: begun anew, not gone on
            # with.
            files.truncate(path, cut.valid_bytes)
            with Path(tail).open("rb") as kept:
                while data := kept.read(_CHUNK_BYTES):
                    files.append(path, data)
        # Zeros that were preallocated are not kept.
        files.truncate(path, cut.before.size, cut.before.mtime_ns)
    except OSError:
        if not is_back:
            files.truncate(path, cut.valid_bytes)
        raise
