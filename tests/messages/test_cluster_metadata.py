"""Records of the metadata log: the tables, the frame, and what has no table."""

from __future__ import annotations

import pytest

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.messages.cluster_metadata import (
    CONFIG_RECORD,
    MESSAGES,
    PARTITION_CHANGE_RECORD,
    MetadataRecord,
    RawRecord,
    decode_metadata_record,
)
from kafkalog.messages.schema import Primitive
from tests.support.log_builder import TOPIC_ID
from tests.support.metadata_builder import (
    change_replicas,
    config,
    feature,
    frame,
    numbers,
    partition,
    tags,
    text,
    uuid,
)


def fields(value: bytes) -> dict[str, object]:
    record = decode_metadata_record(value)
    assert isinstance(record, MetadataRecord)
    return record.fields


def test_a_broker_wrote_these_records() -> None:
    """Values of the samples' metadata log, as hex dumps show them."""
    assert fields(bytes.fromhex("010c00116d657461646174612e76657273696f6e001e00")) == {
        "name": "metadata.version",
        "featureLevel": 30,
    }
    value = bytes.fromhex("01170001001212426f6f747374726170207265636f726473")
    assert fields(value) == {"name": "Bootstrap records"}
    assert fields(bytes.fromhex("01180000")) == {}


def test_a_setting_can_be_removed() -> None:
    assert fields(config("orders", "retention.ms", None)) == {
        "resourceType": 2,
        "resourceName": "orders",
        "name": "retention.ms",
        "value": None,
    }


def test_what_a_change_does_not_name_is_unchanged_and_not_empty() -> None:
    changed = fields(change_replicas([3, 1]))
    assert changed["replicas"] == [3, 1]
    assert (changed["leader"], changed["leaderRecoveryState"]) == (-2, -1)
    assert changed["isr"] is changed["directories"] is None
    body = bytes(4) + uuid(TOPIC_ID) + tags((0, numbers([])), (3, b"\0"))
    changed = fields(frame(5, 0, body))
    assert changed["isr"] == []
    assert changed["removingReplicas"] is None


def test_a_partition_of_version_2_has_directories_and_eligible_leaders() -> None:
    old = fields(partition([1, 2]))
    assert old["replicas"] == old["isr"] == [1, 2]
    assert (old["directories"], old["eligibleLeaderReplicas"]) == ([], None)
    body = partition([1])[3:-1] + b"\x02" + uuid(TOPIC_ID) + tags((1, numbers([4])))
    new = fields(frame(3, 2, body))
    assert new["directories"] == [TOPIC_ID]
    assert (new["eligibleLeaderReplicas"], new["lastKnownElr"]) == ([4], None)


@pytest.mark.parametrize(
    ("api_key", "version", "name"),
    [(99, 0, "type 99 version 0"), (4, 1, "ConfigRecord version 1"), (13, 5, "type 13 version 5")],
)
def test_unknown_types_and_newer_versions_stay_bytes(api_key: int, version: int, name: str) -> None:
    record = decode_metadata_record(frame(api_key, version, b"\xde\xad"))
    assert record == RawRecord(api_key, version, b"\xde\xad")
    assert record.name == name


def test_the_preview_of_2_8_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedMessageVersionError, match=r"frame version 0.*2\.8"):
        decode_metadata_record(frame(2, 0, b"", frame_version=0))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "without a value"),
        (b"", "cut off"),
        (b"\x01\x02", "cut off"),
        (b"\x01\x80\x80\x02\x00", "type 32768 is above 32767"),
        (feature("metadata.version", 30) + b"\0", "1 bytes are left"),
        (feature("metadata.version", 30)[:-2], "left"),
        (frame(12, 0, text(None) + b"\0\1\0"), "name is null"),
    ],
)
def test_values_that_are_no_record_are_refused(value: bytes | None, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decode_metadata_record(value)


def test_tables_name_their_source_and_tags_are_unique() -> None:
    for message in MESSAGES.values():
        file = message.name.replace("ZkMigrationState", "ZkMigration")
        assert message.source == f"{file}.json"
        assert message.meaning
        tagged = [field for field in message.body.fields if field.tag is not None]
        assert sorted(message.body.tagged_fields) == sorted(field.tag or 0 for field in tagged)
        assert len({field.name for field in message.body.fields}) == len(message.body.fields)
        assert all(field.meaning for field in message.body.fields)
    assert CONFIG_RECORD.body.fields[-1].type is Primitive.STRING
    assert sorted(PARTITION_CHANGE_RECORD.body.tagged_fields) == list(range(9))
