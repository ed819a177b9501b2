"""Values of Kafka's nodes: JSON written by every release from 0.8 to 3.9, whose keys come and go.

Unknown keys are ignored, missing ones are None. What cannot be read is reported and has no value.

Source: Kafka ZkData, and the versions before it; spec of each release's registration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.json_text import parse_json_object, whole_number

DEFAULT_ENTITY = "<default>"
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class BrokerValue:
    """A broker's registration."""

    endpoints: tuple[str, ...]
    rack: str | None


@dataclass(frozen=True, slots=True)
class TopicValue:
    """A topic's assignment: replicas of each partition, and what a reassignment adds and takes."""

    topic_id: str | None = None
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Leader and in-sync replicas of a partition."""

    leader: int
    leader_epoch: int
    controller_epoch: int | None
    isr: tuple[int, ...]
    recovery_state: int


@dataclass(frozen=True, slots=True)
class ControllerValue:
    """Who holds the controllership; `kraft_epoch` of a KRaft controller during a migration."""

    broker_id: int
    kraft_epoch: int | None


@dataclass(frozen=True, slots=True, order=True)
class AclValue:
    """One entry of a resource's ACL, in the names of Kafka's protocol."""

    principal: str
    host: str
    operation: str
    permission_type: str


def parse_broker(data: bytes, path: str) -> BrokerValue:
    value = parse_json_object(data, path)
    endpoints = value.get("endpoints")
    if not isinstance(endpoints, list):  # version 1 has one address
        endpoints = [f"PLAINTEXT://{value.get('host')}:{value.get('port')}"]
    rack = value.get("rack")
    return BrokerValue(tuple(map(str, endpoints)), rack if isinstance(rack, str) else None)


def parse_topic(data: bytes, path: str) -> TopicValue:
    value = parse_json_object(data, path)
    topic_id = value.get("topic_id")
    return TopicValue(
        topic_id if isinstance(topic_id, str) else None,
        _assignment(value.get("partitions"), path),
        _assignment(value.get("adding_replicas") or {}, path),
        _assignment(value.get("removing_replicas") or {}, path),
    )


def parse_partition_state(data: bytes, path: str) -> PartitionState:
    value = parse_json_object(data, path)
    return PartitionState(
        _number(value, "leader", path),
        _number(value, "leader_epoch", path),
        whole_number(value.get("controller_epoch"), 32),
        _nodes(value.get("isr"), path),
        whole_number(value.get("leader_recovery_state"), 32) or 0,
    )


def parse_controller(data: bytes, path: str) -> ControllerValue:
    """Before 0.8.0 was final it was the bare number."""
    if _NUMBER.fullmatch(data.decode("latin-1")):
        return ControllerValue(parse_number(data, path), None)
    value = parse_json_object(data, path)
    epoch = whole_number(value.get("kraftControllerEpoch"), 32)
    is_kraft = epoch is not None and epoch >= 0
    return ControllerValue(_number(value, "brokerid", path), epoch if is_kraft else None)


def parse_number(data: bytes, path: str, bits: int = 32) -> int:
    """Decimal text, as epochs and old consumers' offsets are."""
    text = data.decode("latin-1").strip()
    number = whole_number(int(text), bits) if _NUMBER.fullmatch(text) else None
    if number is None:
        raise CorruptCheckpointError(f"{text[:60]!r} is no number", path=path)
    return number


def parse_config(data: bytes, path: str) -> dict[str, str]:
    config = parse_json_object(data, path).get("config", {})
    if not isinstance(config, dict):
        raise CorruptCheckpointError("config is no object", path=path)
    return {key: str(text) for key, text in config.items()}


def parse_cluster_id(data: bytes, path: str) -> str | None:
    cluster_id = parse_json_object(data, path).get("id")
    return cluster_id if isinstance(cluster_id, str) else None


def parse_acls(data: bytes, path: str) -> frozenset[AclValue]:
    entries = parse_json_object(data, path).get("acls", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CorruptCheckpointError("acls are no list of objects", path=path)
    return frozenset(
        AclValue(
            str(entry.get("principal")),
            str(entry.get("host", "*")),
            protocol_name(str(entry.get("operation"))),
            protocol_name(str(entry.get("permissionType"))),
        )
        for entry in entries
    )


def protocol_name(name: str) -> str:
    """`TransactionalId` as the protocol spells it: TRANSACTIONAL_ID."""
    return _CAPITAL.sub("_", name).upper()


def _number(value: Mapping[str, Any], key: str, path: str) -> int:
    number = whole_number(value.get(key), 32)
    if number is None:
        raise CorruptCheckpointError(f"{key} is no number", path=path)
    return number


def _nodes(value: object, path: str) -> tuple[int, ...]:
    numbers = [whole_number(node, 32) for node in value] if isinstance(value, list) else [None]
    if None in numbers:
        raise CorruptCheckpointError("replicas are no list of node ids", path=path)
    return tuple(number for number in numbers if number is not None)


def _assignment(value: object, path: str) -> dict[int, tuple[int, ...]]:
    if not isinstance(value, dict):
        raise CorruptCheckpointError("partitions are no object", path=path)
    return {
        parse_number(key.encode("utf-8", "replace"), path): _nodes(nodes, path)
        for key, nodes in value.items()
    }
