"""What an audit asks of the files of a partition beside its headers, looked at once.

Several rules go by them: which indexes a broker makes anew, the leader epochs, whether the log
begins as a compacted one. Kept with the headers: of a directory in which nothing has changed no
file is opened again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import EpochEntry
from kafkalog.log.compaction_signs import FIRST_BATCHES, compaction_mark, mark_of_rows
from kafkalog.log.inventory import JsonFacts, PartitionInventory
from kafkalog.log.retention_facts import read_leader_epochs, unusable_indexes
from kafkalog.log.segment_headers import HeaderScan


@dataclass(frozen=True, slots=True)
class KnownFiles(JsonFacts):
    """`unusable_indexes`: see `log.retention_facts`. `leader_epochs`: (epoch, start offset), None
    without a file; `epochs_problem`: why they cannot be read, else empty. `mark`: what in the first
    batches only compaction leaves, None without one; it is known with `is_mark_known` alone.
    """

    unusable_indexes: tuple[int, ...] = ()
    leader_epochs: tuple[tuple[int, int], ...] | None = None
    epochs_problem: str = ""
    mark: str | None = None
    is_mark_known: bool = False

    @property
    def epochs(self) -> Sequence[EpochEntry]:
        """The leader epochs; none of a file that is not there or cannot be read."""
        return self.leader_epochs or ()

    def compaction_mark(self, partition: PartitionInventory) -> str | None:
        """The mark; read now where the headers did not tell. OSError or LogChangedError."""
        if self.is_mark_known:
            return self.mark
        return compaction_mark(partition.segments[:1], FIRST_BATCHES)


def look_at_files(partition: PartitionInventory, first: HeaderScan | None = None) -> KnownFiles:
    """`first`: the scan of the first segment, if one scan had all of it. What cannot be read is in
    the result.
    """
    epochs, problem = None, ""
    try:
        epochs = read_leader_epochs(partition.path)
    except (KafkaLogError, OSError) as error:
        problem = str(error)
    # Of more batches than a look at the log's beginning takes, that look decides what it sees.
    is_mark_known = first is not None and first.rows.size <= FIRST_BATCHES
    return KnownFiles(
        unusable_indexes=unusable_indexes(partition),
        leader_epochs=None if epochs is None else tuple(epochs),
        epochs_problem=problem,
        mark=mark_of_rows(first.rows, partition.segments[0].base_offset)
        if first is not None and is_mark_known
        else None,
        is_mark_known=is_mark_known,
    )
