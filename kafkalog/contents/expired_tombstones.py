"""Whether batches whose delete horizon has passed still hold a tombstone: a round takes the
tombstones and leaves the horizon to what stays of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kafkalog.batches.batch_table import has_delete_horizon, is_control
from kafkalog.errors import KafkaLogError
from kafkalog.log.index_lookup import walk_headers
from kafkalog.log.inventory import SegmentInfo
from kafkalog.reading.lookups import records_of

# Most logs that hold one have it in the first of such batches.
_MOST_OPENED = 256


def has_expired_tombstone(segments: Sequence[SegmentInfo], limit_ms: int) -> bool:
    """Whether a batch of these closed segments with a horizon up to this time has one. Yes as well
    where so many have none that nobody looks at the rest, or where it cannot be read.
    """
    opened = 0
    try:
        for segment in segments:
            for rows in walk_headers(segment, 0):
                waits = has_delete_horizon(rows) & ~is_control(rows)
                waits &= (rows["base_timestamp"] <= limit_ms) & (rows["records_count"] > 0)
                for row in rows[waits]:
                    spans = records_of(segment, row)
                    opened += 1
                    has_one = bool(np.any(spans.value_lengths[: spans.n] < 0))
                    if has_one or opened == _MOST_OPENED:
                        return True
    except (KafkaLogError, OSError, StopIteration):
        return True
    return False
