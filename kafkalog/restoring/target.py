"""The stopped cluster that topics are restored into: its log dirs, whose they are, its topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.metadata_log import METADATA_DIR, read_cluster_settings
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.requests.run_settings import RunSettings

_SHOWN = 3


@dataclass(slots=True)
class Target:
    """The cluster's log dirs: partitions, metadata, and the nodes that they are of."""

    found: LogInventory
    settings: RunSettings
    clusters: tuple[ClusterSettings, ...]
    nodes: Mapping[str, int | None]
    others: Mapping[str, str]
    by_name: dict[TopicPartition, list[PartitionInventory]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: LogInventory, settings: RunSettings, log_dirs: Iterable[str]) -> Target:
        """What these log dirs are."""
        # As the partitions' own paths, which have no links.
        paths = dict.fromkeys(str(Path(path).resolve()) for path in log_dirs)
        metas = {path: read_log_dir_files(Path(path)).meta for path in paths}
        places = [Path(path, METADATA_DIR) for path in metas]
        clusters = tuple(read_cluster_settings(each) for each in places if each.is_dir())
        nodes = {path: None if meta is None else meta.node_id for path, meta in metas.items()}
        ids = {path: str(meta.cluster_id) for path, meta in metas.items() if meta is not None}
        target = cls(found, settings, clusters, nodes, ids)
        for each in found:
            if each.kind is PartitionKind.LIVE:
                target.by_name.setdefault(each.topic_partition, []).append(each)
        return target

    @property
    def cluster(self) -> ClusterSettings | None:
        """The newest metadata log."""
        sound = [each for each in self.clusters if not each.problems]
        return max(sound, key=lambda each: each.end_offset, default=None)

    def why_unusable(self) -> str | None:
        """What is wrong with all of it."""
        unknown = sorted(path for path, node in self.nodes.items() if node is None)
        if unknown:
            return f"{META_PROPERTIES_FILE} does not tell whose log dir it is: {', '.join(unknown)}"
        if len(set(self.others.values())) > 1:
            named = ", ".join(f"{path} of {its}" for path, its in sorted(self.others.items()))
            return f"log dirs of more than one cluster: {named}"
        if self.cluster is None:
            problems = [problem for each in self.clusters for problem in each.problems]
            why = "; ".join(problems) or f"none of the log dirs has {METADATA_DIR}"
            return (
                f"the target's metadata log tells which replicas a partition has: {why}; give the "
                "log dir with it (metadata.log.dir) as well"
            )
        return None

    def what_stays_empty(self, filled: Iterable[TopicPartition]) -> Iterator[str]:
        """What is to be said of the partitions of restored topics that nothing goes into."""
        numbers: dict[str, set[int]] = {}
        for name in filled:
            numbers.setdefault(name.topic, set()).add(name.partition)
        topics = {} if self.cluster is None else self.cluster.topics
        for topic, own in numbers.items():
            count = len(topics[topic].replicas) if topic in topics else 0
            empty = [f"{topic}-{number}" for number in range(count) if number not in own]
            if empty:
                listed = ", ".join(empty[:_SHOWN]) + f" and {len(empty) - _SHOWN} more" * (
                    len(empty) > _SHOWN
                )
                yield (
                    f"{listed}: nothing of it is in the source, it stays empty; of a topic with "
                    "another number of partitions new records of a key may go elsewhere than the "
                    "old ones"
                )
