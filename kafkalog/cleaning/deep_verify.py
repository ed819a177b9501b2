"""Compare a written group, record by record, with what `survivors` says has to stay (`--verify
deep`), before any live file moves.

Batches go one to one from source to output and never change their order, so both are walked side
by side, some at a time. A difference is a CorruptRecordError that names file and offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.cleaning.compared_records import Part, read_parts
from kafkalog.cleaning.finished_group import FinishedGroup
from kafkalog.cleaning.survivors import Survivors
from kafkalog.errors import CorruptIndexError, CorruptRecordError
from kafkalog.format.file_names import log_file_name, transaction_index_file_name
from kafkalog.format.transaction_index import parse_transaction_index
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.planning.compaction_plan import CompactionPlan, SegmentGroup
from kafkalog.resources.memory import MemoryBudget

# What a rebuilt batch must have in common with what was expected of it; one that is copied all.
_FIELDS = (
    "last_offset",
    "records_count",
    "attributes",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "partition_leader_epoch",
    "magic",
)


class _Written:
    """The batches of a written segment, some at a time."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self._parts: Iterator[Part] = read_parts(path, ChunkBuffers(), max_bytes)
        self._waiting: Part | None = None

    def take(self, count: int) -> Part | None:
        """Up to `count` batches; None behind the last."""
        while self._waiting is None or not self._waiting.rows.size:
            self._waiting = next(self._parts, None)
            if self._waiting is None:
                return None
        rows, records = self._waiting.rows, self._waiting.records
        first = rows[:count]
        size = int(first["records_count"].sum(dtype=np.int64))
        self._waiting = Part(rows[count:], records.slice(size))
        return Part(first, records.slice(0, size))


class DeepVerification:
    """Of the groups of one round, in their order."""

    def __init__(
        self,
        plan: CompactionPlan,
        groups: Sequence[SegmentGroup],
        aborted: AbortedTransactions,
        end_offset: int,
        budget: MemoryBudget,
    ) -> None:
        """Reads all sources once, see `Survivors`; those of groups that were verified need not be
        there any more. RecordTooLargeError for a batch that is too large to be compared.
        """
        self._survivors = Survivors(plan, groups, aborted, end_offset, budget)
        self._max_bytes = budget.max_compared_bytes

    def rewind(self, aborted: AbortedTransactions) -> None:
        """Begin again with the first group."""
        self._survivors.rewind(aborted)

    def verify(self, group: SegmentGroup, finished: FinishedGroup) -> None:
        """Compare the next group: CorruptRecordError for the first batch, record or field that
        differs, CorruptIndexError for a transaction index that lists other transactions than those
        whose markers stay.
        """
        _verify(group, finished, self._survivors, self._max_bytes)


def _verify(
    group: SegmentGroup, finished: FinishedGroup, survivors: Survivors, max_bytes: int
) -> None:
    outputs = {output.name: output.path for output in finished.outputs}
    path = outputs[log_file_name(finished.base_offset)]
    written = _Written(path, max_bytes)
    # Both sides come in order, but in parts of their own sizes: compare as many batches as both
    # have at hand, and go on with what is left of either.
    for part in survivors.parts(group):
        rows, records = part.rows, part.records
        while rows.size:
            found = written.take(rows.size)
            if found is None:
                raise _differs("a batch that has to stay is not there", rows[0], path)
            count = found.rows.size
            size = int(rows[:count]["records_count"].sum(dtype=np.int64))
            _compare(Part(rows[:count], records.slice(0, size)), found, path)
            rows, records = rows[count:], records.slice(size)
    left = written.take(1)
    if left is not None:
        raise _differs("a batch that has to go is there", left.rows[0], path)
    name = transaction_index_file_name(finished.base_offset)
    # An index entry must be there for each aborted transaction whose marker stays, and for no
    # other: readers ask the index alone whom to leave out.
    listed = []
    if name in outputs:
        data = Path(outputs[name]).read_bytes()
        listed = parse_transaction_index(data, finished.base_offset, outputs[name])
    ended = survivors.take_ended()
    if listed != ended:
        raise CorruptIndexError(
            f"verify deep: {len(listed)} aborted transactions are listed, {len(ended)} have a "
            "marker that stays, or they are others",
            path=outputs.get(name, path),
        )


def _compare(wanted: Part, found: Part, path: str) -> None:
    # Batches first: where one is missing or too many, all records behind it would seem to differ.
    bases = wanted.rows["base_offset"] != found.rows["base_offset"]
    if bases.any():
        b = int(np.argmax(bases))
        is_missing = wanted.rows["base_offset"][b] < found.rows["base_offset"][b]
        what = "has to stay is not there" if is_missing else "has to go is there"
        row = (wanted if is_missing else found).rows[b]
        raise _differs(f"a batch that {what}", row, path)
    _compare_records(wanted.records, found.records, found.rows, path)
    for name in _FIELDS:
        _compare_field(name, wanted.rows, found.rows, np.ones(found.rows.size, np.bool_), path)
    # A batch that is copied must be the source's to the bit; of one that was compressed anew
    # neither bytes nor size need be what anybody else's codec gives.
    copied = wanted.rows["crc"] != -1
    for name in ("crc", "size_in_bytes"):
        _compare_field(name, wanted.rows, found.rows, copied, path)


def _compare_field(
    name: str,
    wanted: NDArray[np.void],
    found: NDArray[np.void],
    which: NDArray[np.bool_],
    path: str,
) -> None:
    differs = (wanted[name] != found[name]) & which
    if differs.any():
        b = int(np.argmax(differs))
        raise _differs(f"{name} is {found[name][b]}, has to be {wanted[name][b]}", found[b], path)


def _compare_records(
    wanted: pa.RecordBatch, found: pa.RecordBatch, rows: NDArray[np.void], path: str
) -> None:
    if wanted.equals(found):
        return
    offsets, others = (batch["offset"].to_numpy() for batch in (wanted, found))
    missing = np.setdiff1d(offsets, others)
    extra = np.setdiff1d(others, offsets)
    for which, what in ((missing, "has to stay is not there"), (extra, "has to go is there")):
        if which.size:
            raise _record_differs(f"a record that {what}", int(which[0]), path)
    if not np.array_equal(offsets, others):
        raise _record_differs("records are in another order", int(others[0]), path)
    for name in ("timestamp", "key", "value", "headers"):
        if not wanted[name].equals(found[name]):
            r = next(r for r in range(len(others)) if wanted[name][r] != found[name][r])
            raise _record_differs(f"the record's {name} is not its source's", int(others[r]), path)
    raise _differs("records differ", rows[0], path)


def _record_differs(what: str, offset: int, path: str) -> CorruptRecordError:
    return CorruptRecordError(f"verify deep: {what}", path=path, offset=offset)


def _differs(what: str, row: np.void, path: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"verify deep: {what}",
        path=path,
        position=int(row["position"]),
        offset=int(row["base_offset"]),
    )
