"""What reads a view: `plan` finds the pieces, `read` turns a task's pieces into rows.

`plan` looks at directories and indexes only. `read` needs nothing but the task and the request, so
it runs as well in another process. A view's module has one ViewReader for each of its views, and
the table in `views` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import pyarrow as pa

from kafkalog.log.inventory import PartitionInventory
from kafkalog.reading.conditions import EVERYTHING, RowFilter
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.splits import SplitSizes

Piece = TypeVar("Piece")


@dataclass(frozen=True, slots=True)
class ScanNeeds:
    """What a scan is asked for beside view and selection: which rows, how large its tasks are, and
    whether it wants to know what became of transactions."""

    row_filter: RowFilter = EVERYTHING
    sizes: SplitSizes = field(default_factory=SplitSizes)
    with_transactions: bool = False

    @classmethod
    def of(cls, request: ReadRequest, sizes: SplitSizes | None = None) -> ScanNeeds:
        """What a request needs of its plan."""
        asks_states = "transactionState" in request.names
        return cls(request.row_filter, sizes or SplitSizes(), asks_states)

    def wanted(self, partitions: Sequence[PartitionInventory]) -> list[PartitionInventory]:
        """Those whose rows may pass, of a view with the directory's topic and partition."""
        return [p for p in partitions if self.row_filter.accepts(p.topic_partition)]


@dataclass(frozen=True, slots=True)
class ScanTask(Generic[Piece]):
    """What one task reads: pieces that the view's `plan` made and its `read` takes. Can be
    pickled."""

    view: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class ViewReader(Generic[Piece]):
    """How one view, or several of a kind, is read.

    plan: tasks in the order of topic, partition and offset, of the selected partitions in order;
    none where there is nothing to read. read: the rows of a task; what a mode leaves out is counted
    (`malformed` says of what). sizes: how large a split is where nobody asks for a size. is_of:
    whether a topic can be one of the view's, where no topics are asked for.
    """

    plan: Callable[
        [str, Sequence[PartitionInventory], PartitionSelection, ScanNeeds], list[ScanTask[Piece]]
    ]
    read: Callable[[ScanTask[Piece], ReadRequest, ReadCounts], Iterator[pa.RecordBatch]]
    malformed: str = "batches"
    sizes: Callable[[ReadRequest], SplitSizes] = lambda request: SplitSizes()
    is_of: Callable[[str, str], bool] = lambda view, topic: True

    def sizes_of(
        self, request: ReadRequest, *, split_bytes: int | None, min_splits: int | None
    ) -> SplitSizes:
        """As asked for; otherwise such that a task has enough to do with what it reads."""
        if split_bytes:
            return SplitSizes(split_bytes, min_splits)
        return replace(self.sizes(request), min_splits=min_splits)


def tasks_of(view: str, pieces: Sequence[Piece], *, pieces_per_task: int) -> list[ScanTask[Piece]]:
    """Tasks of so many pieces each."""
    return [
        ScanTask(view, tuple(pieces[first : first + pieces_per_task]))
        for first in range(0, len(pieces), pieces_per_task)
    ]
