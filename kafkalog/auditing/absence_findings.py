"""Replicas that were out of sync for longer than the cleaner keeps tombstones and markers.

What is written and cleaned away while a replica is gone it never gets: keys come back and aborted
records are read as committed when it leads (`comparing` finds which). Kafka's cleaner removes
tombstones and transaction markers by delete.retention.ms alone, whichever replica lacks them; a
marker that is the last of an idle producer stays until producer.id.expiration.ms as well, so that
never makes it go sooner.

Source: Kafka Cleaner.shouldDiscardBatch, isBatchLastRecordOfProducer, shouldRetainRecord.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.findings_across import Key, furthest
from kafkalog.checking.finding import Finding
from kafkalog.cluster.absences import Absence, Absences
from kafkalog.cluster.find import metadata_directories
from kafkalog.cluster.history import ClusterHistory
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.texts import format_setting_ms, format_timestamp

_KIND = "replica-away-too-long"


def find_absences(
    audited: Iterable[AuditedPartition],
    replicated: Iterable[PartitionInventory],
    everything: LogInventory,
    now_ms: int,
) -> Iterator[Finding]:
    """Of compacted partitions, each at the copy here that goes furthest. replicated: the partitions
    that the cluster has more than one replica of.
    """
    topic_ids = {each.path: each.topic_id for each in replicated}
    copies = furthest(each for each in audited if each.config.is_compacted)
    wanted = {key: each for key, each in copies.items() if topic_ids.get(each.path)}
    if not wanted:
        return
    absent = _read_absences(everything)
    for key, each in sorted(wanted.items()):
        own = absent.get((key[0], topic_ids[each.path] or "", key[2]), ())
        yield from _too_long(each, own, now_ms)


def _read_absences(everything: LogInventory) -> Mapping[Key, Sequence[Absence]]:
    """By cluster, topic id and partition; of a log that cannot be read what is known before."""
    found: dict[Key, Sequence[Absence]] = {}
    for directory in metadata_directories(everything):
        history = ClusterHistory(directory)
        for (topic_id, number), own in Absences(history.rows["partition_changes"]).found.items():
            found[history.cluster_id or "", topic_id, number] = own
    return found


def _too_long(
    audited: AuditedPartition, absent: Iterable[Absence], now_ms: int
) -> Iterator[Finding]:
    """The longest of each node; none where the log has no record as young as the absence."""
    retention_ms = audited.config.delete_retention_ms
    by_node: dict[int, list[Absence]] = {}
    for each in absent:
        if each.length_ms(now_ms) > retention_ms and not _is_older(audited, each.from_ms):
            by_node.setdefault(each.node, []).append(each)
    for _, own in sorted(by_node.items()):
        longest = max(own, key=lambda each: each.length_ms(now_ms))
        found = audited.finding(_KIND, _text(audited, longest, len(own) - 1, now_ms))
        yield replace(found, fix=_fix(audited, longest))


def _is_older(audited: AuditedPartition, from_ms: int) -> bool:
    """Whether all there is was written before. A tombstone that is cleaned away leaves a record
    behind it, unless the active segment is empty.
    """
    segments = audited.segments
    if not segments or not segments[-1].batches_count:
        return False
    return max(segment.effective_timestamp_ms for segment in segments) < from_ms


def _text(audited: AuditedPartition, absence: Absence, others: int, now_ms: int) -> str:
    is_back = absence.to_ms is not None
    to = format_timestamp(now_ms if absence.to_ms is None else absence.to_ms)
    since = " or before" if absence.is_longer else ""
    has_markers = any(segment.control_batches for segment in audited.segments)
    what = "tombstones and transaction markers" if has_markers else "tombstones"
    return (
        f"node {absence.node} {'was' if is_back else 'is'} out of sync from "
        f"{format_timestamp(absence.from_ms)}{since} to {to}{'' if is_back else ' (now)'}, "
        f"{absence.length_ms(now_ms)} ms: longer than delete.retention.ms "
        f"{format_setting_ms(audited.config.delete_retention_ms)}, after which {what} are cleaned "
        "away that it never got" + (f"; {others} more such times" if others else "")
    )


def _fix(audited: AuditedPartition, absence: Absence) -> str:
    if absence.to_ms is None:
        return (
            f"raise delete.retention.ms of {audited.topic} before node {absence.node} comes back; "
            "`kafkalog compact --replicas` keeps what it has not got; or delete its replica and "
            "let the broker copy it"
        )
    return (
        f"`kafkalog compare` with the log dirs or digests of node {absence.node} and a replica "
        "that was in sync; `--heal` puts a wrong one right"
    )
