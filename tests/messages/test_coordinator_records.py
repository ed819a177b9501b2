"""Records of the coordinators' topics: framing, older layouts, what is unknown, what is broken."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.messages.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    decode_consumer_protocol,
)
from kafkalog.messages.coordinator_record import (
    CoordinatorRecord,
    RecordType,
    RecordTypes,
    decode_coordinator_record,
)
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.messages.json_form import json_form
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.remote_log_records import (
    LAYOUTS,
    RemoteLogRecord,
    decode_remote_log_record,
)
from kafkalog.messages.schema import Message, UnknownRecord
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_TYPES
from tests.support.message_encoder import (
    encode_key,
    encode_message,
    encode_value,
    without_defaults,
)
from tests.support.random_messages import random_message

TOPICS: dict[str, RecordTypes] = {
    "__consumer_offsets": OFFSETS_TYPES,
    "__transaction_state": TRANSACTION_TYPES,
    "__share_group_state": SHARE_STATE_TYPES,
}
COMMIT_KEY = {"group": "g", "topic": "orders", "partition": 3}


def layouts() -> Iterator[tuple[RecordTypes, RecordType, Message, int]]:
    """Every layout of every type in every version."""
    for types in TOPICS.values():
        for known in types.values():
            for layout in (known.value, *known.older):
                for version in range(layout.versions.first, layout.versions.last + 1):
                    yield types, known, layout, version


def decoded(types: RecordTypes, key: bytes, value: bytes | None) -> CoordinatorRecord:
    record = decode_coordinator_record(types, key, value)
    assert isinstance(record, CoordinatorRecord)
    return record


def test_commits_of_all_versions_stand_side_by_side() -> None:
    """Bytes as releases wrote them: 0 by 0.8.2, 1 up to 2.0, 3 from 2.1, 4 since 4.1."""
    key = bytes.fromhex("0001 0001 67 0006 6f7264657273 00000003")
    expected = {"offset": 5, "metadata": "m", "commitTimestamp": 7}
    cases = {
        "0000 0000000000000005 0001 6d 0000000000000007": {},
        "0001 0000000000000005 0001 6d 0000000000000007 0000000000000009": {"expireTimestamp": 9},
        "0002 0000000000000005 0001 6d 0000000000000007": {},
        "0003 0000000000000005 00000002 0001 6d 0000000000000007": {"leaderEpoch": 2},
        "0004 0000000000000005 00000002 02 6d 0000000000000007 00": {"leaderEpoch": 2},
        "0004 0000000000000005 00000002 02 6d 0000000000000007 01 00 10" + "ff" * 16: {
            "leaderEpoch": 2, "topicId": "_____________________w",
        },
    }  # fmt: skip
    for text, more in cases.items():
        record = decoded(OFFSETS_TYPES, key, bytes.fromhex(text))
        assert record.key == COMMIT_KEY
        assert record.version == int(text[:4], 16)
        nothing = {"leaderEpoch": -1, "expireTimestamp": -1, "topicId": "A" * 22}
        assert record.value == nothing | expected | more


def test_a_key_of_0_8_2_takes_version_0_only() -> None:
    key = bytes.fromhex("0000 0001 67 0001 74 00000000")
    body = bytes.fromhex("0000000000000005 0001 6d 0000000000000007")
    assert decoded(OFFSETS_TYPES, key, b"\0\0" + body).type.name == "LegacyOffsetCommit"
    assert decode_coordinator_record(OFFSETS_TYPES, key, b"\0\1" + body) == UnknownRecord(0, 1)


def test_a_tombstone_has_a_key_and_no_value() -> None:
    record = decoded(OFFSETS_TYPES, encode_key(OFFSET_COMMIT.key, COMMIT_KEY), None)
    assert (record.key, record.value, record.version) == (COMMIT_KEY, None, None)


def test_unknown_types_and_newer_versions_stay_bytes() -> None:
    key = encode_key(OFFSET_COMMIT.key, COMMIT_KEY)
    assert decode_coordinator_record(OFFSETS_TYPES, b"\0\x12junk", b"") == UnknownRecord(18)
    assert decode_coordinator_record(OFFSETS_TYPES, b"\x7f\xff", None) == UnknownRecord(32767)
    assert decode_coordinator_record(OFFSETS_TYPES, key, b"\0\5") == UnknownRecord(1, 5)
    assert decode_coordinator_record(OFFSETS_TYPES, key, b"\xff\xff") == UnknownRecord(1, -1)
    assert decode_remote_log_record(b"\1\4\0junk") == UnknownRecord(4)
    assert decode_remote_log_record(b"\1\0\1junk") == UnknownRecord(0, 1)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "without a key"),
        (b"\0", b"", "2 bytes are needed, 1"),
        (b"\0\2\0\1g", b"", "version of the value: 2 bytes are needed, 0"),
        (b"\0\2\xff\xff", None, "group is null"),
    ],
)
def test_bytes_that_are_no_record_are_refused(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_coordinator_record(OFFSETS_TYPES, key, value)


def test_layouts_of_earlier_releases_are_told_from_the_newer_ones() -> None:
    """Share state of 4.0, consumer groups of 3.7, share groups of 3.9: the same version number,
    other fields. A value is read by the layout that wrote it; a few short ones can be both.
    """
    rng = random.Random("layouts")
    read, mistaken = 0, []
    for types, known, layout, version in layouts():
        for _ in range(40):
            fields = random_message(layout, version, rng)
            key = encode_key(known.key, random_message(known.key, 0, rng))
            record = decoded(types, key, encode_value(layout, version, fields))
            read += 1
            if record.layout is not layout:
                mistaken.append(f"{layout.source}: {fields}")
            elif record.value is not None:
                expected = without_defaults(layout.body, fields)
                assert json_form(layout.body, version, record.value) == expected
    assert read > 1500
    # an empty list of one is an empty list of the other
    assert len(mistaken) <= read // 100, mistaken


def test_broken_values_are_read_or_refused_by_name() -> None:
    """Every prefix, and seeded changes of bytes, of values of every layout."""
    rng = random.Random("broken")
    refused = 0
    for types, known, layout, version in layouts():
        key = encode_key(known.key, random_message(known.key, 0, rng))
        value = encode_value(layout, version, random_message(layout, version, rng))
        broken = [value[:cut] for cut in range(min(len(value), 300))]
        for _ in range(30):
            data = bytearray(value)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            broken.append(bytes(data))
        for data in broken:
            try:
                decode_coordinator_record(types, key, data)
            except KafkaLogError:
                refused += 1
        for cut in range(len(key)):
            try:
                decode_coordinator_record(types, key[:cut], value)
            except KafkaLogError:
                refused += 1
    assert refused > 3000


def test_remote_log_records_of_3_5_have_no_custom_metadata() -> None:
    rng = random.Random("remote")
    for api_key, of_type in LAYOUTS.items():
        for layout in of_type:
            fields = random_message(layout, 0, rng)
            value = bytes([1, api_key, 0]) + encode_message(layout, 0, fields)
            record = decode_remote_log_record(value)
            assert isinstance(record, RemoteLogRecord)
            assert record.message is layout
            expected = without_defaults(layout.body, fields)
            assert json_form(layout.body, 0, record.fields) == expected
    with pytest.raises(CorruptRecordError, match="without a value"):
        decode_remote_log_record(None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("0000 00000001 0001 74 ffffffff", {"topics": ["t"], "userData": None}),
        (
            "0001 00000000 00000000 00000001 0001 74 00000001 00000002",
            {"ownedPartitions": [{"topic": "t", "partitions": [2]}]},
        ),
        ("0003 00000000 00000000 00000000 00000007 0001 72", {"generationId": 7, "rackId": "r"}),
        # a version above ours has the fields of the newest one, and more behind them
        ("0009 00000000 00000000 00000000 00000007 ffff dead", {"generationId": 7, "rackId": None}),
    ],
)
def test_subscriptions_are_read_in_every_version(data: str, expected: dict[str, Any]) -> None:
    nothing = {
        "topics": [], "userData": b"", "ownedPartitions": [], "generationId": -1, "rackId": None,
    }  # fmt: skip
    version, fields = decode_consumer_protocol(SUBSCRIPTION, bytes.fromhex(data))
    assert version == int(data[:4], 16)
    userless = {"userData": None} if "userData" in expected else {}
    assert fields == nothing | userless | expected


@pytest.mark.parametrize("data", ["", "00", "ffff 00000000 ffffffff", "0000 00000009"])
def test_what_is_no_assignment_is_refused(data: str) -> None:
    with pytest.raises(CorruptRecordError):
        decode_consumer_protocol(ASSIGNMENT, bytes.fromhex(data))
