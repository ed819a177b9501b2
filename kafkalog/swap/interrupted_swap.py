"""Finish or undo what an interrupted cleaning left in a partition directory, ours or a broker's.

The rules are those of Kafka's loader: a `.cleaned` means that its group was not finished, so it and
every `.swap` at or above it go; any other `.swap` is finished, so the segments it replaces go and
it takes its final name; what a run of ours marked `.deleted` goes. Where our swap record lies
beside them it names the replaced segments exactly; else they are those that start inside the
swapped segments' offsets, as for the loader. Unlike the loader, the producer snapshot at a
surviving base offset stays, and so does what somebody else marked `.deleted`, and files without a
`.log` where nothing was interrupted: nobody asked for their removal.

Everything here may be interrupted and done again: a `.swap` is renamed after its sources are gone,
in the order and with the syncs of a swap (swap.py), and our own records go last.

Source: Kafka LogLoader.load.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.cleaning.finished_group import fingerprint
from kafkalog.errors import CorruptRecordError
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LIVE_SUFFIX,
    SWAP_SUFFIX,
    LogFileKind,
    LogFileName,
    parse_file_name,
    producer_snapshot_file_name,
)
from kafkalog.log.segment_headers import iterate_headers
from kafkalog.swap.file_facts import FileFacts
from kafkalog.swap.local_files import LocalFiles, list_names, path_in
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.replacement import Replacement, SwapGroup, end_replacement, read_record, settle
from kafkalog.swap.scratch import Scratch, is_scratch, undo_run_id
from kafkalog.swap.steps import put_in_place, take_away
from kafkalog.swap.swap import SEGMENT_KINDS, remove_snapshots, take_steps
from kafkalog.texts import format_count

# What an interruption leaves, ours or a broker's, beside scratch files.
_LEFT = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
_KINDS = (*SEGMENT_KINDS, LogFileKind.PRODUCER_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    parsed: LogFileName


@dataclass(frozen=True, slots=True)
class _Swap:
    """A whole `.log.swap`: its offsets, and the sources our record names if the record is its."""

    base_offset: int
    next_offset: int
    sources: tuple[int, ...] | None


def resolve_interrupted_swap(directory: str, files: LocalFiles) -> list[str]:
    """Resolve what is left over, and say in words what was done; nothing to say if nothing was
    left.

    The caller holds the log dir's lock. OSError if a file cannot be read, renamed or removed;
    CorruptRecordError for a `.log.swap` that cannot be read: then it was left as it is.
    """
    done: list[str] = []
    names = list_names(directory)
    if not any(name.endswith(_LEFT) or is_scratch(name) for name in names):
        return done
    records = _records(directory, names)
    groups = [group for record in records for group in record.groups]
    cleaned = _with_suffix(names, CLEANED_SUFFIX)
    swaps = _with_suffix(names, SWAP_SUFFIX)
    if cleaned:
        # As Kafka's loader: a `.cleaned` says that the swap did not reach the point of no return,
        # and from its offset on all is undone. The sources are still there under their own names.
        undone_from = min(found.parsed.offset for found in cleaned)
        undone = [found for found in swaps if found.parsed.offset >= undone_from]
        # A `.swap` without any `.cleaned` would be finished.
        _remove(directory, undone, files)
        if undone:
            files.sync_directory(directory)
        _remove(directory, cleaned, files)
        swaps = [found for found in swaps if found.parsed.offset < undone_from]
        done.append(f"undid an unfinished cleaning from offset {undone_from}")
    if swaps:
        # Without a `.cleaned` a swap is past the point of no return: each `.swap` takes the place
        # of its sources.
        _finish_swaps(directory, swaps, groups, files)
        bases = sorted({found.parsed.offset for found in swaps})
        done.append(f"finished the swap of segment {', '.join(map(str, bases))}")
    if done:
        files.sync_directory(directory)
    # Only where something was interrupted: files that lie about for another reason are not ours to
    # take.
    orphans = _orphans(directory) if done or records else []
    deleted = _deleted_by_us(directory, names)
    _remove(directory, [*orphans, *deleted], files)
    for record in records:
        _remove_snapshots_of_deleted(directory, record, files)
    _remove_recorded_snapshots(directory, groups, files)
    for record in records:
        # Only now, when it is decided which of the replaced files are gone and which are back.
        settle(Scratch(directory, record.run_id), record, files)
    if records:
        files.sync_directory(directory)
    scratch = [name for name in names if is_scratch(name)]
    # Swap records last: as long as one is there, what it tells can be done again.
    for name in sorted(scratch, key=lambda name: (_is_swap_record(name), name)):
        _remove_scratch(path_in(directory, name), files)
    if not done and (left := len(orphans) + len(deleted) + len(scratch)):
        done.append(f"removed {format_count(left, 'file')} that were left over")
    return done


def clear_run(scratch: Scratch, files: LocalFiles) -> list[str]:
    """Remove what a run that is over left in a partition: done record, outputs of attempts nobody
    waits for. A swap that nobody finished is resolved first; what was done for it, in words.
    """
    done: list[str] = []
    # Nearly always: one look at each of thousands of partitions at the end of a run.
    if not any(map(scratch.owns, list_names(scratch.directory))):
        return done
    record = read_record(scratch.swap_record)
    # The swap was done to its end, and cut off before its record was put away.
    if record is not None and os.path.exists(scratch.done_record):  # noqa: PTH110 - as `path_in`
        end_replacement(scratch, record, files)
    elif os.path.exists(scratch.swap_record):  # noqa: PTH110 - as `path_in`
        with locked_partition(scratch):
            done = resolve_interrupted_swap(scratch.directory, files)
    for name in list_names(scratch.directory):
        if scratch.owns(name):
            _remove_scratch(path_in(scratch.directory, name), files)
    return done


def _remove_scratch(path: str, files: LocalFiles) -> None:
    """A file, or the directory that a healed copy was in."""
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114 - as `path_in`
        files.remove_directory(path)
    else:
        files.remove(path)


def _records(directory: str, names: Iterable[str]) -> list[Replacement]:
    paths = [path_in(directory, name) for name in names if _is_swap_record(name)]
    return [record for path in paths if (record := read_record(path)) is not None]


def _deleted_by_us(directory: str, names: Sequence[str]) -> list[_Found]:
    """Files that a run of ours, or its undo, marked `.deleted` and did not remove: its record has
    them by their names from before.
    """
    deleted = _with_suffix(list(names), DELETED_SUFFIX)
    if not deleted:
        return []
    paths = [
        path_in(directory, name)
        for name in names
        if _is_swap_record(name) or (undo_run_id(name) and name.endswith("-record.undo"))
    ]
    known: dict[str, list[FileFacts]] = {}
    for path in paths:
        record = read_record(path)
        for file in () if record is None else record.every_file:
            known.setdefault(file.name + DELETED_SUFFIX, []).append(file)
    return [
        found
        for found in deleted
        if any(f.looks_as_at(path_in(directory, found.name)) for f in known.get(found.name, ()))
    ]


def _is_swap_record(name: str) -> bool:
    return is_scratch(name) and name.endswith("-swap.tmp")


def _with_suffix(names: list[str], suffix: str) -> list[_Found]:
    parsed = [(name, parse_file_name(name)) for name in names if name.endswith(suffix)]
    return [
        _Found(name, file)
        for name, file in parsed
        if file is not None and file.suffix == suffix and file.kind in _KINDS
    ]


def _order(found: _Found) -> tuple[int, int]:
    return found.parsed.offset, _KINDS.index(found.parsed.kind)


def _remove(directory: str, found: Iterable[_Found], files: LocalFiles) -> None:
    """In ascending order, within a segment the `.log` first: what is left of it is no segment."""
    for file in sorted(found, key=_order):
        files.remove(path_in(directory, file.name))


def _finish_swaps(
    directory: str, swaps: Sequence[_Found], groups: Sequence[SwapGroup], files: LocalFiles
) -> None:
    logs = [found for found in swaps if found.parsed.kind is LogFileKind.LOG]
    read = [_read_swap(directory, found, groups) for found in logs]
    # Of a broker's own swap there is no record: as its loader does, take away what begins between
    # the lowest of these and the end of the highest. Of ours the record names the sources, also
    # those behind the end, which lost all their batches.
    foreign = [swap for swap in read if swap.sources is None]
    replaced = {source for swap in read for source in swap.sources or (swap.base_offset,)}
    live = _with_suffix(list_names(directory), LIVE_SUFFIX)
    if foreign:
        start = min(swap.base_offset for swap in foreign)
        end = max(swap.next_offset for swap in foreign)
        replaced |= {file.parsed.offset for file in live if start <= file.parsed.offset < end}
    # A producer snapshot stays where a segment begins, also a new one.
    surviving = {swap.base_offset for swap in read}
    gone = [
        file
        for file in live
        if file.parsed.offset in replaced
        and (file.parsed.kind in SEGMENT_KINDS or file.parsed.offset not in surviving)
    ]
    names = [file.name for file in sorted(gone, key=_order)]
    swapped = [found.name.removesuffix(SWAP_SUFFIX) for found in swaps]
    end_offset = max((swap.next_offset for swap in read), default=0)

    # The same steps as of the swap itself: if this dies as well, the next one finds the same kind
    # of state.
    going = take_away(names, swapped, end_offset)
    take_steps(directory, [*going, *put_in_place(swapped)], files)


def _orphans(directory: str) -> list[_Found]:
    """What a loader removes as well: indexes without a log, and snapshots below the first segment.
    A deletion that stopped halfway leaves them.
    """
    live = _with_suffix(list_names(directory), LIVE_SUFFIX)
    bases = {file.parsed.offset for file in live if file.parsed.kind is LogFileKind.LOG}
    first = min(bases, default=0)
    return [
        file
        for file in live
        if (
            file.parsed.offset < first
            if file.parsed.kind is LogFileKind.PRODUCER_SNAPSHOT
            else file.parsed.offset not in bases
        )
    ]


def _read_swap(directory: str, log: _Found, groups: Sequence[SwapGroup]) -> _Swap:
    base_offset = log.parsed.offset
    path = path_in(directory, log.name)
    next_offset = base_offset
    for scan in iterate_headers(path):
        scan.raise_if_corrupt()
        if scan.trailing_bytes:
            raise CorruptRecordError(
                f"{scan.trailing_bytes} bytes after the last whole batch: it takes no segment's "
                "place",
                path=path,
                position=scan.valid_bytes,
            )
        if scan.rows.size:
            next_offset = int(scan.rows["last_offset"][-1]) + 1
    # The record counts only for the very segment it was written for: a broker may have compacted
    # since, to a `.swap` with the same name.
    content = fingerprint(scan.rows for scan in iterate_headers(path))
    recorded = [
        group.sources
        for group in groups
        if group.base_offset == base_offset and group.fingerprint == content
    ]
    return _Swap(base_offset, next_offset, recorded[0] if recorded else None)


def _remove_snapshots_of_deleted(directory: str, record: Replacement, files: LocalFiles) -> None:
    """A deletion that took a segment away takes its snapshot as well, which is kept like it."""
    kept = {file.name for file in record.kept}
    parsed = (parse_file_name(name) for name in kept)
    gone = {
        file.offset
        for file in parsed
        if file is not None and file.kind is LogFileKind.LOG and file.suffix == LIVE_SUFFIX
    }
    snapshots = {producer_snapshot_file_name(offset) for offset in gone} & kept
    remove_snapshots(directory, sorted(int(name.split(".")[0]) for name in snapshots), files)


def _remove_recorded_snapshots(
    directory: str, groups: Sequence[SwapGroup], files: LocalFiles
) -> None:
    """Snapshots of segments that are gone, but for the newest: a broker goes on from that one."""
    names = list_names(directory)
    snapshots = [n for n in names if n.endswith(LogFileKind.PRODUCER_SNAPSHOT)]
    # Names have 20 digits, so that the greatest text is the highest offset.
    newest = parse_file_name(max(snapshots, default=""))
    if newest is not None:
        gone = {source for group in groups for source in group.sources}
        remove_snapshots(directory, sorted(gone - {newest.offset}), files)
