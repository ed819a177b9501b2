"""Whether compaction may have taken offsets from a log: a gap between segments can be right then.

A gap in a log that was never compacted is a loss. Kafka's cleaner takes whole batches, at the end
of a segment as well; it may even take all of a segment. How far it came its checkpoint tells only
once a round is done: one that was interrupted has swapped groups in beyond it, and has no line if
it was the first. So a topic that is compacted, or may have been, has gaps that prove nothing.

Source: Kafka LogCleaner.cleanLog, LogCleanerManager.doneCleaning.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from kafkalog.batches.batch_table import shows_compaction
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.metadata_log import METADATA_DIR, read_cluster_settings
from kafkalog.log.segment_file import iterate_headers
from kafkalog.log.topic_partition import CLUSTER_METADATA_TOPIC
from kafkalog.messages.internal_topics import OFFSETS_TOPIC, TRANSACTION_TOPIC

_COMPACTED_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC)
_POLICY, _BROKER_POLICY = "cleanup.policy", "log.cleanup.policy"
_COMPACT = "compact"


def compaction_sign(partition: PartitionInventory) -> str | None:
    """Why compaction may have taken offsets; None if it cannot have.

    Read only where there is a gap: the settings of the log dir's cluster, and where these do not
    tell the batch headers of the log. OSError or a KafkaLogError if these cannot be read.
    """
    topic = partition.topic_partition.topic
    if topic == CLUSTER_METADATA_TOPIC:
        return None
    if topic in _COMPACTED_TOPICS:
        return f"{topic} is compacted"
    if partition.checkpoints.cleaner is not None:
        return f"{CLEANER_OFFSET_FILE} has a line for it"
    policy = _policy(partition)
    if policy is not None and _COMPACT in policy:
        return f"its {_POLICY} is {policy}"
    if policy is not None and Path(partition.log_dir, CLEANER_OFFSET_FILE).exists():
        return None
    return _sign_in_batches(partition)


def _policy(partition: PartitionInventory) -> str | None:
    """The topic's policy by the metadata log in its log dir; None if that does not tell."""
    directory = Path(partition.log_dir, METADATA_DIR)
    try:
        newest = max(entry.stat().st_mtime_ns for entry in os.scandir(directory))
    except (OSError, ValueError):
        return None
    cluster = _cluster_settings(str(directory), newest)
    topic = cluster.topics.get(partition.topic_partition.topic)
    if cluster.problems or topic is None:
        return None
    brokers = [each.get(_BROKER_POLICY, "") for each in cluster.broker_configs.values()]
    by_default = next((policy for policy in brokers if _COMPACT in policy), "delete")
    return topic.config.get(_POLICY) or by_default


@lru_cache(maxsize=4)
def _cluster_settings(directory: str, newest_ns: int) -> ClusterSettings:
    """Read once for all partitions of a log dir, as long as it does not change (`newest_ns`)."""
    return read_cluster_settings(Path(directory))


def _sign_in_batches(partition: PartitionInventory) -> str | None:
    """Of a log of which nobody says whether it is compacted: what cleaning left in it."""
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
