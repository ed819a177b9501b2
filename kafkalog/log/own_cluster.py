"""Settings of a partition's topic by the metadata log in its own log dir, read when needed.

Of a broker with several log dirs only one has the metadata log; what the others' topics are set to
is not known here.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.listing import entries_in
from kafkalog.log.metadata_log import METADATA_DIR, read_cluster_settings

_POLICY, _BROKER_POLICY, _COMPACT = "cleanup.policy", "log.cleanup.policy", "compact"
_REMOTE = "remote.storage.enable"


def cleanup_policy(partition: PartitionInventory) -> str | None:
    """The topic's policy; None if nothing tells."""
    cluster = _cluster(partition)
    topic = cluster.topics.get(partition.topic_partition.topic) if cluster else None
    if cluster is None or topic is None:
        return None
    brokers = [each.get(_BROKER_POLICY, "") for each in cluster.broker_configs.values()]
    by_default = next((policy for policy in brokers if _COMPACT in policy), "delete")
    return topic.config.get(_POLICY) or by_default


def is_tiered(partition: PartitionInventory) -> bool:
    """Whether the topic is said to have older segments in remote storage."""
    cluster = _cluster(partition)
    topic = cluster.topics.get(partition.topic_partition.topic) if cluster else None
    return topic is not None and topic.config.get(_REMOTE, "").lower() == "true"


def _cluster(partition: PartitionInventory) -> ClusterSettings | None:
    directory = Path(partition.log_dir, METADATA_DIR)
    try:
        newest = max(entry.stat().st_mtime_ns for entry in entries_in(directory))
    except (OSError, ValueError):
        return None
    cluster = _cluster_settings(str(directory), newest)
    return None if cluster.problems else cluster


@lru_cache(maxsize=4)
def _cluster_settings(directory: str, newest_ns: int) -> ClusterSettings:
    """Read once for all partitions of a log dir, as long as it does not change (`newest_ns`)."""
    return read_cluster_settings(Path(directory))
