"""What a read does about offsets that are not here: raises, or says so and goes on.

Which are missing `log.missing_ranges` says. A proven loss within the offsets of a read is an error
in mode FAILFAST; with the other modes, and with `failOnDataLoss=false`, it is a warning in the log
of the process that plans. So is what may be a loss; what a sound log may look like as well is
reported as information. Reads bounded to other offsets are not concerned, nor are those of single
`.log` files.
"""

from __future__ import annotations

import logging

from kafkalog.errors import OffsetOutOfRangeError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.missing_range import MissingCause, MissingRange
from kafkalog.log.missing_ranges import missing_ranges
from kafkalog.reading.selection import EARLIEST_OFFSET, LATEST, PartitionSelection

# What a sound log may look like.
_INFORMATION = (MissingCause.COMPACTION, MissingCause.STALE)

_logger = logging.getLogger(__name__)


def check_loss(
    partition: PartitionInventory,
    selection: PartitionSelection,
    start_offset: int = 0,
    end_offset: int = MAX_INT64,
) -> None:
    """OffsetOutOfRangeError for offsets from `start_offset` to `end_offset` (excluded) that are
    proven to be missing, unless the selection bears losses; what it bears is said.
    """
    if not selection.reports_loss or selection.file_glob is not None:
        return
    for missing in missing_ranges(partition, start_offset, end_offset):
        if missing.is_proven and selection.refuses_loss:
            raise loss_error(missing)
        level = logging.INFO if missing.cause in _INFORMATION else logging.WARNING
        _logger.log(level, "%s: %s", missing.path, missing)


def loss_error(missing: MissingRange) -> OffsetOutOfRangeError:
    """The error that a read in mode FAILFAST ends with."""
    return OffsetOutOfRangeError(
        f"{missing}; failOnDataLoss=false (fail_on_data_loss=False) or mode PERMISSIVE reads what"
        " is there",
        path=missing.path,
        position=missing.position,
        offset=missing.start_offset,
    )


def wanted_start(
    selection: PartitionSelection, partition: PartitionInventory, start_offset: int | None
) -> int:
    """From where on a missing offset concerns a read that starts at `start_offset`.

    The earliest offset is where the log once began. Behind a time that is looked up nobody knows
    whether what is missing in front of the found record lies at or after it.
    """
    if selection.starting_timestamp is None:
        if selection.starting_offsets == LATEST and start_offset is not None:
            return start_offset
        if isinstance(selection.starting_offsets, str) or start_offset is None:
            return 0
        named = selection.starting_offsets.get(partition.topic_partition)
        return 0 if named == EARLIEST_OFFSET else start_offset
    if start_offset is None:
        return 0
    bases = [s.base_offset for s in partition.segments if s.base_offset <= start_offset]
    if bases and bases[-1] < start_offset:
        return start_offset
    return max(start_offset - 1, 0)
