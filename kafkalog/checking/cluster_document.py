"""A check of clusters as the JSON document of `cluster --json`, and as tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkalog.checking.cluster_isr import episodes
from kafkalog.checking.cluster_placement import bytes_of
from kafkalog.checking.cluster_run import CheckedCluster, ClusterRequest, ClusterRun
from kafkalog.checking.cluster_view import ClusterView
from kafkalog.checking.document import finding_row, kinds_of
from kafkalog.checking.finding_kind import count_found
from kafkalog.texts import format_count

Row = dict[str, Any]


def cluster_document(run: ClusterRun, request: ClusterRequest, seconds: float) -> Row:
    """`seconds`, an entry a cluster, one a finding, what each kind means."""
    return {
        "seconds": round(seconds, 3),
        "atMs": request.at_ms,
        "clusters": [_cluster(cluster, request) for cluster in run.clusters],
        "findings": [finding_row(finding) for finding in run.findings],
        "kinds": kinds_of(run.findings),
    }


def broker_rows(view: ClusterView) -> list[Row]:
    """A row a registered broker, with what it leads and holds; bytes of the log dirs given."""
    leaders = Counter(state["leader"] for state in view.states)
    preferred = Counter(state["replicas"][0] for state in view.states if state["replicas"])
    replicas = Counter(node for state in view.states for node in state["replicas"])
    sizes, _ = bytes_of(view)
    return [
        {
            "brokerId": node,
            "rack": row["rack"],
            "isFenced": row["isFenced"],
            "inControlledShutdown": row["inControlledShutdown"],
            "leaders": leaders[node],
            "preferredLeaders": preferred[node],
            "replicas": replicas[node],
            "bytes": sizes.get(node),
            "endpoints": row["endpoints"],
        }
        for node, row in sorted(view.brokers.items())
    ]


def summary(run: ClusterRun, seconds: float) -> str:
    """One line: what was looked at, what was found."""
    found = count_found(finding.severity for finding in run.findings)
    looked = "; ".join(_looked_at(cluster.view) for cluster in run.clusters)
    return f"{looked}: {found} in {seconds:.1f} s"


def _looked_at(view: ClusterView) -> str:
    return (
        f"cluster {view.history.cluster_id or '?'} as of offset {view.history.end_offset}, "
        f"{format_count(len(view.brokers), 'broker')}, "
        f"{format_count(len(view.states), 'partition')}, {format_count(len(view.metas), 'log dir')}"
    )


def _cluster(cluster: CheckedCluster, request: ClusterRequest) -> Row:
    view = cluster.view
    elected = [r for r in view.history.rows["controllers"] if r["event"] == "elected"]
    return {
        "clusterId": view.history.cluster_id,
        "path": view.path,
        "endOffset": view.history.end_offset,
        "endMs": view.history.end_ms,
        "controllerId": elected[-1]["controllerId"] if elected else None,
        "controllerEpoch": elected[-1]["controllerEpoch"] if elected else None,
        "brokers": broker_rows(view),
        "logDirs": _log_dirs(view),
        "partitionsCount": len(view.states),
        "underMinIsr": [
            episode.to_row(view.history.end_ms)
            for episode in episodes(view)
            if request.lists(episode.topic, episode.partition)
        ],
        "unread": dict(view.history.unread),
    }


def _log_dirs(view: ClusterView) -> list[Row]:
    _, per_dir = bytes_of(view)
    counts = Counter(partition.log_dir for partition in view.partitions)
    return [
        {
            "path": log_dir,
            "brokerId": node,
            "directoryId": view.metas[log_dir].directory_id,
            "partitions": counts[log_dir],
            "bytes": size,
        }
        for node, dirs in sorted(per_dir.items())
        for log_dir, size in sorted(dirs.items())
    ]
