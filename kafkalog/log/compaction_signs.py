"""Whether compaction may have taken offsets from a log: a gap between segments can be right then.

A gap in a log that was never compacted is a loss. Kafka's cleaner takes whole batches, at the end
of a segment as well; it may even take all of a segment. How far it came its checkpoint tells only
once a round is done: one that was interrupted has swapped groups in beyond it, and has no line if
it was the first. So a topic that is compacted, or may have been, has gaps that prove nothing.

Source: Kafka LogCleaner.cleanLog, LogCleanerManager.doneCleaning.
"""

from __future__ import annotations

from pathlib import Path

from kafkalog.batches.batch_table import shows_compaction
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.own_cluster import cleanup_policy
from kafkalog.log.segment_file import iterate_headers
from kafkalog.log.small_files import read_small_file
from kafkalog.log.topic_partition import CLUSTER_METADATA_TOPIC
from kafkalog.messages.internal_topics import OFFSETS_TOPIC, TRANSACTION_TOPIC

_COMPACTED_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)


def compaction_sign(partition: PartitionInventory) -> str | None:
    """What says that the partition is compacted, or was; None if nothing does.

    To be asked only where there is a gap: the settings of the log dir's cluster are read.
    """
    topic = partition.topic_partition.topic
    if topic in _COMPACTED_TOPICS:
        return f"{topic} is compacted"
    if partition.checkpoints.cleaner is not None:
        return f"{CLEANER_OFFSET_FILE} has a line for it"
    policy = cleanup_policy(partition)
    if policy is not None and "compact" in policy:
        return f"its cleanup.policy is {policy}"
    return None


def cleaner_would_tell(partition: PartitionInventory) -> bool:
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
    """What cleaning left in a log of which nobody says whether it is compacted; None of one that
    cannot have been. Headers of all batches are read. OSError or LogChangedError if they cannot be.
    """
    policy = cleanup_policy(partition)
    if partition.topic_partition.topic == CLUSTER_METADATA_TOPIC:
        return None
    if policy is not None and cleaner_would_tell(partition):
        return None  # it would have a line
    for segment in partition.segments:
        last_offset = None
        for scan in iterate_headers(segment.path):
            rows = scan.rows
            if not rows.size:
                continue
            before = rows["base_offset"][0] - 1 if last_offset is None else last_offset
            if shows_compaction(rows, int(before)).any():
                return f"batches of {Path(segment.path).name} were thinned out as by compaction"
            last_offset = int(rows["last_offset"][-1])
    return None
