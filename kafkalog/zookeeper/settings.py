"""A cluster's settings out of its nodes, in the form that the metadata log's have: what plans and
audits of ZooKeeper-era disks go by.

Limits were others then: a segment of less than a MiB, which Kafka 4 refuses as `segment.bytes`, is
what `internal.segment.bytes` says there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.log.cluster_settings import ClusterSettings, TopicSettings, ZooKeeperClusters
from kafkalog.zookeeper.clusters import find_roots
from kafkalog.zookeeper.data_dir import open_zookeeper_dir
from kafkalog.zookeeper.history import ZooKeeperHistory
from kafkalog.zookeeper.tree import DataTree
from kafkalog.zookeeper.znodes import (
    DEFAULT_ENTITY,
    TopicValue,
    parse_cluster_id,
    parse_config,
    parse_topic,
)

_SEGMENT_BYTES, _INTERNAL = "segment.bytes", "internal.segment.bytes"
_LEAST_SEGMENT_BYTES = 1024 * 1024


def read_zookeeper_settings(paths: Iterable[str], zk_root: str | None = None) -> ZooKeeperClusters:
    """Cluster id (None before there were any) → settings, of every cluster, or of the one at
    `zk_root`. Without paths nothing.

    Damage is a problem of the settings. InvalidConfigError if no cluster is there, or two without
    an id.
    """
    directory = open_zookeeper_dir(paths)
    if not directory.paths:
        if zk_root is not None:
            raise InvalidConfigError("--zk-root needs --zookeeper-dir")
        return {}
    history = ZooKeeperHistory(directory)
    tree = history.newest()
    found: dict[str | None, ClusterSettings] = {}
    place = ",".join(directory.paths)
    for root in find_roots(tree, zk_root):
        cluster_id, settings = _of_root(tree, root, place, history)
        if cluster_id in found:
            raise InvalidConfigError(
                f"two clusters have the id {cluster_id}: --zk-root says which one is meant",
                path=place,
            )
        found[cluster_id] = settings
    return found


def _of_root(
    tree: DataTree, root: str, place: str, history: ZooKeeperHistory
) -> tuple[str | None, ClusterSettings]:
    problems = list(history.problems)
    topics: dict[str, TopicSettings] = {}
    brokers: dict[str, dict[str, str]] = {}
    cluster_id = None
    for path, node in tree.nodes.items():
        if not path.startswith(f"{root}/") or not node.data:
            continue
        parts = path[len(root) + 1 :].split("/")
        try:
            if parts == ["cluster", "id"]:
                cluster_id = parse_cluster_id(node.data, path)
            elif len(parts) == 3 and parts[:2] == ["brokers", "topics"]:
                config = tree.nodes.get(f"{root}/config/topics/{parts[2]}")
                own = parse_config(config.data, path) if config and config.data else {}
                topics[parts[2]] = _topic(parse_topic(node.data, path), own)
            elif len(parts) == 3 and parts[:2] == ["config", "brokers"]:
                name = "" if parts[2] == DEFAULT_ENTITY else unquote(parts[2])
                brokers[name] = parse_config(node.data, path)
        except KafkaLogError as error:
            problems.append(str(error))
    settings = ClusterSettings(
        path=place,
        read_from=f"ZooKeeper's {root or '/'} up to zxid {history.zxid:#x}",
        end_offset=history.zxid,
        topics=topics,
        broker_configs=brokers,
        problems=tuple(problems),
    )
    return cluster_id, settings


def _topic(value: TopicValue, config: Mapping[str, str]) -> TopicSettings:
    own = dict(config)
    size = own.get(_SEGMENT_BYTES, "")
    if size.isascii() and size.isdigit() and int(size[:20]) < _LEAST_SEGMENT_BYTES:
        own[_INTERNAL] = own.pop(_SEGMENT_BYTES)
    return TopicSettings(value.topic_id or "", own, dict(value.replicas))
