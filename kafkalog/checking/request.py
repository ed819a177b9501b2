"""What `verify` is asked to check."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.cluster_settings import ZooKeeperClusters
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.runs.run_dir import default_run_dir


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to check: the options of `verify`. run_dir: None for the user's own; since: the id of a
    run whose reports of unchanged segments count; zookeeper: for log dirs of that era the clusters'
    settings by their id; max_batch_bytes: no larger batch is read, stored or decompressed; remote:
    where the older segments of tiered partitions are, which are checked with the others.
    """

    log_dirs: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    run_dir: str | None = None
    since: str | None = None
    zookeeper: ZooKeeperClusters = field(default_factory=dict)
    max_batch_bytes: int = MAX_BATCH_BYTES
    remote: RemoteStorage = NO_REMOTE_STORAGE

    @property
    def run_path(self) -> Path:
        """The run dir."""
        return default_run_dir() if self.run_dir is None else Path(self.run_dir)
