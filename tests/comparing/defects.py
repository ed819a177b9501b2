"""Defects of one copy of a partition, seeded: what is done to its files, and where it must be told.

A defect is drawn so that consumers get something else by it: of what cleaning may have taken anyway
nobody could tell.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader, pack_batch, parse_batch
from kafkalog.format.transaction_index import (
    AbortedTxn,
    pack_transaction_index,
    parse_transaction_index,
)
from tests.support.reference.replicas import Copy, compare_copies

KINDS = ("changed", "dropped", "duplicated", "resurrected", "marker-lost")


@dataclass(frozen=True)
class Batch:
    """A batch of a file: its bytes, and what it is (None for a legacy entry)."""

    log: Path
    position: int
    data: bytes
    header: RecordBatchHeader | None
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Defect:
    """What was done, and an offset that must be told of."""

    kind: str
    copy: int
    offset: int


def batches_of(log_dir: Path) -> list[Batch]:
    found = []
    for log in sorted(log_dir.glob("*/*.log")):
        data, position = log.read_bytes(), 0
        while position < len(data):
            (length,) = struct.unpack_from(">i", data, position + 8)
            part = data[position : position + 12 + length]
            is_legacy = part[16] < 2
            header, records = (None, []) if is_legacy else parse_batch(part)
            found.append(Batch(log, position, part, header, tuple(records)))
            position += len(part)
    return found


def do_damage(
    rnd: random.Random, kind: str, log_dirs: Sequence[Path], copies: Sequence[Copy]
) -> Defect | None:
    """Do it to a copy; None where no place of this partition is fit for it."""
    for copy in rnd.sample(range(len(log_dirs)), len(log_dirs)):
        batches = batches_of(log_dirs[copy])
        data = [b for b in batches if b.header is not None and b.records]
        rnd.shuffle(data)
        found = _DAMAGES[kind](rnd, copy, batches, data, copies)
        if found is not None:
            return found
    return None


def _write(batch: Batch, new: bytes) -> None:
    content = batch.log.read_bytes()
    end = batch.position + len(batch.data)
    batch.log.write_bytes(content[: batch.position] + new + content[end:])


def _others(copies: Sequence[Copy], copy: int) -> list[Copy]:
    return [each for number, each in enumerate(copies) if number != copy]


def _changed(
    rnd: random.Random, copy: int, _: list[Batch], data: list[Batch], copies: Sequence[Copy]
) -> Defect | None:
    for batch in data:
        header = batch.header
        assert header is not None
        if header.is_control:
            continue
        at = rnd.randrange(len(batch.records))
        record = batch.records[at]
        if not any(record.offset in other.rows for other in _others(copies, copy)):
            continue
        changes = [
            replace(record, value=(record.value or b"") + b"!"),
            replace(record, timestamp=record.timestamp + 1),
            replace(record, headers=(*record.headers, (b"new", None))),
            replace(record, key=(record.key or b"") + b"!"),
        ]
        if header.attributes & 8:  # of log-append time a record's own counts for nothing
            changes.pop(1)
        records = [*batch.records]
        records[at] = rnd.choice(changes)
        _write(batch, _packed(header, records))
        return Defect("changed", copy, record.offset)
    return None


def _packed(header: RecordBatchHeader, records: Sequence[Record]) -> bytes:
    """The batch with other records; all else is as it was."""
    horizon = header.base_timestamp if header.has_delete_horizon else None
    return pack_batch(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        codec=header.codec,
        timestamp_type=header.timestamp_type,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        delete_horizon_ms=horizon,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )


def _dropped(
    rnd: random.Random, copy: int, batches: list[Batch], data: list[Batch], copies: Sequence[Copy]
) -> Defect | None:
    for batch in data[:20]:
        header = batch.header
        assert header is not None
        is_dense = len(batch.records) == header.next_offset - header.base_offset
        if header.is_control or batch is batches[-1] or not is_dense or header.has_delete_horizon:
            continue
        # Superseded records that are gone from a cleaned range are no difference.
        offsets = [record.offset for record in batch.records]
        rows = {at: row for at, row in copies[copy].rows.items() if at not in offsets}
        without = [*copies[:copy], replace(copies[copy], rows=rows), *copies[copy + 1 :]]
        told = {offset for _, offset, _ in compare_copies(without)} & set(offsets)
        if told and header.next_offset < copies[copy].end:
            _write(batch, b"")
            return Defect("dropped", copy, min(told))
    return None


def _duplicated(
    rnd: random.Random, copy: int, _: list[Batch], data: list[Batch], copies: Sequence[Copy]
) -> Defect | None:
    for batch in data:
        assert batch.header is not None
        if any(batch.header.base_offset < other.end for other in _others(copies, copy)):
            _write(batch, batch.data * 2)
            return Defect("duplicated", copy, batch.header.base_offset)
    return None


def _resurrected(
    rnd: random.Random, copy: int, batches: list[Batch], data: list[Batch], copies: Sequence[Copy]
) -> Defect | None:
    """A record where all copies have none, in front of a batch, that another copy has cleaned."""
    cleaned = max(each.cleaned for each in _others(copies, copy))
    taken = {offset for each in copies for offset in each.rows}
    ends: dict[Path, int] = {}
    places = []
    for batch in batches:
        start = ends.get(batch.log, int(batch.log.stem))
        if batch.header is None:
            return None
        places += [(o, batch) for o in range(start, batch.header.base_offset)[:50] if o < cleaned]
        ends[batch.log] = batch.header.next_offset
    places = [(offset, batch) for offset, batch in places if offset not in taken]
    if not places:
        return None
    offset, batch = rnd.choice(places)
    ghost = pack_batch([Record(offset, 1_700_000_000_000, b"a key that is gone", b"value")])
    _write(batch, ghost + batch.data)
    return Defect("resurrected", copy, offset)


def _marker_lost(
    rnd: random.Random, copy: int, batches: list[Batch], data: list[Batch], copies: Sequence[Copy]
) -> Defect | None:
    for batch in data:
        header = batch.header
        assert header is not None
        if not header.is_control or header.producer_id < 0 or batch is batches[-1]:
            continue
        offset = header.base_offset
        if not any(offset in other.rows for other in _others(copies, copy)):
            continue
        own = copies[copy].rows
        before = [
            at
            for at, row in own.items()
            if at < offset and row.producer_id == header.producer_id and row.marker
        ]
        first = [
            at
            for at, row in own.items()
            if max(before, default=-1) < at < offset
            and row.is_transactional
            and row.producer_id == header.producer_id
        ]
        behind = [
            at
            for at, row in sorted(own.items())
            if at > offset and row.producer_id == header.producer_id and row.marker
        ]
        # The next marker of the producer speaks for it then: another kind, or none at all.
        if first and (not behind or own[behind[0]].marker != own[offset].marker):
            _write(batch, b"")
            ended = behind[0] if behind and own[behind[0]].marker == "ABORT" else -1
            _go_without(batch.log.parent, header.producer_id, offset, min(first), ended)
            return Defect("marker-lost", copy, min(first))
    return None


def _go_without(
    directory: Path, producer_id: int, marker: int, first_offset: int, next_abort: int
) -> None:
    """The transaction indexes as of a broker that never got the marker: no entry by it, and one of
    the next ABORT begins with the records in front of it.
    """
    has_entry = False
    for file in directory.glob("*.txnindex"):
        entries = parse_transaction_index(file.read_bytes(), int(file.stem), str(file))
        kept = []
        for entry in entries:
            if entry.producer_id == producer_id and entry.last_offset == marker:
                continue
            if entry.producer_id == producer_id and entry.last_offset == next_abort:
                entry = replace(entry, first_offset=first_offset)
            elif marker < entry.last_offset and not 0 <= next_abort < entry.last_offset:
                # What ended meanwhile was written while this transaction was still open.
                stable = min(entry.last_stable_offset, first_offset)
                entry = replace(entry, last_stable_offset=stable)
            kept.append(entry)
        file.write_bytes(pack_transaction_index(kept))
        has_entry |= len(kept) > 0 and any(
            entry.producer_id == producer_id and entry.last_offset == next_abort for entry in kept
        )
    if next_abort >= 0 and not has_entry:
        # Without the marker in front of it that ABORT has ended something.
        base = max(base for log in directory.glob("*.log") if (base := int(log.stem)) <= next_abort)
        file = directory / f"{base:020d}.txnindex"
        entries = parse_transaction_index(file.read_bytes(), base) if file.exists() else []
        entries.append(AbortedTxn(producer_id, first_offset, next_abort, first_offset))
        entries.sort(key=lambda entry: entry.last_offset)
        file.write_bytes(pack_transaction_index(entries))


_DAMAGES = {
    "changed": _changed,
    "dropped": _dropped,
    "duplicated": _duplicated,
    "resurrected": _resurrected,
    "marker-lost": _marker_lost,
}
