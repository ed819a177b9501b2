"""Copies of a partition compared in plain words: every record a value in a dict by offset, every
question answered by looking through all of them.

Without histories of leaders and unreadable batches: the copies are whole.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.checkpoints import parse_offset_checkpoint
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.legacy_record import parse_legacy_entry
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.format.record import Record
from kafkalog.format.record_batch import parse_batch
from kafkalog.format.transaction_index import parse_transaction_index

# (kind, offset, the copies that are wrong by their number)
Told = tuple[str, int, frozenset[int]]


@dataclass(frozen=True)
class Row:
    """A record and what its batch says; marker: None for data, else "COMMIT", "ABORT", "other"."""

    record: Record
    producer_id: int = -1
    is_transactional: bool = False
    marker: str | None = None
    is_hidden: bool = False


@dataclass
class Copy:
    """`cleaned`: up to where it was cleaned. snapshots: (offset, producers in a transaction)."""

    end: int = 0
    cleaned: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    snapshots: list[tuple[int, set[int]]] = field(default_factory=list)


def read_copy(log_dir: Path) -> Copy:
    """The only partition of a log dir."""
    (path,) = {log.parent for log in log_dir.glob("*/*.log")}
    copy = Copy()
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    if checkpoint.exists():
        topic, _, partition = path.name.rpartition("-")
        lines = parse_offset_checkpoint(checkpoint.read_bytes())
        copy.cleaned = lines.get((topic, int(partition)), 0)
    aborted = [
        entry
        for file in sorted(path.glob("*.txnindex"))
        for entry in parse_transaction_index(file.read_bytes(), int(file.stem), str(file))
    ]
    for log in sorted(path.glob("*.log")):
        copy.end = max(copy.end, int(log.stem))
        for first, last, shows_cleaning, rows in _batches(log.read_bytes()):
            copy.end = last + 1
            copy.cleaned = max(copy.cleaned, last + 1 if shows_cleaning else 0)
            for row in rows:
                is_hidden = row.is_transactional and any(
                    e.producer_id == row.producer_id
                    and e.first_offset <= last
                    and first <= e.last_offset
                    for e in aborted
                )
                copy.rows[row.record.offset] = Row(
                    row.record, row.producer_id, row.is_transactional, row.marker, is_hidden
                )
    for file in path.glob("*.snapshot"):
        entries = parse_producer_snapshot(file.read_bytes(), str(file))
        ids = {e.producer_id for e in entries if e.current_txn_first_offset >= 0}
        copy.snapshots.append((int(file.stem), ids))
    copy.cleaned = min(copy.cleaned, copy.end)
    return copy


def _batches(data: bytes) -> Iterator[tuple[int, int, bool, list[Row]]]:
    """(first offset, last offset, whether only cleaning leaves it so, its rows)."""
    position = 0
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        if data[position + 16] < 2:
            message, records = parse_legacy_entry(data, position)
            first, last = records[0].offset, max(message.offset, records[-1].offset)
            yield first, last, len(records) < last - first + 1, [Row(r) for r in records]
        else:
            header, records = parse_batch(data, position)
            span = header.last_offset - header.base_offset + 1
            rows = [
                Row(
                    record,
                    header.producer_id,
                    header.is_transactional and not header.is_control,
                    _marker(record) if header.is_control else None,
                )
                for record in records
            ]
            shows = len(records) < span or header.has_delete_horizon
            yield header.base_offset, header.last_offset, shows, rows
        position += 12 + length


def _marker(record: Record) -> str:
    kind = parse_control_type(record.key)
    return kind.name if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT) else "other"


def compare_copies(copies: Sequence[Copy]) -> set[Told]:
    """All that differs."""
    cleaned = max(copy.cleaned for copy in copies)
    offsets = sorted({offset for copy in copies for offset in copy.rows})
    ends, lost_markers = _wrong_ends(copies)
    found = set(ends)
    run: dict[int, int] = {}
    for offset in offsets:
        have = [n for n, copy in enumerate(copies) if offset in copy.rows]
        lack = [n for n, copy in enumerate(copies) if n not in have and offset < copy.end]
        row = copies[have[0]].rows[offset]
        differ = {n for n in have if _content(copies[n].rows[offset]) != _content(row)}
        if differ:
            found.add(("record-differs", offset, frozenset(have)))
        for n in range(len(copies)):
            if n in lack and offset >= cleaned:
                if (n, offset) in lost_markers:
                    continue
                if n not in run:
                    found.add(("missing-range", offset, frozenset({n})))
                run[n] = offset
            else:
                run.pop(n, None)
        if offset < cleaned and row.marker is None and row.record.key is not None and lack:
            keep = [n for n in have if n not in differ]
            found |= set(_of_key(copies, offset, row, keep, lack))
    return _together(found)


def _together(found: set[Told]) -> set[Told]:
    """A value that several tombstones stood behind is told of once, with all who serve it."""
    wrong: dict[tuple[str, int], set[int]] = defaultdict(set)
    rest = set()
    for kind, offset, copies in found:
        if kind == "resurrected-key":
            wrong[kind, offset] |= copies
        else:
            rest.add((kind, offset, copies))
    return rest | {(kind, offset, frozenset(copies)) for (kind, offset), copies in wrong.items()}


def _content(row: Row) -> tuple[object, ...]:
    return row.record, row.producer_id, row.is_transactional, row.marker


def _latest(copy: Copy, key: bytes | None) -> int:
    """The offset of the latest record of a key that consumers of the copy get, -1 without."""
    return max(
        (
            offset
            for offset, row in copy.rows.items()
            if row.record.key == key and row.marker is None and not row.is_hidden
        ),
        default=-1,
    )


def _of_key(
    copies: Sequence[Copy], offset: int, row: Row, have: list[int], lack: list[int]
) -> Iterator[Told]:
    key = row.record.key
    latest = {n: _latest(copies[n], key) for n in (*have, *lack)}
    serving = {n for n in have if latest[n] == offset}
    without = {n for n in lack if latest[n] < offset}
    older = {
        n for n in without if latest[n] >= 0 and copies[n].rows[latest[n]].record.value is not None
    }
    if not serving or not without:
        return
    if row.record.value is None:
        for n in older:
            yield "resurrected-key", latest[n], frozenset({n})
        return
    cleaned = {n for n in without if copies[n].cleaned > offset}
    if not cleaned:
        yield "missing-range", offset, frozenset(without)
        return
    if row.is_transactional:
        markers = [
            (at, other.marker)
            for n in serving
            for at, other in copies[n].rows.items()
            if at > offset and other.marker and other.producer_id == row.producer_id
        ]
        if not markers:
            return
        first, marker = min(markers)
        had_ended = marker == "ABORT" or any(
            offset < at <= first and row.producer_id not in ids
            for n in without
            for at, ids in copies[n].snapshots
        )
        if had_ended or older & cleaned:
            yield "aborted-served-as-committed", offset, frozenset(serving)
            return
    if cleaned <= older:
        yield "missing-range", offset, frozenset(cleaned)
        return
    yield "resurrected-key", offset, frozenset(serving)


def _wrong_ends(copies: Sequence[Copy]) -> tuple[list[Told], set[tuple[int, int]]]:
    """Transactions that a copy serves wrongly; the markers (copy, offset) whose loss these tell."""
    markers: dict[tuple[int, int], tuple[str, set[int]]] = {}
    for n, copy in enumerate(copies):
        for offset, row in copy.rows.items():
            if row.marker in ("COMMIT", "ABORT"):
                markers.setdefault((row.producer_id, offset), (row.marker, set()))[1].add(n)
    # By copy, producer and the marker that ends it on any copy: first offset, whether it is hidden.
    pieces: dict[tuple[int, int, int | None], list[Row]] = defaultdict(list)
    for n, copy in enumerate(copies):
        for offset, row in sorted(copy.rows.items()):
            if row.is_transactional:
                behind = [at for p, at in markers if p == row.producer_id and at > offset]
                pieces[n, row.producer_id, min(behind, default=None)].append(row)
    found: list[Told] = []
    told: set[tuple[int, int]] = set()
    for (n, producer_id, end), rows in pieces.items():
        first = rows[0].record.offset
        if end is None:
            for other, copy in enumerate(copies):
                its = pieces.get((other, producer_id, None))
                begins_later = its is None or its[0].record.offset > first
                if copy.cleaned > first and begins_later:
                    found.append(("open-transaction-forgotten", first, frozenset({n})))
                    break
            continue
        truth, holders = markers[producer_id, end]
        if n not in holders and end >= copies[n].end:
            continue
        own = [
            at
            for at, row in copies[n].rows.items()
            if at > first and row.marker and row.producer_id == producer_id
        ]
        served = "ABORT" if any(row.is_hidden for row in rows) else "COMMIT" if own else "OPEN"
        agree = any(
            h != n
            and (h, producer_id, end) in pieces
            and any(r.is_hidden for r in pieces[h, producer_id, end]) == (truth == "ABORT")
            for h in holders
        )
        if served == truth or (n in holders and not agree):
            continue
        kind = {
            "COMMIT": "aborted-served-as-committed",
            "ABORT": "committed-hidden",
            "OPEN": "open-transaction-forgotten",
        }[served]
        found.append((kind, first, frozenset({n})))
        told.add((n, end))
    return found, told
