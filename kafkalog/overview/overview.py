"""The overview of some log dirs: read once, judged, and put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.auditing.thresholds import (
    GRACE_MS,
    depends_on_time,
    is_in_seconds,
    latest_sound_ms,
)
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
)
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, INTERNAL_POLICIES
from kafkalog.log.topic_partition import PartitionKind
from kafkalog.overview.cluster import Cluster, read_cluster
from kafkalog.overview.disk import LogDir, Partition, read_log_dirs
from kafkalog.overview.era import Era, judge_era
from kafkalog.overview.findings import Batches, Notice, find
from kafkalog.overview.groups import Groups, read_groups
from kafkalog.overview.heads import Head, read_heads

_POLICY, _BROKER_POLICY = "cleanup.policy", "log.cleanup.policy"
_REMOTE = "remote.storage.enable"
_RETENTION, _BROKER_RETENTION = "retention.ms", "log.retention.ms"
_LAG, _BROKER_LAG = "min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"
_AFTER_MAX = "message.timestamp.after.max.ms"
_BROKER_AFTER_MAX = f"log.{_AFTER_MAX}"


@dataclass(frozen=True, slots=True)
class Topic:
    """What is here of a topic: partitions, their segments and bytes. policy: None where nothing
    tells it; codecs, magics, oldest_ms, newest_ms: of the batches that were looked at.
    """

    name: str
    is_internal: bool
    partitions: int
    segments: int
    bytes: int
    policy: str | None
    is_tiered: bool
    codecs: tuple[str, ...]
    magics: tuple[int, ...]
    oldest_ms: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class Life:
    """Of a log dir: when a broker last lived on it (ms, 0 unknown). is_copied: files have the times
    of a copy, and only records tell.
    """

    alive_ms: int
    is_copied: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it. lives: of the log dirs, in their order; heads_count: partitions whose batches were
    looked at, the largest ones; oldest_ms, newest_ms: of records seen at the ends of these, -1
    without any: what lies between may be older and newer.
    """

    now_ms: int
    log_dirs: Sequence[LogDir]
    lives: Sequence[Life]
    cluster: Cluster | None
    era: Era
    topics: Sequence[Topic]
    groups: Groups
    notices: Sequence[Notice]
    heads_count: int
    oldest_ms: int
    newest_ms: int

    @property
    def partitions(self) -> list[Partition]:
        return [p for log_dir in self.log_dirs for p in log_dir.partitions]

    @property
    def is_tiered(self) -> bool:
        return any(d.has_remote_cache for d in self.log_dirs) or any(
            topic.is_tiered for topic in self.topics
        )

    @property
    def with_data_count(self) -> int:
        """Partition directories that could be looked into."""
        return sum(partition.log_bytes > 0 for partition in self.partitions)


def read_overview(paths: Iterable[str | Path], now_ms: int) -> Overview:
    """What these log dirs are. InvalidConfigError for a path that leads to no log dir."""
    log_dirs = read_log_dirs(paths)
    clusters = [read_cluster(log_dir.path) for log_dir in log_dirs]
    cluster = next((each for each in clusters if each is not None), None)
    partitions = [p for log_dir in log_dirs for p in log_dir.partitions]
    heads = read_heads(partitions)
    topics = _topics(log_dirs, cluster, heads)
    lives = [_life(log_dir, heads, now_ms) for log_dir in log_dirs]
    magics = {magic for head in heads.values() for magic in head.magics}
    # A time that is not there yet says nothing of a span.
    soon_ms = latest_sound_ms(now_ms, GRACE_MS)
    starts = [h.oldest_ms for h in heads.values() if 0 <= h.oldest_ms <= soon_ms]
    ends = [h.newest_ms for h in heads.values() if 0 <= h.newest_ms <= soon_ms]
    groups = read_groups(partitions, _ends(log_dirs))
    looked_at = [p for p in partitions if p.path in heads]
    batches = Batches(
        [
            p for p in looked_at
            if _is_of_the_future(heads[p.path].newest_ms, p.topic, cluster, now_ms)
        ],
        [p for p in looked_at if _are_seconds_deleted(heads[p.path].newest_ms, p.topic, cluster)],
        heads,
        groups.damaged,
    )  # fmt: skip
    return Overview(
        now_ms=now_ms,
        log_dirs=log_dirs,
        lives=lives,
        cluster=cluster,
        era=judge_era(log_dirs, cluster, magics),
        topics=topics,
        groups=groups,
        notices=find(log_dirs, cluster, batches),
        heads_count=len(heads),
        oldest_ms=min(starts, default=-1),
        newest_ms=max(ends, default=-1),
    )


def _ends(log_dirs: Sequence[LogDir]) -> dict[tuple[str, int], int]:
    """High watermarks: the highest of all replicas that are here."""
    ends: dict[tuple[str, int], int] = {}
    for log_dir in log_dirs:
        for key, offset in log_dir.files.checkpoints[HIGH_WATERMARK_FILE].items():
            ends[key] = max(offset, ends.get(key, offset))
    return ends


def _life(log_dir: LogDir, heads: Mapping[str, Head], now_ms: int) -> Life:
    own = (heads[p.path].newest_ms for p in log_dir.partitions if p.path in heads)
    by_records = max((time for time in own if time <= now_ms), default=0)
    is_copied = by_records > 0 and log_dir.oldest_file_ms > by_records + GRACE_MS
    if is_copied:
        return Life(by_records, is_copied=True)
    segments = max((p.newest_ms for p in log_dir.partitions), default=0)
    return Life(max(log_dir.checkpoints_ms, segments), is_copied=False)


def _topics(
    log_dirs: Sequence[LogDir], cluster: Cluster | None, heads: Mapping[str, Head]
) -> list[Topic]:
    cleaned = {topic for d in log_dirs for topic, _ in d.files.checkpoints[CLEANER_OFFSET_FILE]}
    by_name: dict[str, list[tuple[Partition, LogDir]]] = {}
    for log_dir in log_dirs:
        for partition in log_dir.partitions:
            if partition.name.kind in (PartitionKind.LIVE, PartitionKind.FUTURE):
                by_name.setdefault(partition.topic, []).append((partition, log_dir))
    found = [_topic(name, own, cluster, heads, cleaned) for name, own in by_name.items()]
    return sorted(found, key=lambda topic: (-topic.bytes, topic.name))


def _topic(
    name: str,
    own: Sequence[tuple[Partition, LogDir]],
    cluster: Cluster | None,
    heads: Mapping[str, Head],
    cleaned: set[str],
) -> Topic:
    seen = [heads[partition.path] for partition, _ in own if partition.path in heads]
    config = cluster.topics.get(name) if cluster is not None else None
    return Topic(
        name=name,
        is_internal=name in INTERNAL_POLICIES or name == CLUSTER_METADATA_TOPIC,
        partitions=len({partition.name.topic_partition for partition, _ in own}),
        segments=sum(partition.segments for partition, _ in own),
        bytes=sum(partition.log_bytes for partition, _ in own),
        policy=_policy(name, cluster, cleaned),
        is_tiered=_is_tiered(config, own),
        codecs=tuple(sorted({codec for head in seen for codec in head.codecs})),
        magics=tuple(sorted({magic for head in seen for magic in head.magics})),
        oldest_ms=min((h.oldest_ms for h in seen if h.oldest_ms >= 0), default=-1),
        newest_ms=max((h.newest_ms for h in seen), default=-1),
    )


def _policy(name: str, cluster: Cluster | None, cleaned: set[str]) -> str | None:
    """By the cluster's metadata; else what only this policy leaves, or what Kafka makes it with."""
    if name == CLUSTER_METADATA_TOPIC:
        return "snapshots"
    config = cluster.topics.get(name) if cluster is not None else None
    if cluster is not None and config is not None:
        return _setting(cluster, config, _POLICY, _BROKER_POLICY, "delete")
    if name in INTERNAL_POLICIES:
        return ",".join(INTERNAL_POLICIES[name])
    return "compact" if name in cleaned else None


def _setting(
    cluster: Cluster, config: Mapping[str, str], key: str, broker_key: str, default: str
) -> str:
    by_default = [each.get(broker_key, "") for each in cluster.broker_configs.values()]
    return config.get(key) or next((value for value in by_default if value), default)


def _is_of_the_future(time_ms: int, name: str, cluster: Cluster | None, now_ms: int) -> bool:
    """Whether a timestamp is ahead of time and that matters to its topic; where nobody tells the
    settings, it does.
    """
    if name == CLUSTER_METADATA_TOPIC:
        return False
    config = cluster.topics.get(name) if cluster is not None else None
    if cluster is None or config is None:
        return time_ms > latest_sound_ms(now_ms, GRACE_MS)
    policy = _setting(cluster, config, _POLICY, _BROKER_POLICY, "delete").split(",")
    retention_ms = _number(cluster, config, _RETENTION, _BROKER_RETENTION, 0)
    lag_ms = _number(cluster, config, _LAG, _BROKER_LAG, 0)
    after_max_ms = _number(cluster, config, _AFTER_MAX, _BROKER_AFTER_MAX, GRACE_MS)
    is_ahead = time_ms > latest_sound_ms(now_ms, after_max_ms)
    return is_ahead and depends_on_time(policy, retention_ms, lag_ms)


def _are_seconds_deleted(time_ms: int, name: str, cluster: Cluster | None) -> bool:
    """Whether a timestamp is one of seconds, and retention takes its record for one of 1970."""
    if not is_in_seconds(time_ms) or name in INTERNAL_POLICIES:
        return False
    config = cluster.topics.get(name) if cluster is not None else None
    if cluster is None or config is None:
        return True
    policy = _setting(cluster, config, _POLICY, _BROKER_POLICY, "delete").split(",")
    return "delete" in policy and _number(cluster, config, _RETENTION, _BROKER_RETENTION, 0) >= 0


def _number(
    cluster: Cluster, config: Mapping[str, str], key: str, broker_key: str, default: int
) -> int:
    text = _setting(cluster, config, key, broker_key, "")
    return int(text) if text.removeprefix("-").isdecimal() else default


def _is_tiered(config: Mapping[str, str] | None, own: Sequence[tuple[Partition, LogDir]]) -> bool:
    """By its setting; where nobody tells it, by a log start below the first segment."""
    if config is not None:
        return config.get(_REMOTE, "").lower() == "true"
    for partition, log_dir in own:
        name = partition.name.topic_partition
        starts = log_dir.files.checkpoints[LOG_START_OFFSET_FILE]
        start = starts.get((name.topic, name.partition))
        if start is not None and start < partition.first_base and log_dir.has_remote_cache:
            return True
    return False
