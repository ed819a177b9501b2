"""Records of internal topics as Kafka's DumpLogSegments prints them: the decoders of its options.

A decoder takes key, value and offset of a data record, and gives what stands behind `key:` and
`payload:`, None for nothing. What cannot be read says so in place of it; the dump goes on.

Source: Kafka DumpLogSegments and its message parsers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kafkalog.errors import KafkaLogError
from kafkalog.messages.cluster_metadata import MetadataRecord, decode_metadata_record
from kafkalog.messages.coordinator_record import (
    CoordinatorRecord,
    RecordTypes,
    decode_coordinator_record,
)
from kafkalog.messages.internal_topics import value_json
from kafkalog.messages.json_form import json_form, json_text
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.remote_log_records import (
    RemoteLogRecord,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
    decode_remote_log_record,
)
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES

Text = str | None
Decoder = Callable[[bytes | None, bytes | None, int], tuple[Text, Text]]


# -- the coordinators' topics ----------------------------------------------------------------------


def _coordinator(types: RecordTypes) -> Decoder:
    def decode(key: bytes | None, value: bytes | None, offset: int) -> tuple[Text, Text]:
        try:
            record = decode_coordinator_record(types, key, value)
        except KafkaLogError as error:
            return f"Error at offset {offset}, skipping. {error.reason}", None
        if isinstance(record, CoordinatorRecord):
            return _key_text(record), _value_text(record)
        if record.version is None:
            return f"Unknown record type {record.number} at offset {offset}, skipping.", None
        reason = f"Value version {record.version} of type {record.number} is not known here"
        return f"Error at offset {offset}, skipping. {reason}", None

    return decode


def _key_text(record: CoordinatorRecord) -> str:
    data = json_form(record.type.key.body, 0, record.key)
    return json_text({"type": str(record.type.number), "data": data})


def _value_text(record: CoordinatorRecord) -> str:
    data = value_json(record)
    if data is None:
        return "<DELETE>"
    return json_text({"version": str(record.version), "data": data})


# -- frames ----------------------------------------------------------------------------------------


def _cluster_metadata(_: bytes | None, value: bytes | None, offset: int) -> tuple[Text, Text]:
    try:
        record = decode_metadata_record(value)
    except KafkaLogError as error:
        return None, f"Error at {offset}, skipping. {error.reason}"
    if not isinstance(record, MetadataRecord):
        return None, f"Error at {offset}, skipping. {record.name} is not known here"
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", record.message.name).upper()
    data = json_form(record.message.body, record.version, record.fields)
    return None, json_text({"type": name, "version": record.version, "data": data})


def _remote_log_metadata(_: bytes | None, value: bytes | None, offset: int) -> tuple[Text, Text]:
    try:
        record = decode_remote_log_record(value)
    except KafkaLogError as error:
        return None, f"Error at offset {offset}, skipping. {error.reason}"
    if not isinstance(record, RemoteLogRecord):
        reason = f"type {record.number} version {record.version} is not known here"
        return None, f"Error at offset {offset}, skipping. {reason}"
    return None, _REMOTE_TEXTS[record.message.api_key](record.fields)


def _partition_text(fields: Mapping[str, Any]) -> str:
    return f"{fields['id']}:{fields['name']}-{fields['partition']}"


def _segment_id_text(fields: Mapping[str, Any]) -> str:
    segment = fields["remoteLogSegmentId"]
    place = _partition_text(segment["topicIdPartition"])
    return f"remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={place}, id={segment['id']}}}"


def _numbers_text(fields: Mapping[str, Any], *names: str) -> str:
    return ", ".join(f"{name}={fields[name]}" for name in names)


def _end_text(fields: Mapping[str, Any]) -> str:
    """The last fields of a segment's facts."""
    epochs = {each["leaderEpoch"]: each["offset"] for each in fields["segmentLeaderEpochs"]}
    shown = ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(epochs.items()))
    return (
        f"segmentLeaderEpochs={{{shown}}}, {_numbers_text(fields, 'segmentSizeInBytes')}"
        f", {_custom_and_state_text(fields)}"
        f", txnIdxEmpty={str(fields['txnIndexEmpty']).lower()}"
    )


def _custom_and_state_text(fields: Mapping[str, Any]) -> str:
    data = fields["customMetadata"]
    custom = "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"
    state = _state(RemoteLogSegmentState, fields["remoteLogSegmentState"])
    return f"customMetadata={custom}, state={state}"


def _segment_text(fields: Mapping[str, Any]) -> str:
    names = ("startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs")
    return (
        f"RemoteLogSegmentMetadata{{{_segment_id_text(fields)}"
        f", {_numbers_text(fields, *names)}, {_end_text(fields)}}}"
    )


def _update_text(fields: Mapping[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{{_segment_id_text(fields)}"
        f", {_custom_and_state_text(fields)}"
        f", {_numbers_text(fields, 'eventTimestampMs', 'brokerId')}}}"
    )


def _delete_text(fields: Mapping[str, Any]) -> str:
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition="
        f"{_partition_text(fields['topicIdPartition'])}"
        f", state={_state(RemotePartitionDeleteState, fields['remotePartitionDeleteState'])}"
        f", {_numbers_text(fields, 'eventTimestampMs', 'brokerId')}}}"
    )


def _snapshot_text(fields: Mapping[str, Any]) -> str:
    names = ("segmentId", "startOffset", "endOffset", "maxTimestampMs")
    return (
        f"RemoteLogSegmentMetadataSnapshot{{{_numbers_text(fields, *names)}, {_end_text(fields)}}}"
    )


def _state(states: type[RemoteLogSegmentState | RemotePartitionDeleteState], number: int) -> str:
    try:
        return states(number).name
    except ValueError:
        return f"unknown({number})"


_REMOTE_TEXTS = {0: _segment_text, 1: _update_text, 2: _delete_text, 3: _snapshot_text}

# Option → its decoder, without `--` and `-decoder`.
DECODERS: dict[str, Decoder] = {
    "offsets": _coordinator(OFFSETS_TYPES),
    "transaction-log": _coordinator(TRANSACTION_TYPES),
    "cluster-metadata": _cluster_metadata,
    "remote-log-metadata": _remote_log_metadata,
    "share-group-state": _coordinator(SHARE_STATE_TYPES),
}
