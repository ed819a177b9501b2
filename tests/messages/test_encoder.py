"""Messages and metadata snapshots as Kafka writes them: its own files byte for byte, and what is
refused. Random messages of all types are compared with Kafka's classes in `tests/oracle`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import UnsupportedMessageVersionError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.metadata_records import MetadataLogRecord, read_snapshot_records
from kafkalog.messages.cluster_metadata import PARTITION_RECORD, TOPIC_RECORD
from kafkalog.messages.decoder import UNKNOWN_TAGS, decode_message
from kafkalog.messages.encoder import encode_message
from kafkalog.messages.kraft_control import decode_kraft_control
from kafkalog.messages.metadata_snapshot import pack_metadata_snapshot
from tests.support.log_builder import TOPIC_ID

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
PARTITION = {
    "topicId": TOPIC_ID, "replicas": [1], "isr": [1], "leader": 1, "leaderEpoch": 3,
    "partitionEpoch": 0, "directories": [TOPIC_ID],
}  # fmt: skip


def packed_again(records: list[MetadataLogRecord]) -> bytes:
    """A snapshot from the records of one that has a single time; bytes of its values as they are
    but for control records, which are decoded and encoded.
    """
    quorum = [
        (record.control_type, decode_kraft_control(record.control_type, record.value or b""))
        for record in records[1:-1]
        if record.control_type is not None
    ]
    values = [record.value or b"" for record in records if record.control_type is None]
    header = decode_kraft_control(ControlRecordType.SNAPSHOT_HEADER, records[0].value or b"")
    return pack_metadata_snapshot(
        values,
        records[0].timestamp_ms,
        quorum,
        contained_ms=header["lastContainedLogTimestamp"],
    )


@pytest.mark.parametrize(
    "file",
    [
        "broker/bootstrap.checkpoint",
        "cluster/1/data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    ],
)
def test_a_snapshot_is_written_as_kafka_wrote_it(file: str, tmp_path: Path) -> None:
    theirs = read_snapshot_records(SAMPLES / file)
    again = tmp_path / Path(file).name
    again.write_bytes(packed_again(theirs))
    ours = read_snapshot_records(again)

    def facts(record: MetadataLogRecord) -> tuple[Any, ...]:
        return record.offset, record.position, record.epoch, record.control_type, record.value

    assert [facts(record) for record in ours] == [facts(record) for record in theirs]
    if len({record.timestamp_ms for record in theirs}) == 1:
        assert again.read_bytes() == (SAMPLES / file).read_bytes()


def test_records_past_a_batch_begin_another(tmp_path: Path) -> None:
    path = tmp_path / "bootstrap.checkpoint"
    values = [bytes([n]) * (3 << 20) for n in range(5)]
    path.write_bytes(pack_metadata_snapshot(values, 7))
    records = read_snapshot_records(path)
    assert [record.offset for record in records] == list(range(7))
    assert [record.value for record in records[1:-1]] == values
    assert len({record.position for record in records}) == 5  # two a batch, header and footer
    assert records[-1].control_type is ControlRecordType.SNAPSHOT_FOOTER


def test_unknown_tags_are_written_again_in_their_order() -> None:
    fields = PARTITION | {"leaderRecoveryState": 1, UNKNOWN_TAGS: ((9, b"x"), (5, b"yy"))}
    body = encode_message(PARTITION_RECORD, 1, fields)
    assert body.endswith(b"\x03\x00\x01\x01\x05\x02yy\x09\x01x")
    assert decode_message(PARTITION_RECORD, 1, body)["leaderRecoveryState"] == 1
    without = encode_message(PARTITION_RECORD, 1, PARTITION | {"leaderRecoveryState": 0})
    assert without.endswith(b"\x00")


@pytest.mark.parametrize(
    ("version", "change", "error"),
    [
        (0, {}, "PartitionRecord version 0 has no place for directories"),
        (3, {}, "PartitionRecord version 3 is not known"),
        (1, {"replicas": None}, "PartitionRecord.replicas is null"),
        (1, {"leader": 1 << 31}, "PartitionRecord.leader: 2147483648 is no int32"),
        (1, {"leader": None}, "PartitionRecord.leader is null"),
        (1, {"topicId": "short"}, "PartitionRecord.topicId: 'short' is no uuid"),
        (1, {"replica": [1]}, "PartitionRecord: no field is called replica"),
    ],
)
def test_what_has_no_place_is_refused(version: int, change: dict[str, Any], error: str) -> None:
    with pytest.raises((UnsupportedMessageVersionError, ValueError), match=error):
        encode_message(PARTITION_RECORD, version, PARTITION | change)


def test_a_string_that_no_reader_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="40000 bytes, and a string has at most 32767"):
        encode_message(TOPIC_RECORD, 0, {"name": "é" * 20000, "topicId": TOPIC_ID})
