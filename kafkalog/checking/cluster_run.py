"""Check clusters: each metadata log below the log dirs once, with the directories of its nodes.

Everything is read by the caller's process: metadata is small, and of partition directories only
names, sizes and small files are looked at. Nothing is changed and no lock is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from kafkalog.checking.cluster_directories import check_directories
from kafkalog.checking.cluster_drift import check_drift
from kafkalog.checking.cluster_isr import check_isr
from kafkalog.checking.cluster_placement import check_placement
from kafkalog.checking.cluster_view import ClusterView
from kafkalog.checking.finding import Finding
from kafkalog.checking.zookeeper_cluster import ZooKeeperCluster, read_zookeeper_clusters
from kafkalog.cluster.find import metadata_directories
from kafkalog.cluster.history import ClusterHistory, Until
from kafkalog.errors import InvalidConfigError
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, MetaProperties
from kafkalog.log.inventory import LogInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.selection import refuse_missing
from kafkalog.log.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """What to check. at_ms: as of then, by the metadata alone; None for the end, with what is on
    disk. declared: settings per topic, None without a file. static: of server.properties.
    topics (names or globs) and topic_partitions choose what is listed. zookeeper_dirs, zk_root: a
    dead ZooKeeper's directories, and one cluster of it.
    """

    log_dirs: tuple[str, ...]
    at_ms: int | None = None
    declared: Mapping[str, Mapping[str, str]] | None = None
    static: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    zookeeper_dirs: tuple[str, ...] = ()
    zk_root: str | None = None

    def lists(self, topic: str | None, partition: int | None) -> bool:
        """Whether a finding about a partition, or about the cluster, is asked for."""
        if not self.topics and not self.topic_partitions:
            return True
        if topic is None:
            return False
        if any(fnmatchcase(topic, pattern) for pattern in self.topics):
            return True
        return any(
            name.topic == topic and partition in (None, name.partition)
            for name in self.topic_partitions
        )


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """One cluster and what was found."""

    view: ClusterView
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """All of them."""

    clusters: tuple[CheckedCluster, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for cluster in self.clusters for finding in cluster.findings]

    @property
    def has_failures(self) -> bool:
        return any(finding.severity.is_failure for finding in self.findings)


def cluster_run(request: ClusterRequest) -> ClusterRun:
    """Check every cluster whose metadata log is below the log dirs, and those of the ZooKeeper that
    have none there.

    InvalidConfigError for paths that do not exist, and where there is no metadata log at all.
    """
    inventory = open_log_dir(*request.log_dirs)
    directories = metadata_directories(inventory)
    if not directories and not request.zookeeper_dirs:
        raise InvalidConfigError(
            f"no metadata log (__cluster_metadata-0) below {', '.join(request.log_dirs)}; a "
            "cluster of ZooKeeper's era has it in ZooKeeper: --zookeeper-dir DIR"
        )
    metas = _metas(inventory)
    until = Until(time_ms=request.at_ms)
    histories: list[ClusterHistory | ZooKeeperCluster] = [
        ClusterHistory(directory, until) for directory in directories
    ]
    if request.zookeeper_dirs:
        known = {history.cluster_id for history in histories}
        found = read_zookeeper_clusters(request.zookeeper_dirs, request.zk_root, request.at_ms)
        histories += [cluster for cluster in found if cluster.cluster_id not in known]
    checked = tuple(_check(request, each, inventory, metas) for each in histories)
    _check_names(request, inventory, checked)
    return ClusterRun(checked)


def _check_names(
    request: ClusterRequest, inventory: LogInventory, checked: Iterable[CheckedCluster]
) -> None:
    """InvalidConfigError for a topic or partition that no cluster, no log dir and no declared
    setting is of."""
    known = {each.topic_partition for each in inventory}
    known.update(TopicPartition(topic, 0) for topic in request.declared or ())
    for cluster in checked:
        states = cluster.view.states
        known.update(TopicPartition(state["topic"], state["partition"]) for state in states)
    where = "neither in the metadata nor in the log dirs"
    refuse_missing(request.topics, request.topic_partitions, known, where)


def _metas(inventory: LogInventory) -> dict[str, MetaProperties]:
    metas = {}
    for log_dir in sorted({partition.log_dir for partition in inventory}):
        meta = read_log_dir_files(Path(log_dir)).meta
        if meta is not None:
            metas[log_dir] = meta
    return metas


def _check(
    request: ClusterRequest,
    history: ClusterHistory | ZooKeeperCluster,
    inventory: LogInventory,
    metas: Mapping[str, MetaProperties],
) -> CheckedCluster:
    own: dict[str, MetaProperties] = {}
    if request.at_ms is None:
        own = {
            log_dir: meta
            for log_dir, meta in metas.items()
            if meta.cluster_id is not None and meta.cluster_id == history.cluster_id
        }
    partitions = tuple(each for each in inventory if each.log_dir in own)
    view = ClusterView(history, partitions, own, request.static)
    found = [f for f in _findings(view, request) if request.lists(f.topic, f.partition)]
    found += [_unreadable(view, problem) for problem in inventory.problems if _is_meta(problem)]
    return CheckedCluster(view, tuple(sorted(found, key=lambda finding: finding.order)))


def _is_meta(problem: str) -> bool:
    return PurePath(problem.partition(": ")[0]).name == META_PROPERTIES_FILE


def _unreadable(view: ClusterView, problem: str) -> Finding:
    """Of a log dir of which nobody can tell whose it is: its directories are not looked at."""
    path, _, text = problem.partition(": ")
    text = f"{META_PROPERTIES_FILE}: {text}"
    return view.finding("unreadable", text, path=path, log_dir=str(PurePath(path).parent))


def _findings(view: ClusterView, request: ClusterRequest) -> Iterator[Finding]:
    for problem in view.history.problems:
        yield view.finding("metadata-unreadable", problem)
    yield from check_placement(view)
    yield from check_isr(view)
    yield from check_directories(view)
    if request.declared is not None:
        yield from check_drift(view, request.declared)
