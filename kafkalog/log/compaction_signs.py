"""Whether compaction may have taken offsets from a log: a gap between segments can be right then.

A gap in a log that was never compacted is a loss. Kafka's cleaner takes whole batches, at the end
of a segment as well; it may even take all of a segment. How far it came its checkpoint tells only
once a round is done: one that was interrupted has swapped groups in beyond it, and has no line if
it was the first. So a topic that is compacted, or may have been, has gaps that prove nothing.

What cleaning leaves in batches shows where no setting says it: a delete horizon, fewer records than
offsets, offsets missing between two batches. A leader gives out offsets without gaps; a log that
`salvage` wrote may have some, too.

Source: Kafka LogCleaner.cleanLog, LogCleanerManager.doneCleaning, Cleaner.cleanInto,
DefaultRecordBatch (KIP-534).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import shows_compaction
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, COMPACT, INTERNAL_POLICIES
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.own_cluster import cleanup_policy
from kafkalog.log.segment_headers import iterate_headers, scan_headers
from kafkalog.log.small_files import read_small_file

# Enough to see that a log was compacted, in one or two reads.
FIRST_BATCHES = 1000


def compaction_sign(partition: PartitionInventory) -> str | None:
    """What says that the partition is compacted, or was; None if nothing does.

    To be asked only where there is a gap: the settings of the log dir's cluster are read.
    """
    topic = partition.topic_partition.topic
    if INTERNAL_POLICIES.get(topic) == COMPACT:
        return f"{topic} is compacted"
    if partition.checkpoints.cleaner is not None:
        return f"{CLEANER_OFFSET_FILE} has a line for it"
    policy = cleanup_policy(partition)
    if policy is not None and "compact" in policy:
        return f"its cleanup.policy is {policy}"
    return None


def has_cleaner_checkpoint(partition: PartitionInventory) -> bool:
    """Whether the log dir's cleaner checkpoint is there and can be read: how far a round came that
    was finished.
    """
    path = Path(partition.log_dir, CLEANER_OFFSET_FILE)
    try:
        parse_offset_checkpoint(read_small_file(path), str(path))
    except (OSError, KafkaLogError):
        return False
    return True


def batches_sign(partition: PartitionInventory) -> str | None:
    """What cleaning left in a log of which no setting says whether it is compacted; None of one
    that cannot have been. Headers of all batches are read. OSError or LogChangedError if they
    cannot be.
    """
    policy = cleanup_policy(partition)
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        return None
    if policy is not None and has_cleaner_checkpoint(partition):
        return None  # it would have a line
    return compaction_mark(partition.segments)


def compaction_mark(segments: Sequence[SegmentInfo], most_rows: int | None = None) -> str | None:
    """The first batch that only compaction leaves, in words: one with a delete horizon, with fewer
    records than offsets, or behind offsets that are missing. None without one.

    Of each segment `most_rows` headers are read, or all: the cleaner begins with the first segment,
    so the `FIRST_BATCHES` there mostly tell. OSError or LogChangedError if they cannot be.
    """
    for segment in segments:
        last_offset = None
        bounded = most_rows and [scan_headers(segment.path, most_rows=most_rows)]
        for scan in bounded or iterate_headers(segment.path):
            mark = mark_of_rows(scan.rows, segment.base_offset, last_offset)
            if mark is not None:
                return mark
            if scan.rows.size:
                last_offset = int(scan.rows["last_offset"][-1])
    return None


def mark_of_rows(
    rows: NDArray[np.void], segment_base_offset: int, last_offset: int | None = None
) -> str | None:
    """`compaction_mark` among these headers of a segment (BATCH_ROW[b]); `last_offset`: of the
    batch in front of them, None where the segment begins.
    """
    if not rows.size:
        return None
    # Where a segment begins nothing is missing by itself: its base may lie above the end of the one
    # before for other reasons.
    before = int(rows["base_offset"][0]) - 1 if last_offset is None else last_offset
    marked = np.flatnonzero(shows_compaction(rows, before))
    if not marked.size:
        return None
    row = rows[marked[0]]
    return (
        f"batch {row['base_offset']} of segment {segment_base_offset} @ "
        f"{row['position']} is as compaction leaves it (a delete horizon, or offsets "
        "missing in it or in front of it)"
    )
