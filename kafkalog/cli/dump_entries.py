"""Indexes, producer snapshots and small text files as lines: Kafka's where its tool knows the file.

An index is read as Kafka's tool reads it, up to the first zero entry after the first, and compared
with the log beside it; what does not agree is said on stderr in the tool's words.

Source: Kafka DumpLogSegments, OffsetIndex.sanityCheck, TimeIndex.sanityCheck.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.cli.dump_json import json_lines
from kafkalog.cli.dump_options import DumpOptions
from kafkalog.cli.output import say, write_bytes
from kafkalog.columns.arrow_arrays import bytes_array
from kafkalog.columns.column import arrow_schema
from kafkalog.columns.entries import Entries, build_entries
from kafkalog.columns.texts import join, lines_of, number_text
from kafkalog.errors import CorruptIndexError, CorruptSnapshotError
from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.format.file_names import LIVE_SUFFIX, log_file_name, parse_file_name
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.format.time_index import TIME_INDEX_ENTRY
from kafkalog.format.transaction_index import AbortedTxn, parse_transaction_index
from kafkalog.log.listing import path_text
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.small_files import is_there, read_small_file
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.reading.views import view_columns
from kafkalog.remote.stores import bucket_uri

Int64s = npt.NDArray[np.int64]
Numbers = dict[str, Int64s]
Found = list[tuple[int, int]]

_NO_LOG = "there is no .log beside it, so its entries were not compared with one"


def dump_offset_index(path: Path, base_offset: int, options: DumpOptions) -> bool:
    """Print an offset index; whether something is wrong with it."""
    entries, file_bytes = _raw_entries(path, OFFSET_INDEX_ENTRY)
    if not file_bytes // OFFSET_INDEX_ENTRY.itemsize:
        _remark(f"{path} is empty.", options)
        return False
    offsets = entries["relative_offset"].astype(np.int64) + base_offset
    if options.sanity_only:
        _check_sanity(path, file_bytes, OFFSET_INDEX_ENTRY, base_offset, offsets)
        _remark(f"{path} passed sanity check.", options)
        return False
    count = _genuine(offsets, base_offset)
    offsets, positions = offsets[:count], entries["position"][:count].astype(np.int64)
    if not options.verify_only:
        lines = join(b"offset: ", number_text(offsets), b" position: ", number_text(positions))
        _put(
            path,
            "offset_index",
            base_offset,
            lines,
            options,
            {"offset": offsets, "position": positions},
        )
    return _check_offset_index(path, base_offset, offsets, positions)


def dump_time_index(path: Path, base_offset: int, options: DumpOptions) -> bool:
    """Print a time index; whether something is wrong with it."""
    entries, file_bytes = _raw_entries(path, TIME_INDEX_ENTRY)
    timestamps = entries["timestamp"].astype(np.int64)
    offsets = entries["relative_offset"].astype(np.int64) + base_offset
    if options.sanity_only:
        if timestamps.size and timestamps[-1] < timestamps[0]:
            raise CorruptIndexError(
                f"the last timestamp {timestamps[-1]} is below the first one, {timestamps[0]}",
                path=path_text(path),
            )
        _check_sanity(path, file_bytes, TIME_INDEX_ENTRY, base_offset, offsets)
        _remark(f"{path} passed sanity check.", options)
        return False
    count = _genuine(offsets, base_offset)
    timestamps, offsets = timestamps[:count], offsets[:count]
    if not options.verify_only:
        lines = join(b"timestamp: ", number_text(timestamps), b" offset: ", number_text(offsets))
        numbers = {"timestampMs": timestamps, "offset": offsets}
        _put(path, "time_index", base_offset, lines, options, numbers)
    return _check_time_index(path, base_offset, timestamps, offsets)


def dump_transaction_index(path: Path, base_offset: int, options: DumpOptions) -> bool:
    """Print a transaction index. CorruptIndexError if it is none."""
    found = parse_transaction_index(read_small_file(path), base_offset, path_text(path))
    numbers = _columns(found, AbortedTxn, _TRANSACTION_COLUMNS)
    labelled = [(f" {name}: ".encode(), number_text(v)) for name, v in numbers.items()]
    lines = join(b"version: 0", *(part for pair in labelled for part in pair))
    _put(path, "transaction_index", base_offset, lines, options, numbers)
    return False


def dump_snapshot(path: Path, offset: int, options: DumpOptions) -> bool:
    """Print a producer snapshot; whether it is corrupt."""
    try:
        found = parse_producer_snapshot(read_small_file(path), path_text(path))
    except CorruptSnapshotError as error:
        say(str(error))
        return True
    lines = bytes_array([_snapshot_line(entry) for entry in found])
    numbers = _columns(found, ProducerEntry, _PRODUCER_COLUMNS)
    _put(path, "producer_snapshot", offset, lines, options, numbers)
    return False


_TRANSACTION_COLUMNS = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
_PRODUCER_COLUMNS = (
    *("producerId", "producerEpoch", "lastSequence", "lastOffset", "offsetDelta", "timestampMs"),
    *("coordinatorEpoch", "currentTxnFirstOffset"),
)


def _columns(found: list[Any], kind: type, names: tuple[str, ...]) -> dict[str, Int64s]:
    return {
        name: np.array([getattr(entry, attribute.name) for entry in found], np.int64)
        for name, attribute in zip(names, fields(kind), strict=True)
    }


def _snapshot_line(entry: ProducerEntry) -> bytes:
    start = entry.current_txn_first_offset
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} coordinatorEpoch: "
        f"{entry.coordinator_epoch} currentTxnFirstOffset: "
        f"{f'OptionalLong[{start}]' if start >= 0 else 'OptionalLong.empty'} lastTimestamp: "
        f"{entry.timestamp}"
    )
    if entry.last_offset >= 0:
        first = entry.last_sequence - entry.offset_delta
        if entry.last_sequence < 0:
            first = -1
        elif first < 0:  # the sequence went on with 0 after 2147483647
            first += 2**31
        line += (
            f" firstSequence: {first} lastSequence: {entry.last_sequence} lastOffset: "
            f"{entry.last_offset} offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
        )
    return line.encode()


# -- reading and printing --------------------------------------------------------------------------


def _raw_entries(path: Path, kind: np.dtype[Any]) -> tuple[npt.NDArray[Any], int]:
    data = read_small_file(path)
    return np.frombuffer(data, kind, len(data) // kind.itemsize), len(data)


def _genuine(offsets: Int64s, base_offset: int) -> int:
    """How many entries come before the first one, but for entry 0, at the base offset."""
    padding = np.flatnonzero(offsets[1:] == base_offset)
    return int(padding[0]) + 1 if padding.size else offsets.size


def _remark(text: str, options: DumpOptions) -> None:
    """A line about a file: data for people, but no row."""
    if options.as_json:
        say(text)
    else:
        write_bytes(f"{text}\n".encode())


def _check_sanity(
    path: Path, file_bytes: int, kind: np.dtype[Any], base_offset: int, offsets: Int64s
) -> None:
    if offsets.size and offsets[-1] < base_offset:
        raise CorruptIndexError(
            f"the last offset {offsets[-1]} is below the base offset", path=path_text(path)
        )
    if file_bytes % kind.itemsize:
        raise CorruptIndexError(
            f"{file_bytes} bytes, not a multiple of {kind.itemsize}", path=path_text(path)
        )


def _put(
    path: Path, view: str, offset: int, lines: pa.Array, options: DumpOptions, numbers: Numbers
) -> None:
    if not options.as_json:
        write_bytes(lines_of(join(lines, b"\n")))
        return
    directory = parse_partition_dir_name(path.resolve().parent.name)
    partition = directory.topic_partition if directory else None
    count = len(next(iter(numbers.values())))
    place: Mapping[str, object] = {
        "topic": partition.topic if partition else "",
        "partition": partition.partition if partition else -1,
        "segmentBaseOffset": offset,
        "snapshotOffset": offset,
        "path": path_text(path),
    }
    columns = {"entry": np.arange(count), **numbers}
    wanted = [c for c in view_columns(view) if c.name in columns or c.name in place]
    names = [column.name for column in wanted]
    batch = build_entries(Entries(count, columns, place), arrow_schema(wanted), names)
    write_bytes(lines_of(json_lines(view, batch, options)))


# -- against the log -------------------------------------------------------------------------------


def _log_beside(path: Path, base_offset: int) -> Path:
    """The `.log` in the same state: that of an index marked `.deleted` is marked so, too."""
    name = parse_file_name(path.name)
    return path.with_name(log_file_name(base_offset, name.suffix if name else LIVE_SUFFIX))


def _check_offset_index(path: Path, base_offset: int, offsets: Int64s, positions: Int64s) -> bool:
    log = _log_beside(path, base_offset)
    if not is_there(log):
        say(f"{path_text(path)}: {_NO_LOG}")
        return True
    rows = scan_headers(str(log)).rows
    at = np.minimum(np.searchsorted(rows["position"], positions), max(rows.size - 1, 0))
    wrong: Found = []
    no_batch = []
    for entry, (offset, position) in enumerate(
        zip(offsets.tolist(), positions.tolist(), strict=True)
    ):
        if not rows.size or rows["position"][at[entry]] != position:
            no_batch.append(f"  Index offset: {offset}, no batch begins at {position}")
        elif rows["last_offset"][at[entry]] != offset:
            wrong.append((offset, int(rows["last_offset"][at[entry]])))
    if wrong or no_batch:
        say(f"Mismatches in :{_absolute(path)}")
        for offset, log_offset in reversed(wrong):
            say(f"  Index offset: {offset}, log offset: {log_offset}")
        for line in no_batch:
            say(line)
    return bool(wrong or no_batch)


def _check_time_index(path: Path, base_offset: int, timestamps: Int64s, offsets: Int64s) -> bool:
    log = _log_beside(path, base_offset)
    if not is_there(log):
        say(f"{path_text(path)}: {_NO_LOG}")
        return True
    rows = scan_headers(str(log)).rows
    batch_of = np.searchsorted(rows["last_offset"], offsets)
    is_within = batch_of < rows.size
    is_last = is_within.copy()
    is_last[is_within] = rows["last_offset"][batch_of[is_within]] == offsets[is_within]
    largest = _largest_timestamps(str(log), rows["position"][batch_of[is_last]])
    mismatched: Found = []
    disordered: Found = []
    missing: Found = []
    previous = NO_TIMESTAMP
    for entry, (timestamp, offset) in enumerate(
        zip(timestamps.tolist(), offsets.tolist(), strict=True)
    ):
        if not is_last[entry]:
            found = int(rows["last_offset"][batch_of[entry]]) if is_within[entry] else -1
            missing.append((offset, found))
        else:
            in_log = largest.get(int(rows["position"][batch_of[entry]]), NO_TIMESTAMP)
            if in_log != timestamp:
                mismatched.append((timestamp, in_log))
            if previous >= timestamp:
                disordered.append((timestamp, previous))
        previous = timestamp
    _say_all(f"Found timestamp mismatch in :{_absolute(path)}",
             "  Index timestamp: {}, log timestamp: {}", mismatched)  # fmt: skip
    _say_all(f"Found out of order timestamp in :{_absolute(path)}",
             "  Index timestamp: {}, Previously indexed timestamp: {}", disordered)  # fmt: skip
    _say_all(f"The following indexed offsets are not found in :{_absolute(path)}",
             "Indexed offset: {}, found log offset: {}", missing)  # fmt: skip
    return bool(mismatched or disordered or missing)


def _say_all(title: str, line: str, found: Found) -> None:
    if found:
        say(title)
    for one, other in found:
        say(line.format(one, other))


def _largest_timestamps(path: str, positions: Int64s) -> dict[int, int]:
    """Largest timestamp of the records of the batches at these positions, -1 without any."""
    found: dict[int, int] = {}
    arena = Arena()
    for chunk in read_chunks(path):
        rows = chunk.rows[np.isin(chunk.rows["position"], positions)]
        if not rows.size:
            continue
        for _, areas in iterate_record_areas(chunk.buf, chunk.position, rows, arena, path=path):
            spans = decode_spans(areas, areas.rows, path)
            largest = np.full(areas.rows.size, NO_TIMESTAMP, np.int64)
            np.maximum.at(largest, spans.batch_indexes[: spans.n], spans.timestamps[: spans.n])
            found |= zip(areas.rows["position"].tolist(), largest.tolist(), strict=True)
    return found


DUMPERS: dict[str, Callable[[Path, int, DumpOptions], bool]] = {
    ".index": dump_offset_index,
    ".timeindex": dump_time_index,
    ".txnindex": dump_transaction_index,
    ".snapshot": dump_snapshot,
}


def _absolute(path: Path) -> str:
    """As Kafka names a file of this machine; in a bucket by its URI."""
    return bucket_uri(path) or str(path.absolute())
