"""What a run replaces in one partition: written down before the first file moves, and kept as long
as the run can be undone.

    kafkalog-RUN-swap.tmp        while the run changes the partition, or died over it
    kafkalog-RUN-record.undo     the same afterwards, beside the replaced files

With a run that can be undone every file that will be replaced or deleted first gets a second name
(a hard link), `kafkalog-RUN-<file>.undo`. From there on nothing that happens to the live names, by
us, by a loader or by a crash, touches the only copy; and it costs no space until the live name
goes. A broker looks at none of these names.

A recovery that finds a swap record settles it: what was not replaced in the end is taken out, and
if nothing is left neither is the record.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.file_names import DELETED_SUFFIX, LIVE_SUFFIX, LogFileKind, parse_file_name
from kafkalog.log.json_facts import JsonFacts
from kafkalog.swap.file_facts import FileFacts, file_facts
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.scratch import Scratch

# Records of another version are not read.
SCHEMA = 1
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


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
class SwappedFiles(JsonFacts):
    """The files of segments, kept, and of those that took their place, made. `between` are files
    that the same run made and replaced again: what is there if the second swap did not happen.
    """

    kept: tuple[FileFacts, ...]
    made: tuple[FileFacts, ...]
    between: tuple[FileFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class CutTail(JsonFacts):
    """Bytes that were cut off a file behind its first `valid_bytes`; the first `kept_bytes` of them
    are kept under its name, the rest were zeros; `checksum` is their CRC-32C. `before` is the whole
    file.
    """

    valid_bytes: int
    kept_bytes: int
    checksum: int
    before: FileFacts


@dataclass(frozen=True, slots=True)
class Replacement(JsonFacts):
    """What one attempt of a run replaces in a partition.

    groups: segments by segments, for a recovery; swapped: their files; kept, made: files one by
    one, as retention and rebuilding replace them; first_offset: where the log's first segment
    begins afterwards, if segments were deleted; cut: a torn tail; keeps_undo: whether the replaced
    files are kept; dir_mtime_ns: the modification time of the directory before the attempt.
    """

    run_id: str
    kind: str
    attempt_id: str
    keeps_undo: bool
    dir_mtime_ns: int
    groups: tuple[SwapGroup, ...] = ()
    swapped: tuple[SwappedFiles, ...] = ()
    kept: tuple[FileFacts, ...] = ()
    made: tuple[FileFacts, ...] = ()
    first_offset: int | None = None
    cut: CutTail | None = None
    schema: int = SCHEMA

    @property
    def every_kept(self) -> tuple[FileFacts, ...]:
        """The replaced files, of swapped segments and others."""
        return (*(file for swap in self.swapped for file in swap.kept), *self.kept)

    @property
    def every_file(self) -> tuple[FileFacts, ...]:
        """Both, and files that the run made and replaced again."""
        between = (file for swap in self.swapped for file in swap.between)
        return (*self.every_kept, *self.every_made, *between)

    @property
    def every_made(self) -> tuple[FileFacts, ...]:
        """The new files, of segments and others."""
        return (*(file for swap in self.swapped for file in swap.made), *self.made)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was replaced."""
        return not (self.swapped or self.kept or self.made or self.cut)


def left_by_broker(directory: str, present: Iterable[str] | None = None) -> tuple[FileFacts, ...]:
    """The facts of the files that a broker marked `.deleted` and did not remove. `present`: the
    names in the directory, where they are listed already.
    """
    names = list_names(directory) if present is None else sorted(present)
    parsed = [(name, parse_file_name(name)) for name in names if name.endswith(DELETED_SUFFIX)]
    return tuple(
        file_facts(path_in(directory, name), name)
        for name, file in parsed
        if file is not None and file.suffix == DELETED_SUFFIX
    )


def remove_left_by_broker(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """Remove those of them that the record names: they have their second names by now."""
    for file in record.kept:
        if file.name.endswith(DELETED_SUFFIX):
            files.remove(path_in(scratch.directory, file.name))


def write_record(path: str, record: JsonFacts, files: LocalFiles) -> None:
    """Write a small JSON file and force it, and its name, to disk."""
    files.replace_contents(path, json.dumps(record.to_json()).encode(), path + ".new.tmp")


def read_record(path: str) -> Replacement | None:
    """The record at `path`; None if it is not whole (then nothing was replaced under it), or of
    another version.
    """
    try:
        # A record that is not whole was never renamed into place by us, or a disk has lost it:
        # nothing in it is believed.
        with open(path, "rb") as file:  # noqa: PTH123 - as `path_in`
            record = Replacement.from_json(json.loads(file.read()))
    except (ValueError, TypeError, KeyError, FileNotFoundError, RecursionError):
        return None
    return record if record.schema == SCHEMA else None


def begin_replacement(
    scratch: Scratch,
    record: Replacement,
    files: LocalFiles,
    renamed: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the record, then give everything that will be replaced its second name, and these files
    another one: all of it for good.

    LogCleaningRefusedError where the file system has no second names: nothing was replaced.
    """
    # The record before the names: a second name without a record would be a file that nobody can
    # explain.
    write_record(scratch.swap_record, record, files)
    if record.keeps_undo:
        for file in record.every_kept:
            keep_file(path_in(scratch.directory, file.name), scratch.undo(file.name), file, files)
    for source, target in renamed:
        files.rename(source, target)
    # One sync for all names: only after it does anything happen that needs them.
    if record.keeps_undo or renamed:
        files.sync_directory(scratch.directory)


def keep_file(path: str, kept: str, facts: FileFacts, files: LocalFiles) -> None:
    """A second name for one file; it may have it already."""
    try:
        files.link(path, kept)
    except (FileExistsError, FileNotFoundError):
        # A repeated attempt finds the names that the one before it gave, and so does the swap of a
        # further group; what they were given to may be gone by then.
        if not facts.is_at(kept):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise LogCleaningRefusedError(
            f"the file system gives it no second name ({error.strerror}), so it cannot be kept for "
            "undo: --no-undo goes without",
            path=path,
        ) from error


def end_replacement(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """After all that the record tells is done: keep it for undo, or forget it."""
    # A rename, so that at no moment there are two records, or none while files are kept.
    if record.keeps_undo and not record.is_empty:
        files.rename(scratch.swap_record, scratch.undo_record)
    else:
        files.remove(scratch.swap_record)


def settle(scratch: Scratch, record: Replacement, files: LocalFiles) -> None:
    """After an interrupted replacement was finished or undone: keep for undo what was replaced.
    The swap record is left to the caller.
    """
    if not record.keeps_undo:
        return
    settled = remaining(scratch.directory, record)
    if settled.is_empty:
        drop_undo(scratch, files)
        return
    if read_record(scratch.undo_record) != settled:
        write_record(scratch.undo_record, settled, files)
    # Second names of files that are live again hold nothing that is not there: they go, the others
    # stay.
    names = {Path(scratch.undo(file.name)).name for file in settled.every_kept}
    names |= {Path(scratch.undo(settled.cut.before.name)).name} if settled.cut else set()
    names.add(Path(scratch.undo_record).name)
    for name in list_names(scratch.directory):
        if scratch.keeps(name) and name not in names:
            files.remove(path_in(scratch.directory, name))


def remaining(directory: str, record: Replacement) -> Replacement:
    """The record without what is in the directory as it was before."""

    def is_live(file: FileFacts) -> bool:
        return file.is_at(path_in(directory, file.name))

    # What is live again as it was needs no undo: a swap that a loader undid, or that never began.
    cut = record.cut
    if cut is not None and is_live(cut.before):
        cut = None
    swapped = []
    for swap in record.swapped:
        left = tuple(file for file in swap.kept if not is_live(file))
        made = tuple(file for file in (*swap.made, *swap.between) if is_live(file))
        # Snapshots alone make no swap: they go and come with the segments they belong to.
        if any(not f.name.endswith(LogFileKind.PRODUCER_SNAPSHOT) for f in left):
            swapped.append(SwappedFiles(left, made))
    kept = tuple(file for file in record.kept if not is_live(file))
    made = tuple(file for file in record.made if is_live(file))
    return replace(
        record,
        groups=(),
        swapped=tuple(swapped),
        kept=kept,
        made=made,
        cut=cut,
        first_offset=_first_offset(directory, record) if kept or made else None,
    )


def read_earlier(scratch: Scratch, present: Collection[str] | None = None) -> Replacement | None:
    """What this run replaced in the partition before, by this attempt or one that died. `present`:
    the names in the directory, where they are listed already.
    """
    for path in (scratch.swap_record, scratch.undo_record):
        if present is None or path.rpartition("/")[2] in present:
            record = read_record(path)
            if record is not None:
                return record
    return None


def _first_offset(directory: str, record: Replacement) -> int | None:
    if record.first_offset is None:
        return None
    return first_live_offset(directory)


def first_live_offset(directory: str) -> int | None:
    """The base offset of the first segment, None without one."""
    parsed = [parse_file_name(name) for name in list_names(directory)]
    bases = [
        file.offset
        for file in parsed
        if file is not None and file.kind is LogFileKind.LOG and file.suffix == LIVE_SUFFIX
    ]
    return min(bases, default=None)


def drop_undo(scratch: Scratch, files: LocalFiles) -> int:
    """Remove what a run keeps of a partition, the record last; the bytes that became free."""
    freed = 0
    names = [name for name in list_names(scratch.directory) if scratch.keeps(name)]
    record = Path(scratch.undo_record).name
    # The record last, and only when the removals before it are on the disk: as long as it is there,
    # the rest can be found again.
    for name in sorted(names, key=lambda name: (name == record, name)):
        if name == record:
            files.sync_directory(scratch.directory)
        stat = os.lstat(path_in(scratch.directory, name))
        # Another name that is left keeps the bytes.
        freed += stat.st_size if stat.st_nlink == 1 else 0
        files.remove(path_in(scratch.directory, name))
    return freed


def held_bytes(scratch: Scratch) -> int | None:
    """Bytes that a run keeps in a partition, those that have another name not counted; None if it
    keeps nothing there, or the partition is not there (any more, or yet).
    """
    if not Path(scratch.directory).is_dir():
        return None
    stats = [
        os.lstat(path_in(scratch.directory, name))
        for name in list_names(scratch.directory)
        if scratch.keeps(name)
    ]
    return sum(stat.st_size for stat in stats if stat.st_nlink == 1) if stats else None
