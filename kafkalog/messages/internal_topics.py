"""Records of any internal topic, as type, version and JSON: which topic has which messages.

Source: Kafka's Topic, DumpLogSegments (the same JSON).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.format.secret_settings import REDACTED, is_secret
from kafkalog.format.topics import (
    CLUSTER_METADATA_TOPIC,
    OFFSETS_TOPIC,
    REMOTE_LOG_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kafkalog.messages.cluster_metadata import CONFIG_RECORD, MetadataRecord, decode_metadata_record
from kafkalog.messages.consumer_protocol import (
    ASSIGNMENT,
    PROTOCOL_TYPE,
    SUBSCRIPTION,
    decode_consumer_protocol,
)
from kafkalog.messages.coordinator_record import (
    CoordinatorRecord,
    RecordTypes,
    decode_coordinator_record,
)
from kafkalog.messages.group_records import GROUP_METADATA
from kafkalog.messages.json_form import json_form, json_text
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.remote_log_records import RemoteLogRecord, decode_remote_log_record
from kafkalog.messages.schema import UnknownRecord
from kafkalog.messages.security_records import USER_SCRAM_CREDENTIAL_RECORD
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES

# What of UserScramCredentialRecord stays out of JSON.
_SCRAM_SECRETS = ("salt", "storedKey", "serverKey")
# The types of metadata records that may hold a secret: a setting's value, a user's keys.
_TYPES_WITH_SECRETS = (CONFIG_RECORD.api_key, USER_SCRAM_CREDENTIAL_RECORD.api_key)
_SECRET_TYPE_BYTES = tuple(bytes([number]) for number in _TYPES_WITH_SECRETS)


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """`type` is Kafka's name of the message, `type 99` for one without a table here; `key` and
    `value` are JSON. Both are None of an unknown type or version, `value` of a tombstone.
    `has_secret`: the JSON does without, the record's bytes do not.
    """

    type: str
    version: int | None
    key: str | None
    value: str | None
    has_secret: bool = False


Parts = bytes | None
Decoder = Callable[[Parts, Parts], InternalRecord]


def _coordinator(types: RecordTypes) -> Decoder:
    def decode(key: Parts, value: Parts) -> InternalRecord:
        record = decode_coordinator_record(types, key, value)
        if isinstance(record, UnknownRecord):
            known = types.get(record.number)
            if known is not None and types is not TRANSACTION_TYPES:
                # Coordinators of groups do not load it either; that of transactions passes it over.
                raise UnsupportedMessageVersionError(
                    f"{known.name} version {record.version} is not known"
                )
            name = f"type {record.number}" if known is None else known.name
            return InternalRecord(name, record.version, None, None)
        fields = value_json(record)
        return InternalRecord(
            record.type.name,
            record.version,
            json_text(json_form(record.type.key.body, 0, record.key)),
            None if fields is None else json_text(fields),
        )

    return decode


def value_json(record: CoordinatorRecord) -> dict[str, Any] | None:
    """The value as Kafka's converters write it, None of a tombstone; subscriptions and assignments
    of consumers of a classic group as fields, where they can be read.
    """
    if record.layout is None or record.value is None or record.version is None:
        return None
    data = json_form(record.layout.body, record.version, record.value)
    if record.type is GROUP_METADATA and data["protocolType"] == PROTOCOL_TYPE:
        for shown, member in zip(data["members"], record.value["members"], strict=True):
            for name, message in (("subscription", SUBSCRIPTION), ("assignment", ASSIGNMENT)):
                try:
                    version, fields = decode_consumer_protocol(message, member[name])
                except CorruptRecordError:
                    continue  # the bytes as they are
                shown[name] = json_form(message.body, version, fields)
    return data


def _cluster_metadata(_: Parts, value: Parts) -> InternalRecord:
    record = decode_metadata_record(value)
    if not isinstance(record, MetadataRecord):
        name = record.name.rpartition(" version ")[0]
        has_secret = record.api_key in _TYPES_WITH_SECRETS
        return InternalRecord(name, record.version, None, None, has_secret)
    fields = json_form(record.message.body, record.version, record.fields)
    secrets = _secrets(record)
    text = json_text(fields | dict.fromkeys(secrets, REDACTED))
    return InternalRecord(record.message.name, record.version, None, text, bool(secrets))


def _secrets(record: MetadataRecord) -> tuple[str, ...]:
    """The fields that must not be shown."""
    if record.message is USER_SCRAM_CREDENTIAL_RECORD:
        return _SCRAM_SECRETS
    is_setting = record.message is CONFIG_RECORD and record.fields["value"] is not None
    return ("value",) if is_setting and is_secret(record.fields["name"]) else ()


def may_have_secret(value: Parts) -> bool:
    """Of a metadata record that cannot be decoded: whether its type may hold a secret. Its type is
    the second byte, where it is below 128 as all are.
    """
    return value is not None and (value[1:2] >= b"\x80" or value[1:2] in _SECRET_TYPE_BYTES)


def _remote_log(_: Parts, value: Parts) -> InternalRecord:
    record = decode_remote_log_record(value)
    if not isinstance(record, RemoteLogRecord):
        return InternalRecord(f"type {record.number}", record.version, None, None)
    fields = json_form(record.message.body, record.version, record.fields)
    return InternalRecord(record.message.name, record.version, None, json_text(fields))


# Topic → what reads a record of it; CorruptRecordError and its kin for bytes that are none.
INTERNAL_TOPICS: dict[str, Decoder] = {
    OFFSETS_TOPIC: _coordinator(OFFSETS_TYPES),
    TRANSACTION_TOPIC: _coordinator(TRANSACTION_TYPES),
    SHARE_STATE_TOPIC: _coordinator(SHARE_STATE_TYPES),
    REMOTE_LOG_TOPIC: _remote_log,
    CLUSTER_METADATA_TOPIC: _cluster_metadata,
}
