"""Transactions in plain words: what aborted data is, which markers still mark something, and what a
read_committed consumer is given.

All of it over lists of batches; nothing is kept between calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader
from kafkalog.format.transaction_index import AbortedTxn

Batch = tuple[RecordBatchHeader, list[Record]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A transactional or control batch as cleaning sees it; `kind` is None for data, "empty" for a
    control batch without records.
    """

    producer_id: int
    last_offset: int
    kind: str | None


def nothing_left(batches: Sequence[Seen], known: Sequence[AbortedTxn]) -> list[bool]:
    """Per batch: data that was aborted, or a marker with nothing to mark.

    Each question is answered by looking back over the batches before, instead of by a state.
    """
    return [_is_spent(batches[: i + 1], known) for i in range(len(batches))]


def kept_entries(batches: Sequence[Seen], known: Sequence[AbortedTxn]) -> list[AbortedTxn]:
    """Index entries of the aborted transactions that ended with data of theirs before."""
    found = []
    for i, batch in enumerate(batches):
        if batch.kind == "ABORT" and not _is_spent(batches[: i + 1], known):
            entry = _ongoing(batches[: i + 1], known)
            assert entry is not None
            found.append(entry)
    return found


def _is_spent(so_far: Sequence[Seen], known: Sequence[AbortedTxn]) -> bool:
    batch = so_far[-1]
    before = so_far[:-1]
    if batch.kind == "empty":
        return True
    if batch.kind is None:
        return _ongoing(so_far, known) is not None
    own = [b for b in before if b.producer_id == batch.producer_id]
    if batch.kind == "ABORT":
        if _ongoing(so_far, known) is None:
            return True
        since = _since_last(own, "ABORT")
        n = len(so_far)
        return not any(
            b.kind is None and _ongoing([*so_far[: _index(so_far, b, n)], b], known) for b in since
        )
    if batch.kind == "COMMIT":
        since = _since_last(own, "COMMIT")
        n = len(so_far)
        return not any(
            b.kind is None and not _ongoing([*so_far[: _index(so_far, b, n)], b], known)
            for b in since
        )
    return False


def _index(batches: Sequence[Seen], one: Seen, end: int) -> int:
    return next(i for i in range(end) if batches[i] is one)


def _since_last(batches: Sequence[Seen], kind: str) -> Sequence[Seen]:
    ends = [i for i, b in enumerate(batches) if b.kind == kind]
    return batches[ends[-1] + 1 :] if ends else batches


def _ongoing(so_far: Sequence[Seen], known: Sequence[AbortedTxn]) -> AbortedTxn | None:
    """The aborted transaction that the last of these batches' producer is in, its marker included.

    An entry begins at the first batch that reaches its first offset, unless one of the same
    producer is still going on then; it is taken out by the next ABORT after that.
    """
    producer_id = so_far[-1].producer_id
    waiting = sorted(
        (entry for entry in known if entry.producer_id == producer_id),
        key=lambda entry: entry.first_offset,
    )
    current: AbortedTxn | None = None
    for number, batch in enumerate(so_far):
        while waiting and waiting[0].first_offset <= batch.last_offset:
            begun = waiting.pop(0)
            current = current or begun
        is_last = number == len(so_far) - 1
        if batch.producer_id == producer_id and batch.kind == "ABORT" and not is_last:
            current = None
    return current


# -- the consumer ----------------------------------------------------------------------------------


def last_stable_offset(batches: Iterable[Batch]) -> int:
    """The first offset of the oldest transaction without a marker, or the log's end."""
    open_since: dict[int, int] = {}
    end = 0
    for header, records in batches:
        end = header.last_offset + 1
        if header.is_control:
            if records:
                open_since.pop(header.producer_id, None)
        elif header.is_transactional:
            open_since.setdefault(header.producer_id, header.base_offset)
    return min(open_since.values(), default=end)


def read_committed(
    batches: Sequence[Batch], index: Sequence[AbortedTxn], start_offset: int = 0
) -> list[Record]:
    """What a read_committed consumer is given from an offset on: data below the last stable offset,
    but for that of aborted transactions, whose list comes from the transaction indexes.
    """
    end = last_stable_offset(batches)
    waiting = sorted(
        (e for e in index if e.last_offset >= start_offset and e.first_offset < end),
        key=lambda entry: entry.first_offset,
    )
    aborted: set[int] = set()
    found: list[Record] = []
    for header, records in batches:
        if header.last_offset < start_offset or header.base_offset >= end:
            continue
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        if header.is_control:
            if records and parse_control_type(records[0].key) == ControlRecordType.ABORT:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            found += [record for record in records if record.offset >= start_offset]
    return found
