"""Which partition of the source goes into which directories of the target, up to where, and why
not. Nothing is written.

A target is a partition of a topic that the stopped cluster has and nobody has written to: its topic
id stays, and every replica gets the same files. That all of them are here is asked for, because one
that is empty and in sync may be elected, and then the others cut what was restored.

Source: Kafka LogManager, ReplicaManager; KIP-101.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkalog.errors import InvalidConfigError, KafkaLogError, RemoteStorageError
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.topics import INTERNAL_POLICIES, TRANSACTION_TOPIC
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.lock_holder import lock_holder
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import REFUSED
from kafkalog.restoring.begin import begun_later
from kafkalog.restoring.cut import LogCut, OpenTransaction, cut_log
from kafkalog.restoring.request import ABORT, CUT, RestoreRequest
from kafkalog.restoring.target import Target
from kafkalog.restoring.wholeness import wholeness_of

if TYPE_CHECKING:
    from kafkalog.contents.transactional_ids import TransactionalId

RESTORE = "restore"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class RestorePlan(JsonFacts):
    """One directory of the target. status: RESTORE, or REFUSED with a reason; warnings: what
    becomes of it that somebody may not expect; source_token: of the source's files, empty where
    none of it is on a disk; remote_source: the source, where some of it is in remote storage;
    compacts: before it is put in place.
    """

    topic_partition: TopicPartition
    path: str
    log_dir: str
    source_name: TopicPartition
    source: str
    source_token: str
    token: str
    status: str
    reason: str = ""
    cut: LogCut | None = None
    warnings: tuple[str, ...] = ()
    remote_source: PartitionInventory | None = None
    compacts: bool = False

    def refused(self, reason: str) -> RestorePlan:
        return replace(self, status=REFUSED, reason=reason)


def plan_restores(
    request: RestoreRequest, source: LogInventory, target: Target, max_batch_bytes: int
) -> Iterator[RestorePlan]:
    """A plan for each directory, or a refused one where there is none."""
    unusable = target.why_unusable()
    ids = TransactionalIds(source, max_batch_bytes)
    for each in wanted(request, source):
        name = request.target_of(each.topic_partition)
        copies = target.by_name.get(name, [])
        blank = blank_plan(name, each)
        reason = unusable or why_not_from(each, source) or _why_not_into(name, copies, target)
        if reason is not None:
            places = [_at(blank, copy) for copy in copies] or [blank]
            yield from (place.refused(reason) for place in places)
            continue
        cut, reason = cut_of(request, each, ids)
        for copy in copies:
            plan = replace(_at(blank, copy), cut=cut)
            config = target.settings.resolve(copy, needs_policy=False).config
            warnings = tuple(warnings_of(cut, config)) if cut is not None else ()
            plan = compacting(replace(plan, warnings=warnings), request, config)
            reason_here = reason or _why_not_this(each, copy)
            yield plan.refused(reason_here) if reason_here else plan


def blank_plan(name: TopicPartition, source: PartitionInventory) -> RestorePlan:
    """A plan without a place yet."""
    local = tuple(each for each in source.segments if each.state != REMOTE)
    is_remote = len(local) < len(source.segments)
    token = replace(source, segments=local).token if local or not is_remote else ""
    plan = RestorePlan(name, "", "", source.topic_partition, source.path, token, "", RESTORE)
    return replace(plan, remote_source=source) if is_remote else plan


def wanted(request: RestoreRequest, source: LogInventory) -> Iterator[PartitionInventory]:
    """The partitions that are asked for; Kafka's own, and those that a broker was deleting, only by
    name.
    """
    for each in source:
        if not request.takes_partition(each.topic_partition) or _is_cluster_metadata(each):
            continue
        topic = each.topic_partition.topic
        is_odd = topic in INTERNAL_POLICIES or each.kind is PartitionKind.DELETE
        if is_odd and topic not in request.topics:
            continue
        yield each


def _at(plan: RestorePlan, copy: PartitionInventory) -> RestorePlan:
    return replace(plan, path=copy.path, log_dir=copy.log_dir, token=copy.token)


def _is_cluster_metadata(partition: PartitionInventory) -> bool:
    return partition.topic_partition.topic == CLUSTER_METADATA_TOPIC


def why_not_from(source: PartitionInventory, found: LogInventory) -> str | None:
    """Why this partition cannot be a source."""
    topic = source.topic_partition.topic
    if topic in INTERNAL_POLICIES:
        return (
            f"{topic} says what the source's cluster had, by its own ids: --groups writes what "
            "groups have committed as a script"
        )
    if source.kind is not PartitionKind.LIVE:
        return f"{source.path} is {source.kind.value}, no live partition"
    if source.problems:
        return f"the source is not whole: {'; '.join(source.problems)}"
    is_remote = any(each.state == REMOTE for each in source.segments)
    if source.has_remote_segments and not is_remote:
        return (
            "older segments of the source are in remote storage, the rest would have a gap: "
            "--remote-dir names it"
        )
    live = [
        each.path
        for each in found
        if each.topic_partition == source.topic_partition and each.kind is PartitionKind.LIVE
    ]
    if len(live) > 1 and source.is_remote_alone:
        return (
            f"remote storage has it {len(live)} times, of topics with other ids ({', '.join(live)})"
            ": `kafkalog attach --topic ID` takes one of them as it lies"
        )
    if len(live) > 1:
        return (
            f"the source has it {len(live)} times ({', '.join(live)}), of several clusters or "
            "topic ids: give the log dirs of one alone"
        )
    holder = None if source.is_remote_alone else lock_holder(source.log_dir)
    if holder is not None:
        return f"a broker (process {holder}) holds the lock of the source {source.log_dir}"
    return None


def _why_not_into(
    name: TopicPartition, copies: Sequence[PartitionInventory], target: Target
) -> str | None:
    cluster = target.cluster
    topic = cluster.topics.get(name.topic) if cluster is not None else None
    if topic is None:
        return (
            f"the target has no topic {name.topic}: create it with as many partitions, stop the "
            "brokers, and restore then"
        )
    if name.partition not in topic.replicas:
        return f"the target's {name.topic} has {len(topic.replicas)} partitions"
    wanted = sorted(topic.replicas[name.partition])
    here = sorted(node for each in copies if (node := target.nodes.get(each.log_dir)) is not None)
    if here != wanted:
        return (
            f"its replicas are on the nodes {wanted}, here are those of {here}: give the log dirs "
            "of all, for an empty replica that is elected takes what was restored away"
        )
    stale = [each.path for each in copies if each.topic_id != topic.topic_id]
    if stale:
        return f"{', '.join(stale)}: of another topic id than the target's {topic.topic_id}"
    return None


def _why_not_this(source: PartitionInventory, copy: PartitionInventory) -> str | None:
    if Path(copy.path).resolve() == Path(source.path).resolve():
        return "source and target are the same directory"
    bases = [segment.base_offset for segment in copy.segments]
    # A restore that died may have left its log start, which is above an empty log's end.
    is_left = not copy.size_in_bytes and copy.log_start_offset > copy.log_end_offset
    if copy.problems and not (is_left and len(copy.problems) == 1):
        return f"the target is not whole: {'; '.join(copy.problems)}"
    if bases not in ([], [0]) or any(segment.size_in_bytes for segment in copy.segments):
        return (
            f"{copy.path} is not empty (segments from {bases[0]}, {copy.size_in_bytes} bytes): "
            "delete the topic and create it again, or restore under another name (--topic OLD=NEW)"
        )
    if copy.has_remote_segments:
        return "the target's topic has segments in remote storage"
    return None


def cut_of(
    request: RestoreRequest, source: PartitionInventory, ids: TransactionalIds
) -> tuple[LogCut | None, str | None]:
    """The cut, and why it cannot be restored."""
    until = request.until(source.topic_partition)
    try:
        kept = begun_later(source, request.since(source.topic_partition))
        is_later = kept.log_start_offset > source.log_start_offset
        to_stable = request.end_transactions == CUT
        cut = cut_log(kept, until, to_stable=to_stable, begins_later=is_later)
        whole = wholeness_of(kept, MAX_INT64 if cut.left_out_from is None else cut.end_offset)
    except RemoteStorageError as error:
        return None, f"the source cannot be read: {error}"
    except InvalidConfigError as error:
        return None, error.reason
    except (KafkaLogError, OSError) as error:
        return None, (
            f"the source is damaged: {error}; `kafkalog salvage` makes a copy without what is "
            "damaged, which can be restored"
        )
    if whole.why_not is not None:
        return None, whole.why_not
    left = (f"all in front of offset {cut.start_offset} is left out",) if is_later else ()
    cut = replace(cut, notes=(*cut.notes, *left, *whole.lost))
    if cut.open and request.end_transactions != ABORT:
        named = ", ".join(ids.text(each) for each in cut.open[:_SHOWN])
        more = f" and {len(cut.open) - _SHOWN} more" if len(cut.open) > _SHOWN else ""
        return cut, (
            f"transactions are open at the cut, offset {cut.end_offset}: {named}{more}; "
            "--end-transactions abort ends them, cut leaves out all from offset "
            f"{cut.last_stable_offset} on"
        )
    return cut, None


def compacting(plan: RestorePlan, request: RestoreRequest, config: LogConfig) -> RestorePlan:
    """The plan, which compacts where that is asked for and the topic's policy says it."""
    if not request.compacts:
        return plan
    if config.is_compacted:
        return replace(plan, compacts=True)
    policy = ",".join(config.cleanup_policy)
    said = f"is not compacted, since its cleanup.policy is {policy}"
    return replace(plan, warnings=(*plan.warnings, said))


class TransactionalIds:
    """Whose open transactions are, where the source's `__transaction_state` tells."""

    def __init__(self, found: LogInventory, max_batch_bytes: int) -> None:
        self._paths = [p.path for p in found if p.topic_partition.topic == TRANSACTION_TOPIC]
        self._max_batch_bytes = max_batch_bytes
        self._known: dict[int, TransactionalId | None] = {}

    def text(self, each: OpenTransaction) -> str:
        """A transaction in words."""
        number = each.producer_id
        if number not in self._known:
            # Imported late: it decodes records, and nearly no log ends with an open transaction.
            from kafkalog.contents.transactional_ids import transactional_ids

            found = transactional_ids(self._paths, [number], self._max_batch_bytes)
            self._known[number] = found.get(number)
        known = self._known[number]
        named = f" ({known.shown(redact=False)})" if known is not None else ""
        return f"producer {number}{named} from offset {each.first_offset} on"


def warnings_of(cut: LogCut, config: LogConfig) -> Iterator[str]:
    """What becomes of what is restored that somebody may not expect."""
    yield from cut.notes
    if not config.is_compacted or "delete" in config.cleanup_policy:
        if config.retention_ms >= 0:
            yield (
                f"retention.ms of the target's topic is {config.retention_ms}: segments whose "
                "largest timestamp is older are deleted once its broker runs; set it before the "
                "restore if they are to stay"
            )
        if 0 <= config.retention_bytes < cut.size_in_bytes:
            yield f"retention.bytes of the target's topic is {config.retention_bytes}"
    if cut.left_out_from is not None:
        yield f"all from offset {cut.left_out_from} on lies behind the cut"
