"""The records of a plan, as a controller finds them in `bootstrap.checkpoint`, and the voters of a
dynamic quorum, as it finds them in the snapshot `0-0` of its metadata log.

metadata.version comes first: what version a record has depends on it. Directories are in partitions
from 3.7-IV2 on. Brokers are registered, fenced and without listeners, where eligible leader
replicas are in force; they register again when they start.

Source: Kafka BootstrapMetadata, ActivationRecordsGenerator, ClusterControlManager.registerBroker;
KIP-853, KIP-858, KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkalog.errors import KafkaLogError, LogChangedError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.metadata_state import MetadataState
from kafkalog.messages.broker_records import PRODUCER_IDS_RECORD, REGISTER_BROKER_RECORD
from kafkalog.messages.cluster_metadata import (
    CONFIG_RECORD,
    FEATURE_LEVEL_RECORD,
    MESSAGES,
    PARTITION_RECORD,
    TOPIC_RECORD,
    TOPIC_RESOURCE,
    RawRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kafkalog.messages.schema import Message
from kafkalog.restoring.attach_facts import (
    DIRECTORIES_LEVEL,
    METADATA_VERSION,
    AttachPlan,
    PlannedPartition,
)
from kafkalog.restoring.disks import NodeDir
from kafkalog.restoring.left_metadata import KEPT, LeftMetadata
from kafkalog.restoring.quorum import Voter

_Record = tuple[Message, int, Mapping[str, Any]]
_BY_NAME = {message.name: message for message in MESSAGES.values()}
# An id that no process has: whoever registers is another one.
_NOBODY = "AAAAAAAAAAAAAAAAAAAAAQ"
_REGISTER_WITH_DIRS = 3


def metadata_values(
    plan: AttachPlan, left: LeftMetadata | None, dirs: Sequence[NodeDir]
) -> list[bytes]:
    """The values of all records, in order."""
    return [encode_metadata_record(*record) for record in _records(plan, left, dirs)]


def _records(
    plan: AttachPlan, left: LeftMetadata | None, dirs: Sequence[NodeDir]
) -> Iterator[_Record]:
    levels = sorted(plan.feature_levels.items(), key=lambda item: item[0] != METADATA_VERSION)
    for name, level in levels:
        yield FEATURE_LEVEL_RECORD, 0, {"name": name, "featureLevel": level}
    for node, epoch in plan.registrations.items():
        yield _registration(int(node), epoch, dirs)
    has_directories = plan.feature_levels[METADATA_VERSION] >= DIRECTORIES_LEVEL
    seen = ""
    for partition in plan.partitions:
        if partition.topic_id != seen:
            seen = partition.topic_id
            yield TOPIC_RECORD, 0, {"name": partition.topic, "topicId": seen}
        yield _partition(partition, plan.leader_epoch, has_directories=has_directories)
    for topic, config in plan.configs.items():
        for name, value in config.items():
            yield _config(topic, name, value)
    yield from _kept(plan, left)
    yield PRODUCER_IDS_RECORD, 0, {
        "brokerId": plan.nodes[0], "brokerEpoch": 0, "nextProducerId": plan.next_producer_id,
    }  # fmt: skip


def _registration(node: int, epoch: int, dirs: Sequence[NodeDir]) -> _Record:
    own = [each.directory_id for each in dirs if each.node_id == node]
    return REGISTER_BROKER_RECORD, _REGISTER_WITH_DIRS, {
        "brokerId": node, "incarnationId": _NOBODY, "brokerEpoch": epoch, "fenced": True,
        "logDirs": [each for each in own if each is not None],
    }  # fmt: skip


def _partition(partition: PlannedPartition, leader_epoch: int, *, has_directories: bool) -> _Record:
    fields = {
        "partitionId": partition.partition,
        "topicId": partition.topic_id,
        "replicas": [each.node_id for each in partition.replicas],
        "isr": partition.in_sync,
        "leader": partition.leader,
        "leaderEpoch": leader_epoch,
        "partitionEpoch": 0,
    }
    if has_directories:
        fields["directories"] = [each.directory_id for each in partition.replicas]
    return PARTITION_RECORD, int(has_directories), fields


def _config(topic: str, name: str, value: str) -> _Record:
    return CONFIG_RECORD, 0, {
        "resourceType": TOPIC_RESOURCE, "resourceName": topic, "name": name, "value": value
    }  # fmt: skip


def _kept(plan: AttachPlan, left: LeftMetadata | None) -> Iterator[_Record]:
    """What the metadata log that is left says, but for settings of topics that are gone."""
    if left is None:
        return
    planned = {each.topic: each.topic_id for each in plan.partitions}
    known = left.ids
    for name, _ in KEPT:
        message = _BY_NAME[name]
        for fields in left.kept.get(name, {}).values():
            topic = fields["resourceName"] if message is CONFIG_RECORD else None
            is_of_topic = topic is not None and fields["resourceType"] == TOPIC_RESOURCE
            if is_of_topic and planned.get(str(topic)) != known.get(str(topic), ""):
                continue
            yield message, 0, fields


def check_values(values: Sequence[bytes], plan: AttachPlan) -> None:
    """LogChangedError unless a replay of these records gives the plan's partitions: nothing that
    contradicts itself is ever written.
    """
    state: MetadataState[None] = MetadataState()
    try:
        for value in values:
            state.append(_Value(value), None)
    except KafkaLogError as error:
        raise LogChangedError(f"the new metadata contradicts itself: {error}") from None
    found = {
        (each["topic"], each["topicId"], each["partition"]): (
            each["leader"], each["leaderEpoch"], each["replicas"], each["isr"],
        )
        for each in state.topics.states()
    }  # fmt: skip
    planned = {
        (each.topic, each.topic_id, each.partition): (
            each.leader, plan.leader_epoch, [r.node_id for r in each.replicas], each.in_sync,
        )
        for each in plan.partitions
    }  # fmt: skip
    if found != planned or state.unread():
        raise LogChangedError("the new metadata, read back, is not what was planned")


class _Value:
    """A record of data, as `MetadataState` takes it."""

    control_type: ControlRecordType | None = None

    def __init__(self, value: bytes) -> None:
        self.value: bytes | None = value


def record_counts(values: Sequence[bytes]) -> dict[str, int]:
    """How many records of each type there are."""
    found: dict[str, int] = {}
    for value in values:
        record = decode_metadata_record(value)
        name = record.name if isinstance(record, RawRecord) else record.message.name
        found[name] = found.get(name, 0) + 1
    return found


def quorum_records(voters: Sequence[Voter]) -> list[tuple[ControlRecordType, dict[str, Any]]]:
    """What a dynamic quorum begins with: kraft.version 1, and its voters."""
    return [
        (ControlRecordType.KRAFT_VERSION, {"kRaftVersion": 1}),
        (ControlRecordType.KRAFT_VOTERS, {"voters": [voter.fields for voter in voters]}),
    ]
