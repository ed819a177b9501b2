"""Steps that an audit advises and somebody else carries out: Kafka's own tools, and `rm`. Each is
held against what is known of the partition first. One that would lose records, or that its tool
would refuse, is not printed; what helps is, or what has to be known before.

Source: Kafka TransactionsCommand (abort, find-hanging: KIP-664), TransactionCoordinator,
ConfigCommand; KAFKA-7786 and BrokerServer for `-stray` directories.
"""

from __future__ import annotations

import shlex

from kafkalog.auditing.finding_context import FindingContext
from kafkalog.contents.transactional_ids import TransactionalId
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionKind
from kafkalog.planning.config_sources import Difference
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import POLICY
from kafkalog.planning.retention_forecast import forecast_retention
from kafkalog.texts import format_bytes, format_setting_bytes, format_setting_ms

_SERVER = "--bootstrap-server HOST:PORT"
# States of a transaction that its coordinator ends by itself when it runs, and how.
_ENDED_BY_COORDINATOR = {
    "Ongoing": "aborts it when transaction.timeout.ms is past",
    "PrepareCommit": "commits it: an abort would lose records that are committed",
    "PrepareAbort": "aborts it",
    "PrepareEpochFence": "aborts it",
}


def end_transaction(
    context: FindingContext, first_offset: int, owner: TransactionalId | None
) -> str:
    """How to end an open transaction. A marker that is written by hand ends the transaction in this
    partition alone: right only where its coordinator does not know of it (any more), which is what
    `find-hanging` looks at.
    """
    audited = context.audited
    place = f"--topic {audited.topic} --partition {audited.partition}"
    abort = f"`kafka-transactions.sh {_SERVER} abort {place} --start-offset {first_offset}`"
    if owner is None:
        return (
            f"`kafka-transactions.sh {_SERVER} find-hanging {place}`; if it lists this one, {abort}"
        )
    if owner.has_written(audited.topic, audited.partition):
        end = _ENDED_BY_COORDINATOR.get(owner.state)
        if end is not None:
            name = owner.shown(redact=context.task.redact)
            return f"start the coordinator of {name}, which {end}"
    return f"{abort}: its coordinator has no transaction of this partition"


def put_setting_right(context: FindingContext, difference: Difference) -> str:
    """`kafka-configs` for a setting that is not the declared one, and what goes by it; not where it
    would delete from a log of which nothing is deleted by its own policy.
    """
    audited = context.audited
    key, said = difference.key, difference.said
    declare = f"declare {difference.in_force}"
    config = _with(audited.config, key, said)
    if config is None:
        return declare
    if "delete" in config.cleanup_policy and "delete" not in audited.config.cleanup_policy:
        return (
            f"{declare}, if records are to stay: with {key}={said} they go when retention.ms "
            f"{format_setting_ms(config.retention_ms)} or retention.bytes "
            f"{format_setting_bytes(config.retention_bytes)} says so"
        )
    value = f"[{said}]" if "," in said else said
    command = (
        f"`kafka-configs.sh {_SERVER} --alter --entity-type topics --entity-name {audited.topic} "
        f"--add-config {shlex.quote(f'{key}={value}')}`"
    )
    more = _due_bytes(context, config) - audited.retention.due_bytes
    if more > 0:
        command += f", by which {format_bytes(more)} of this partition go at the next check"
    elif key == POLICY and config.is_compacted and not audited.config.is_compacted:
        command += ", by which records without a key go when it is cleaned"
    return f"{command}, or {declare}"


def _with(config: LogConfig, key: str, text: str) -> LogConfig | None:
    """The settings with one of them changed; None for what a broker refuses."""
    given = {known: value for known, value in config.given().items() if known != key}
    if key == "segment.bytes":
        given.pop("internal.segment.bytes", None)
    sources = {known: config.source(known) for known in given}
    try:
        return LogConfig.from_properties(
            {**given, key: text}, source={**sources, key: LogConfig.OPTION}
        )
    except InvalidConfigError:
        return None


def _due_bytes(context: FindingContext, config: LogConfig) -> int:
    """What the next check deletes under these settings."""
    forecast = forecast_retention(
        context.inventory,
        config,
        context.repaired,
        now_ms=context.now_ms,
        high_watermark=context.audited.high_watermark,
        uploaded_offset=context.audited.uploaded_offset,
    )
    return forecast.due_bytes


def remove_stray(context: FindingContext) -> str:
    """What to do with a directory of a topic that the cluster does not have. `rm` only where
    nothing is lost by it: with a metadata log that is older than the directory, or new after a
    loss, every directory is a stray.
    """
    audited, task = context.audited, context.task
    start, end = audited.log_start_offset, audited.log_end_offset
    remove = f"`rm -r {shlex.quote(audited.path)}` while the broker is stopped"
    if start >= end and not audited.problems:
        return f"{remove}: it holds no record"
    if task.copy_path:
        return f"{remove}: {task.copy_path} has all its offsets"
    only = f"no other directory here has its offsets {start} to {end - 1}"
    own_id = task.partition.topic_id
    if audited.kind is not PartitionKind.STRAY:
        return (
            "see whether the metadata here is as new as the directory: if it is, a start renames "
            f"it to -stray, else the topic comes with newer metadata; {only}"
        )
    if own_id and own_id == task.cluster_topic_id:
        return (
            "find out why a broker has set it aside: the cluster has the topic with this very id; "
            f"{only}"
        )
    return f"keep it until its records are known to be elsewhere or wanted nowhere: {only}"
