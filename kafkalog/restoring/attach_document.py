"""A run of `attach --in-place` as the JSON document of `--json`, as a table, and in lines.

Secrets are in no output: of settings, credentials and tokens only how many are taken over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkalog.operations.run_frame import CANNOT_BE_UNDONE
from kafkalog.restoring.attach import AttachRun
from kafkalog.restoring.attach_facts import NO_LEADER, PlannedPartition
from kafkalog.runs.run_dir import command_for


def attach_document(run: AttachRun, seconds: float) -> dict[str, Any]:
    """The whole document, ready for `json.dumps`."""
    plan = run.plan
    return {
        "runId": run.run_id,
        "applied": run.applied,
        "seconds": round(seconds, 3),
        "clusterId": plan.cluster_id,
        "nodes": list(plan.nodes),
        "featureLevels": dict(plan.feature_levels),
        "featuresFrom": plan.features_from,
        "leaderEpoch": plan.leader_epoch,
        "nextProducerId": plan.next_producer_id,
        "voters": [
            {
                "nodeId": each.node_id, "directoryId": each.directory_id,
                "listener": each.listener, "host": each.host, "port": each.port,
            }
            for each in run.voters
        ],
        "records": dict(run.records),
        "madeUpSettings": [
            {"topic": topic, "key": key, "value": value}
            for topic, config in plan.configs.items()
            for key, value in config.items()
        ],
        "partitions": [_partition(each) for each in plan.partitions],
        "refusals": list(plan.refusals),
        "warnings": list(plan.warnings),
        "lost": list(plan.lost),
        "movedAside": list(run.moved_aside),
        "resolved": list(run.resolved),
        "results": [
            {"path": each.path, "status": each.status, "reason": each.reason}
            for each in run.results
        ],
        "problems": list(run.problems),
        "faults": list(run.faults),
        "next": list(next_steps(run)),
    }  # fmt: skip


def _partition(partition: PlannedPartition) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "leader": None if partition.leader == NO_LEADER else partition.leader,
        "inSyncReplicas": partition.in_sync,
        "isEmpty": partition.is_empty,
        "replicas": [
            {
                "nodeId": each.node_id, "directoryId": each.directory_id, "path": each.path,
                "lastEpoch": each.last_epoch, "logEndOffset": each.end_offset,
                "inSync": each.is_in_sync,
            }
            for each in partition.replicas
        ],
    }  # fmt: skip


def attach_table(run: AttachRun) -> list[dict[str, Any]]:
    """A row a partition."""
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "leader": None if each.leader == NO_LEADER else each.leader,
            "inSync": ",".join(map(str, each.in_sync)),
            "replicas": ",".join(str(replica.node_id) for replica in each.replicas),
            "logEndOffset": max(
                (r.end_offset for r in each.replicas if r.end_offset is not None), default=None
            ),
            "topicId": each.topic_id,
        }
        for each in run.plan.partitions
    ]


def attach_lines(run: AttachRun) -> Iterator[str]:
    """What is said of a run beside its table."""
    plan = run.plan
    levels = ", ".join(f"{name} {level}" for name, level in plan.feature_levels.items())
    yield f"cluster {plan.cluster_id}, nodes {', '.join(map(str, plan.nodes))}"
    yield f"features by {plan.features_from or 'nobody'}: {levels or 'none'}"
    yield (
        f"leader epoch {plan.leader_epoch} and producer ids from {plan.next_producer_id} on: above "
        "all that is on the disks"
    )
    if run.voters:
        voters = ", ".join(f"{each.node_id}@{each.host}:{each.port}" for each in run.voters)
        yield f"voters of the dynamic quorum: {voters}"
    else:
        yield (
            "the quorum is taken for static (controller.quorum.voters in each server.properties); "
            "of a dynamic one --initial-controllers names the voters"
        )
    for topic, config in plan.configs.items():
        settings = ", ".join(f"{name}={value}" for name, value in config.items())
        yield f"{topic} gets {settings}: its own settings are lost"
    yield f"records: {', '.join(f'{count} {name}' for name, count in run.records.items())}"
    for path in run.moved_aside:
        yield f"{path}: what is left of the metadata log is moved aside"
    yield from (f"warning: {text}" for text in plan.warnings)
    yield from (f"lost: {text}" for text in plan.lost)
    yield from (f"refused: {text}" for text in plan.refusals)
    yield from run.resolved if not run.applied else ()
    yield from run.problems
    yield from next_steps(run)


def next_steps(run: AttachRun) -> Iterator[str]:
    """What the administrator does now."""
    if run.plan.refusals:
        return
    if not run.applied:
        yield (
            "kafkalog compare over the same log dirs tells whether copies differ in what they "
            "hold; kafkalog attach … --in-place --apply writes the metadata"
        )
        return
    if run.keeps_undo:
        undo = command_for("undo", run.run_id, run.run_dir)
        yield f"{undo} takes it back while no broker has been started"
    else:
        yield CANNOT_BE_UNDONE
    yield (
        "before any node starts: on each node whose log dirs were not given here, also one that is "
        "formatted anew, remove __cluster_metadata-0 and copy bootstrap.checkpoint into its log "
        "dirs; a controller without it may become the leader, and then all partitions are stray"
    )
    yield (
        "start all controllers, or a majority of them, then all brokers, in any order; no election "
        "by hand is needed"
    )
    yield (
        "then: kafka-topics.sh --describe --under-replicated-partitions has to become empty; set "
        "what is lost again"
    )
