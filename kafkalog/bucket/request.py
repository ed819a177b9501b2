"""What `bucket` is asked to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.runs.run_dir import default_run_dir

MIN_AGE_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class BucketRequest:
    """The options of `bucket`. now_ms: the time by which ages are; min_age_ms: what is younger is
    never to be deleted; server_properties: None without a file; run_dir: None for the user's own;
    since: a run whose reports of unchanged segments count."""

    log_dirs: tuple[str, ...]
    now_ms: int
    remote: RemoteStorage = NO_REMOTE_STORAGE
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    min_age_ms: int = MIN_AGE_MS
    is_deep: bool = False
    server_properties: Mapping[str, str] | None = None
    run_dir: str | None = None
    since: str | None = None
    max_batch_bytes: int = MAX_BATCH_BYTES

    @property
    def run_path(self) -> Path:
        """The run dir."""
        return default_run_dir() if self.run_dir is None else Path(self.run_dir)

    def wants(self, topic: str, partition: int) -> bool:
        """Whether a partition is asked for, as `log.selection` chooses."""
        name = TopicPartition(topic, partition)
        return (not self.topics or any(fnmatchcase(topic, each) for each in self.topics)) and (
            not self.topic_partitions or name in self.topic_partitions
        )
