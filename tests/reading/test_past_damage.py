"""Every reader at a batch whose length is wrong: none ends there without a word."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog import open_log_dir, read_records, read_view
from kafkalog.cli.main import main
from kafkalog.errors import CorruptRecordError, KafkaLogError, OffsetOutOfRangeError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record_batch import field_position
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.metadata_records import read_metadata_records
from kafkalog.log.segment_facts import scan_segment_facts
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.reading.fetch import fetch
from kafkalog.reading.lookups import MAX_TIMESTAMP, last_stable_offset, list_offsets
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.message_encoder import encode_key, encode_value

LOG = f"{0:020d}.log"
WRONG = [2**24, 0, -3]


def with_wrong_length(log: LogBuilder, number: int, length: int) -> Path:
    """The written log with the length of a batch of its first segment set."""
    path = log.write()
    data = bytearray((path / LOG).read_bytes())
    struct.pack_into(">i", data, log.segments[0].batches[number][0] + 8, length)
    (path / LOG).write_bytes(data)
    return path


def transactions(log_dir: Path, *, closed: bool) -> LogBuilder:
    """Three committed transactions; batch 2 is all of the second one's data, at offset 2."""
    log = LogBuilder(log_dir, "orders-0")
    for producer_id in (7, 8, 7):
        log.batch(("k", "v" * 30), producer_id=producer_id, is_transactional=True)
        log.marker(ControlRecordType.COMMIT, producer_id)
    return log.segment().batch(("last", "v")) if closed else log


ASKED: dict[str, Callable[[PartitionInventory], Any]] = {
    "a fetch": lambda partition: fetch(partition, 1),
    "the largest timestamp": lambda partition: list_offsets(partition, MAX_TIMESTAMP),
    "a timestamp": lambda partition: list_offsets(partition, START_MS + 5),
    "the last stable offset": last_stable_offset,
}


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("length", WRONG)
@pytest.mark.parametrize("what", ASKED)
def test_a_question_does_not_end_at_damage(
    log_dir: Path, what: str, length: int, closed: bool
) -> None:
    path = with_wrong_length(transactions(log_dir, closed=closed), 2, length)
    for snapshot in path.glob("*.snapshot"):
        snapshot.unlink()
    (path / f"{0:020d}.timeindex").unlink()
    (partition,) = open_log_dir(path)
    with pytest.raises(CorruptRecordError) as caught:
        ASKED[what](partition)
    assert caught.value.path == str(path / LOG)


@pytest.mark.parametrize("length", WRONG)
def test_the_end_of_the_log_lies_behind_damage(log_dir: Path, length: int) -> None:
    """Or else a stream, or a read up to the high watermark, would end in front of it."""
    path = with_wrong_length(transactions(log_dir, closed=False), 2, length)
    (partition,) = open_log_dir(path)
    assert partition.log_end_offset == 6
    assert any(LOG in problem for problem in partition.problems)  # nothing may change it
    facts = scan_segment_facts(partition.segments[0])
    assert facts.corrupt is not None
    (row,) = read_view("segments", path).to_pylist()
    assert row["error"]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("length", WRONG)
def test_producers_and_transactions_behind_damage_are_told(
    log_dir: Path, length: int, closed: bool
) -> None:
    path = with_wrong_length(transactions(log_dir, closed=closed), 2, length)
    for view in ("transactions", "producers"):
        with pytest.raises(CorruptRecordError):
            read_view(view, path)
    found = read_view("transactions", path, mode="PERMISSIVE").to_pylist()
    assert [(row["producerId"], row["markerOffset"]) for row in found if not row["error"]] == [
        (7, 1),
        (8, 3),
        (7, 5),
    ]
    assert len([row for row in found if row["error"]]) == 1
    producers = read_view("producers", path, mode="DROPMALFORMED").to_pylist()
    assert {row["producerId"]: row["committedCount"] for row in producers} == (
        {7: 2, 8: 1, None: 0} if closed else {7: 2, 8: 1}
    )


def commits(log_dir: Path) -> LogBuilder:
    """Two commits in transactions of their own, and one outside; markers are batches 1 and 3."""
    log = LogBuilder(log_dir, "__consumer_offsets-0")

    def record(group: str, offset: int) -> tuple[bytes, bytes]:
        names = {"group": group, "topic": "t", "partition": 0}
        fields = {
            "offset": offset, "leaderEpoch": 0, "metadata": "", "commitTimestamp": START_MS,
            "expireTimestamp": -1,
        }  # fmt: skip
        return encode_key(OFFSET_COMMIT.key, names), encode_value(OFFSET_COMMIT.value, 3, fields)

    for number in (0, 1):
        log.batch(record(f"g{number}", 10), producer_id=7 + number, is_transactional=True)
        log.marker(ControlRecordType.COMMIT, 7 + number)
    log.batch(record("g2", 12))
    return log.segment().batch(record("g3", 13))


@pytest.mark.parametrize("view", ["offset_commits", "latest_offset_commits"])
@pytest.mark.parametrize("length", WRONG)
def test_commits_behind_damage_are_told(log_dir: Path, view: str, length: int) -> None:
    path = with_wrong_length(commits(log_dir), 0, length)
    with pytest.raises(CorruptRecordError):
        read_view(view, path)
    found = read_view(view, path, mode="PERMISSIVE").to_pylist()
    states = {row["group"]: row["transactionState"] for row in found if not row["error"]}
    assert states == {"g1": "committed", "g2": None, "g3": None}
    assert [row["group"] for row in found if row["error"]] == [None]


@pytest.mark.parametrize("view", ["offset_commits", "latest_offset_commits"])
@pytest.mark.parametrize("at", [8, field_position("crc"), 70])
def test_a_damaged_marker_does_not_hide_a_commit_without_a_word(
    log_dir: Path, view: str, at: int
) -> None:
    log = commits(log_dir)
    path = log.write()
    data = bytearray((path / LOG).read_bytes())
    data[log.segments[0].batches[1][0] + at] ^= 0x11
    (path / LOG).write_bytes(data)
    with pytest.raises(KafkaLogError):
        read_view(view, path)
    found = read_view(view, path, mode="PERMISSIVE").to_pylist()
    assert [row["group"] for row in found if row["error"]] == [None]
    assert {"g1", "g2", "g3"} <= {row["group"] for row in found}


@pytest.mark.parametrize("length", WRONG)
def test_a_dump_goes_on_behind_damage(
    log_dir: Path, length: int, capfd: pytest.CaptureFixture[str]
) -> None:
    path = with_wrong_length(transactions(log_dir, closed=True), 2, length)
    assert main(["dump", str(path / LOG)]) == 1
    out, err = capfd.readouterr()
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("baseOffset")]
    assert shown == ["0", "1", "3", "4", "5"]
    assert LOG in err


def test_a_metadata_log_does_not_end_at_damage(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "__cluster_metadata-0")
    for _ in range(4):
        log.batch((None, b"\x01\x00\x00"))
    path = with_wrong_length(log, 1, 2**24)
    with pytest.raises(CorruptRecordError, match="sound batch follows"):
        list(read_metadata_records([(0, path / LOG)], 0))


@pytest.mark.parametrize("number", [1, 2])
def test_a_batch_whose_end_is_damaged_is_not_passed_over(log_dir: Path, number: int) -> None:
    """It says that it ends below the offset where the read begins; number 2 is a segment's last."""
    log = LogBuilder(log_dir, "orders-0").segment()
    for at in range(3):
        log.batch((f"k{at}", "v"), (f"l{at}", "v"))
    log.segment().batch(("last", "v"))
    path = log.write()
    data = bytearray((path / LOG).read_bytes())
    start = log.segments[0].batches[number][0]
    struct.pack_into(">i", data, start + field_position("last_offset_delta"), 0)
    (path / LOG).write_bytes(data)
    (partition,) = open_log_dir(path)
    asked = {"starting_offsets": {partition.topic_partition: 2 * number + 1}}
    with pytest.raises((CorruptRecordError, OffsetOutOfRangeError)):
        read_records(path, **asked).read_all()
    table = read_records(path, **asked, mode="PERMISSIVE", columns=["offset"]).read_all()
    assert table["offset"].to_pylist() == [None, *range(2 * number + 2, 7)]
