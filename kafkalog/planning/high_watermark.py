"""The high watermark a plan goes by."""

from __future__ import annotations

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionInventory


def effective_high_watermark(partition: PartitionInventory, given: int | None) -> int | None:
    """The high watermark a broker would start with: within the log; None if nothing tells it.

    `given` is an option's; where both are known the lower one holds. InvalidConfigError if it is
    negative.
    """
    if given is not None and given < 0:
        raise InvalidConfigError(f"high watermark {given} is negative")
    known = [
        offset for offset in (given, partition.checkpoints.high_watermark) if offset is not None
    ]
    if not known:
        return None
    return min(max(min(known), partition.log_start_offset), partition.log_end_offset)
