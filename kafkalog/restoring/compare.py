"""A restored log against its source: by bytes where that tells all, else record by record."""

from __future__ import annotations

from kafkalog.log.inventory import PartitionInventory
from kafkalog.restoring.cut import LogCut
from kafkalog.restoring.equal import check_equal
from kafkalog.restoring.same_bytes import check_same_bytes
from kafkalog.restoring.segments import Identity


def compared(
    source: PartitionInventory,
    cut: LogCut,
    restored: PartitionInventory,
    identity: Identity,
    max_batch_bytes: int,
) -> int:
    """How many records both have. LogChangedError, OSError as of `check_equal` and
    `check_same_bytes`.

    Record by record where legacy entries have to be opened to count them, and where segments are
    in remote storage, of which some have no transaction index.
    """
    if cut.records is None or any(segment.is_remote for segment in cut.segments):
        return check_equal(source, cut, restored, identity, max_batch_bytes)
    check_same_bytes(cut, restored, identity, max_batch_bytes)
    return cut.records
