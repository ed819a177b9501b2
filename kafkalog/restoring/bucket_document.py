"""A run of `attach BUCKET` as the JSON document of `--json`, as a table, and in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafkalog.operations.run_frame import CANNOT_BE_UNDONE
from kafkalog.restoring.attach_document import attach_document
from kafkalog.restoring.bucket_attach import BucketAttachRun
from kafkalog.restoring.bucket_plan import AttachedLog
from kafkalog.restoring.groups import GroupScript, group_rows
from kafkalog.runs.run_dir import command_for

_SHOWN = 3


def bucket_document(
    done: BucketAttachRun, seconds: float, scripts: Sequence[GroupScript] = ()
) -> dict[str, Any]:
    """The document of `attach`, and of the bucket what each log is; scripts: of groups whose
    offsets are in files.
    """
    return {
        **attach_document(done.run, seconds),
        "logs": [_log(each) for each in done.logs],
        "remoteLogMetadata": {
            "from": "manifests" if done.by_manifests else "records",
            "partitions": len(done.metadata_records),
            "records": sum(done.metadata_records),
        },
        "leftOut": list(done.left_out),
        "groups": group_rows([*done.groups, *scripts]),
        "next": list(_next_steps(done)),
    }


def _log(log: AttachedLog) -> dict[str, Any]:
    return {
        "topic": log.topic,
        "topicId": log.topic_id,
        "partition": log.partition,
        "logStartOffset": log.start_offset,
        "copiedEndOffset": log.end_offset,
        "endOffset": log.next_offset,
        "segments": log.segments,
        "sizeInBytes": log.size_in_bytes,
        "openTransactions": [
            {
                "producerId": each.producer_id, "producerEpoch": each.producer_epoch,
                "firstOffset": each.first_offset,
            }
            for each in log.open
        ],
        "segmentsBehindCut": len(log.left_out),
    }  # fmt: skip


def bucket_table(done: BucketAttachRun) -> list[dict[str, Any]]:
    """A row a partition."""
    placed = {(each.topic, each.partition): each for each in done.run.plan.partitions}
    return [
        {
            "topic": log.topic,
            "partition": log.partition,
            "leader": placed[log.topic, log.partition].leader,
            "replicas": ",".join(
                str(each.node_id) for each in placed[log.topic, log.partition].replicas
            ),
            "offsets": f"{log.start_offset}-{log.next_offset}",
            "segments": log.segments,
            "sizeInBytes": log.size_in_bytes,
            "openTransactions": len(log.open),
            "topicId": log.topic_id,
        }
        for log in done.logs
    ]


def bucket_lines(done: BucketAttachRun) -> Iterator[str]:
    """What is said of a run beside its table."""
    run, plan = done.run, done.run.plan
    yield f"cluster {plan.cluster_id}, nodes {', '.join(map(str, plan.nodes))}"
    yield (
        f"leader epoch {plan.leader_epoch} and producer ids from {plan.next_producer_id} on: above "
        "all that is in the bucket"
    )
    source = "manifests and segments" if done.by_manifests else "the old cluster's own records"
    yield (
        f"__remote_log_metadata: {sum(done.metadata_records)} records in "
        f"{len(done.metadata_records)} partitions, by {source}"
    )
    for topic, config in plan.configs.items():
        yield f"{topic} gets {', '.join(f'{name}={value}' for name, value in config.items())}"
    aborted = [log for log in done.logs if log.open]
    for log in aborted:
        ids = ", ".join(str(each.producer_id) for each in log.open)
        yield f"{log.topic}-{log.partition}: transactions of producers {ids} are aborted at its end"
    yield from (script.said for script in done.groups)
    yield f"records: {', '.join(f'{count} {name}' for name, count in run.records.items())}"
    yield from (f"left out: {text}" for text in done.left_out[:_SHOWN])
    if len(done.left_out) > _SHOWN:
        yield f"left out: {len(done.left_out) - _SHOWN} more segments (--json has all)"
    yield from (f"warning: {text}" for text in plan.warnings)
    yield from (f"lost: {text}" for text in plan.lost)
    yield from (f"refused: {text}" for text in plan.refusals)
    yield from run.problems
    yield from _next_steps(done)


def _next_steps(done: BucketAttachRun) -> Iterator[str]:
    """What the administrator does now."""
    run = done.run
    if run.plan.refusals:
        return
    if not run.applied:
        yield "kafkalog attach … --apply writes into these log dirs; the bucket stays as it is"
        return
    if run.keeps_undo:
        undo = command_for("undo", run.run_id, run.run_dir)
        yield f"{undo} takes it back while no broker has been started"
    else:
        yield CANNOT_BE_UNDONE
    yield (
        "each broker's server.properties needs remote.log.storage.system.enable=true, the plug-in "
        "(remote.log.storage.manager.class.name and .class.path) with the settings that the old "
        "cluster had for this bucket, its key prefix and keys among them, "
        "remote.log.metadata.manager.listener.name, and "
        "rlmm.config.remote.log.metadata.topic.num.partitions="
        f"{len(done.metadata_records)}, or the broker does not use the topic"
    )
    yield (
        "no other cluster may write to this bucket any more: two clusters delete each other's "
        "segments; on each node whose log dirs were not given here, as dedicated controllers, copy "
        "bootstrap.checkpoint into its log dirs before any node starts"
    )
    yield "then start all nodes, in any order; no election by hand is needed"
    offsets = (
        "" if done.groups else "committed offsets (kafka-consumer-groups.sh --reset-offsets), "
    )
    yield (
        f"once they run, set what is lost again: {offsets}ACLs, quotas, credentials, and retention "
        "where it is not known"
    )
