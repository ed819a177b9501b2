"""Records of Kafka Connect's three topics: offsets of source connectors, configs, statuses.

Keys of offsets and all values are JSON without schemas, keys of configs and statuses are text:

 offsets   ["CONNECTOR", {partition of the source}]
 configs   connector-C, task-C-N, commit-C, target-state-C, tasks-fencing-C, restart-connector-C,
           logger-cluster-L, session-key
 status    status-connector-C, status-task-C-N, status-topic-TOPIC:connector-C

The session key, and values of properties that look secret, are redacted.

Source: Kafka KafkaConfigBackingStore, KafkaStatusBackingStore, OffsetStorageWriter,
ConnectorOffsetBackingStore.
"""

from __future__ import annotations

import re
from typing import Any

from kafkalog.errors import CorruptRecordError
from kafkalog.format.secret_settings import REDACTED, is_secret
from kafkalog.messages.json_fields import (
    Fields,
    compact_json,
    number,
    parse_json,
    parse_object,
    printable,
    text,
)

_SESSION_KEY = "session-key"
# Prefix of a key → its record type; what follows is a connector's name, or as said below.
_CONFIG_TYPES = {
    "connector-": "connector",
    "task-": "task",  # CONNECTOR-NUMBER
    "commit-": "commit",
    "target-state-": "target-state",
    "tasks-fencing-": "tasks-fencing",
    "restart-connector-": "restart-connector",
    "logger-cluster-": "logger-cluster",  # a logger's name
}
_STATUS_TYPES = {"status-connector-": "connector", "status-task-": "task", "status-topic-": "topic"}
_BEFORE_CONNECTOR = ":connector-"
# Names beside those of Kafka's own settings, as connectors call their secrets.
_SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|(api|access|account|private|shared|secret|master|encryption)[._-]?key",
    re.IGNORECASE,
)
# A user's password in an URL, or a secret among its parameters.
_SECRET_VALUE = re.compile(
    r"://[^/\s@]*:[^/\s]*@|(password|passwd|pwd|secret|token|sig|key)\s*=", re.IGNORECASE
)


def decode_connect_offset(key: bytes | None, value: bytes | None) -> Fields:
    """Raises CorruptRecordError for what is no such record; so do the others."""
    found = parse_json("key of an offset", _there(key))
    if not (isinstance(found, list) and len(found) == 2 and isinstance(found[0], str)):
        raise CorruptRecordError("key of an offset is not [connector, partition of its source]")
    offset = None if value is None else parse_object("offset of a connector", value)
    return {
        "connector": printable(found[0]),
        "sourcePartition": compact_json(found[1]),
        "sourceOffset": None if offset is None else compact_json(offset),
    }


def decode_connect_config(key: bytes | None, value: bytes | None) -> Fields:
    """`config` is the properties of a connector or task, else the value as it is."""
    name = _name(key)
    kind, rest = _typed(name, _CONFIG_TYPES)
    row: Fields = {"recordType": kind}
    if kind == "task":
        row["connector"], row["task"] = _connector_and_task(rest)
    elif kind != _SESSION_KEY:
        row["logger" if kind == "logger-cluster" else "connector"] = rest
    if value is None:
        return row
    fields = parse_object(f"{kind} of a config topic", value)
    if kind in ("connector", "task"):
        properties = fields.get("properties")
        if not isinstance(properties, dict):
            raise CorruptRecordError(f"{kind} of a config topic has no properties")
        return row | {"config": compact_json(_redacted(properties))}
    if kind == _SESSION_KEY and fields.get("key") is not None:
        fields["key"] = REDACTED
    if kind == "target-state":
        # Releases before 3.5 know no STOPPED: they take `state`, later ones the second.
        row["targetState"] = text(kind, fields, "state.v2") or text(kind, fields, "state")
    tasks = {"commit": "tasks", "tasks-fencing": "task-count"}.get(kind)
    if tasks is not None:
        row["tasksCount"] = number(kind, fields, tasks, bits=32)
    return row | {"config": compact_json(_redacted(fields))}


def decode_connect_status(key: bytes | None, value: bytes | None) -> Fields:
    """The state of a connector or task, or that a connector uses a topic."""
    kind, rest = _typed(_name(key), _STATUS_TYPES)
    row: Fields = {"recordType": kind}
    if kind == "task":
        row["connector"], row["task"] = _connector_and_task(rest)
    elif kind == "topic":
        row["usedTopic"], colon, row["connector"] = rest.partition(_BEFORE_CONNECTOR)
        if not colon:
            raise CorruptRecordError(f"key of a topic's status has no '{_BEFORE_CONNECTOR}'")
    else:
        row["connector"] = rest
    if value is None:
        return row
    what = f"status of a {kind}"
    fields = parse_object(what, value)
    if kind == "topic":
        used = fields.get("topic")
        if not isinstance(used, dict):
            raise CorruptRecordError(f"{what} has no topic")
        row["task"] = number(what, used, "task", bits=32)
        row["discoverTimestampMs"] = number(what, used, "discoverTimestamp", bits=64)
        return row
    return row | {
        "state": text(what, fields, "state"),
        "workerId": text(what, fields, "worker_id"),
        "generation": number(what, fields, "generation", bits=32),
        "pluginVersion": text(what, fields, "version"),
        "trace": text(what, fields, "trace"),
    }


def _there(key: bytes | None) -> bytes:
    if key is None:
        raise CorruptRecordError("key is null")
    return key


def _name(key: bytes | None) -> str:
    """Malformed UTF-8 reads as U+FFFD, as in Kafka."""
    return _there(key).decode("utf-8", "replace")


def _typed(name: str, types: dict[str, str]) -> tuple[str, str]:
    if types is _CONFIG_TYPES and name == _SESSION_KEY:
        return _SESSION_KEY, ""
    for prefix, kind in types.items():
        if name.startswith(prefix):
            return kind, name.removeprefix(prefix)
    raise CorruptRecordError(f"key of {len(name)} characters is of no known type")


def _connector_and_task(rest: str) -> tuple[str, int]:
    connector, dash, task = rest.rpartition("-")
    if not dash or not (task.isascii() and task.isdigit()) or len(task) > 9:
        raise CorruptRecordError("key of a task does not end in its number")
    return connector, int(task)


def _redacted(found: Any, name: str = "") -> Any:
    """The same with REDACTED for what looks secret, by its name or as text."""
    if isinstance(found, dict):
        if name and _is_secret(name):
            return REDACTED
        return {key: _redacted(value, key) for key, value in found.items()}
    if isinstance(found, list):
        return REDACTED if _is_secret(name) else [_redacted(value) for value in found]
    if found is None or isinstance(found, bool):
        return found
    if _is_secret(name) or (isinstance(found, str) and _SECRET_VALUE.search(found)):
        return REDACTED
    return found


def _is_secret(name: str) -> bool:
    return is_secret(name) or _SECRET_NAME.search(name) is not None
