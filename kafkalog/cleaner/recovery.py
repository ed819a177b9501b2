"""Finish or undo what an interrupted cleaning left in a partition directory, ours or a broker's.

The rules are those of Kafka's loader: a `.cleaned` means that its group was not finished, so it and
every `.swap` at or above it go; any other `.swap` is finished, so the segments it replaces go and
it takes its final name. Where our swap record lies beside them it names the replaced segments
exactly; else they are those that start inside the swapped segment's offsets, as for the loader.
Unlike the loader, the producer snapshot at the surviving base offset stays.

Source: Kafka LogLoader.load; spec/format.md 9.2.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kafkalog.cleaner.local_files import LocalFiles, list_names, path_in
from kafkalog.cleaner.scratch import is_scratch
from kafkalog.cleaner.swap import (
    SEGMENT_KINDS,
    SwapGroup,
    SwapRecord,
    read_swap_record,
    remove_snapshots,
)
from kafkalog.format.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LIVE_SUFFIX,
    SWAP_SUFFIX,
    LogFileKind,
    LogFileName,
    log_file_name,
    parse_file_name,
)
from kafkalog.log.segment_file import scan_headers


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    parsed: LogFileName


def recover_partition(directory: str, files: LocalFiles) -> list[str]:
    """Resolve what is left over, and say in words what was done; nothing to say if nothing was
    left.

    The caller holds the log dir's lock. OSError if a file cannot be read, renamed or removed.
    """
    done: list[str] = []
    records = _swap_records(directory)
    names = list_names(directory)
    cleaned = _with_suffix(names, CLEANED_SUFFIX)
    swaps = _with_suffix(names, SWAP_SUFFIX)
    if cleaned:
        undone_from = min(found.parsed.offset for found in cleaned)
        undone = [found for found in swaps if found.parsed.offset >= undone_from]
        for found in [*undone, *cleaned]:
            files.remove(path_in(directory, found.name))
        swaps = [found for found in swaps if found.parsed.offset < undone_from]
        done.append(f"undid an unfinished cleaning from offset {undone_from}")
    for found in swaps:
        if found.parsed.kind is LogFileKind.LOG:
            group = _group_of(directory, found, records)
            _remove_replaced(directory, group, files)
            done.append(f"finished the swap of segment {found.parsed.offset}")
    for kind in SEGMENT_KINDS:
        for found in swaps:
            if found.parsed.kind is kind:
                final = found.name.removesuffix(SWAP_SUFFIX)
                files.rename(path_in(directory, found.name), path_in(directory, final))
    if done or swaps:
        files.sync_directory(directory)
    for group in (group for record in records for group in record.groups):
        _remove_remains(directory, group, files)
    scratch = [name for name in names if is_scratch(name)]
    for name in scratch:
        files.remove(path_in(directory, name))
    if scratch and not done:
        done.append(f"removed {len(scratch)} files of a run that did not finish")
    return done


def _swap_records(directory: str) -> list[SwapRecord]:
    paths = [
        path_in(directory, name)
        for name in list_names(directory)
        if is_scratch(name) and name.endswith("-swap.tmp")
    ]
    return [record for path in paths if (record := read_swap_record(path)) is not None]


def _with_suffix(names: list[str], suffix: str) -> list[_Found]:
    parsed = [(name, parse_file_name(name)) for name in names if name.endswith(suffix)]
    return [
        _Found(name, file)
        for name, file in parsed
        if file is not None and file.suffix == suffix and file.kind in SEGMENT_KINDS
    ]


def _group_of(directory: str, log: _Found, records: list[SwapRecord]) -> SwapGroup:
    """The segments a finished `.log.swap` replaces."""
    base_offset = log.parsed.offset
    for record in records:
        for group in record.groups:
            if group.base_offset == base_offset:
                return group
    scan = scan_headers(path_in(directory, log.name))
    scan.raise_if_corrupt()
    next_offset = int(scan.rows["last_offset"][-1]) + 1 if scan.rows.size else base_offset
    inside = [
        file.offset
        for name in list_names(directory)
        if (file := parse_file_name(name)) is not None
        and file.kind is LogFileKind.LOG
        and file.suffix == LIVE_SUFFIX
        and base_offset <= file.offset < next_offset
    ]
    return SwapGroup(base_offset, tuple(sorted({base_offset, *inside})))


def _remove_replaced(directory: str, group: SwapGroup, files: LocalFiles) -> None:
    for source in group.sources:
        for kind in SEGMENT_KINDS:
            files.remove(path_in(directory, f"{source:020d}{kind}"))
    remove_snapshots(directory, group, files)


def _remove_remains(directory: str, group: SwapGroup, files: LocalFiles) -> None:
    """Remove the `.deleted` files and snapshots of a group whose swap went through; a group that is
    old keeps both.

    It went through if one of its sources lies there as `.deleted`, or a source other than the
    surviving one is gone.
    """
    deleted = [
        name
        for source in group.sources
        for kind in SEGMENT_KINDS
        if os.path.lexists(path_in(directory, name := f"{source:020d}{kind}{DELETED_SUFFIX}"))
    ]
    others = [source for source in group.sources if source != group.base_offset]
    is_new = any(not Path(directory, log_file_name(source)).exists() for source in others)
    if deleted or is_new:
        for name in deleted:
            files.remove(path_in(directory, name))
        if is_new:
            remove_snapshots(directory, group, files)
