"""What in the first batches of a log only compaction leaves.

The cleaner rewrites a log from its first segment on, so a compacted one begins with batches that
have a delete horizon, that hold fewer records than offsets, or between which offsets are missing. A
log that was never compacted has none of these: a leader gives out offsets without gaps. (A log that
`salvage` wrote may have gaps, too.) The first batches are looked at, no more: a check of each
partition costs one or two reads.

Source: Kafka Cleaner.cleanInto, DefaultRecordBatch (KIP-534).
"""

from __future__ import annotations

import numpy as np

from kafkalog.batches.batch_table import shows_compaction
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.segment_file import scan_headers

_BATCHES = 1000


def find_compaction_mark(partition: PartitionInventory) -> str | None:
    """The first such batch of the first segment, in words; None without one. OSError if the file
    cannot be read.
    """
    if not partition.segments:
        return None
    first = partition.segments[0]
    rows = scan_headers(first.path, most_rows=_BATCHES).rows
    if not rows.size:
        return None
    marked = np.flatnonzero(shows_compaction(rows, int(rows["base_offset"][0]) - 1))
    if not marked.size:
        return None
    row = rows[marked[0]]
    return (
        f"batch {row['base_offset']} of segment {first.base_offset} @ {row['position']} is as "
        "compaction leaves it (a delete horizon, or offsets missing in it or in front of it)"
    )
