"""View `lag`: what Kafka's tool showed of the groups of a broker that was stopped then; every
state; bytes and times against what lies in the log; how much of a log is read.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.format.constants import CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.log_dir import open_log_dir
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.reading.function_views.shared_reads import SharedReads
from kafkalog.reading.function_views.table import FUNCTION_VIEWS
from kafkalog.reading.log_behind import log_behind, log_end
from kafkalog.reading.tables import read_batches, read_records
from tests.support.bytes_read import bytes_read
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.message_encoder import encode_key, encode_value
from tests.support.metadata_builder import MetadataBuilder, new_leader, partition, topic

SAMPLE = SAMPLES / "groups"
MIB = 1024 * 1024


def lag(*paths: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    made = FUNCTION_VIEWS["lag"].made
    assert made is not None
    rows = made(SharedReads([str(path) for path in paths])).to_pylist()
    assert [row["group"] for row in rows] == sorted(row["group"] for row in rows)
    return {(row["group"], row["topic"], row["partition"]): row for row in rows}


def commit(log_dir: Path, *commits: tuple[str, str, int, int]) -> None:
    """Of (group, topic, partition, offset)."""
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    for group, name, number, offset in commits:
        key = {"group": group, "topic": name, "partition": number}
        value = {"offset": offset, "metadata": "", "commitTimestamp": START_MS}
        log.batch((encode_key(OFFSET_COMMIT.key, key), encode_value(OFFSET_COMMIT.value, 3, value)))
    log.write()


def test_lag_is_what_the_tool_showed_before_the_broker_was_stopped() -> None:
    """Rows, dashes too, are those of `kafka-consumer-groups --describe --all-groups`."""
    shown = json.loads((SAMPLE / "events.json").read_text())[-1]["offsets"]
    found = lag(SAMPLE / "data")
    assert len(shown) >= 9
    assert set(found) == {(r["GROUP"], r["TOPIC"], int(r["PARTITION"])) for r in shown}
    for its in shown:
        row = found[its["GROUP"], its["TOPIC"], int(its["PARTITION"])]
        numbers = row["committedOffset"], row["logEndOffset"], row["lag"]
        texts = tuple("-" if number is None else str(number) for number in numbers)
        assert texts == (its["CURRENT-OFFSET"], its["LOG-END-OFFSET"], its["LAG"])
        assert row["highWatermark"] == row["logEndOffset"]
        assert (row["state"] == "noCommit") == (its["CURRENT-OFFSET"] == "-")
        assert row["isLeaderHere"]


def test_every_state_has_its_row(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0")
    for _ in range(10):
        log.batch(("k", "v"))
    log.log_start_offset(4).high_watermark(8).write()
    offsets = {"behind": 6, "atEnd": 10, "beyondEnd": 12, "belowStart": 1}
    commit(tmp_path, *((g, "orders", 0, n) for g, n in offsets.items()), ("noLog", "gone", 3, 5))
    found = {name[0]: row for name, row in lag(tmp_path).items()}
    assert {group: row["state"] for group, row in found.items()} == {g: g for g in found}
    assert {g: (found[g]["lag"], found[g]["lostOffsets"]) for g in found} == {
        "behind": (4, 0),
        "atEnd": (0, 0),
        "beyondEnd": (-2, 0),
        "belowStart": (9, 3),
        "noLog": (None, None),
    }
    assert (found["behind"]["highWatermark"], found["behind"]["logEndOffset"]) == (8, 10)
    assert found["belowStart"]["firstTimestampMs"] == START_MS + 4
    assert (found["behind"]["lagMs"], found["atEnd"]["lagMs"], found["beyondEnd"]["lagMs"]) == (
        3, 0, 0,
    )  # fmt: skip
    assert found["atEnd"]["lagBytes"] == found["beyondEnd"]["lagBytes"] == 0
    of_no_log = {name for name, value in found["noLog"].items() if value is not None}
    assert of_no_log == {
        "group", "topic", "partition", "state", "committedOffset", "commitTimestampMs",
    }  # fmt: skip


def random_log(log_dir: Path, seed: int) -> LogBuilder:
    """Segments, codecs, batches of several records, markers, holes as compaction leaves them."""
    rng = random.Random(seed)
    log = LogBuilder(log_dir, "orders-0").segment(rng.choice((0, 7)))
    for _ in range(60):
        if rng.random() < 0.1:
            log.segment()
        if rng.random() < 0.2:
            log.next_offset += rng.randrange(1, 4)
        specs = [("k", "v" * rng.randrange(200)) for _ in range(rng.randrange(1, 6))]
        codec = rng.choice((CompressionType.NONE, CompressionType.GZIP, CompressionType.ZSTD))
        log.batch(*specs, codec=codec)
        if rng.random() < 0.1:
            log.batch(("k", "v"), producer_id=3, is_transactional=True)
            log.marker(ControlRecordType.COMMIT, 3)
    log.write()
    return log


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 8))]
)
def test_bytes_and_times_are_those_of_what_lies_behind_each_offset(
    tmp_path: Path, seed: int
) -> None:
    path = random_log(tmp_path, seed).path
    batches = read_batches(path, columns=["lastOffset", "sizeInBytes"]).to_pylist()
    records = read_records(
        path, columns=["offset", "timestampMs"], include_control=True
    ).read_all().to_pylist()  # fmt: skip
    (log,) = open_log_dir(path).partitions
    end = log_end(log)
    assert end is not None
    assert end.timestamp_ms == records[-1]["timestampMs"]
    compared = 0
    for offset in range(log.log_start_offset, log.log_end_offset):
        behind = log_behind(log, offset, end)
        size = sum(b["sizeInBytes"] for b in batches if b["lastOffset"] >= offset)
        first = next(r["timestampMs"] for r in records if r["offset"] >= offset)
        assert (behind.size_in_bytes, behind.first_timestamp_ms) == (size, first), offset
        compared += 1
    assert compared > 150


def test_little_of_a_log_is_read(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0")
    for number in range(400):
        if number % 100 == 0:
            log.segment()
        log.batch(*[("k", bytes(10_000)) for _ in range(5)])
    path = log.write()
    (partition,) = open_log_dir(path).partitions
    assert partition.size_in_bytes > 18 * MIB
    before = bytes_read()
    end = log_end(partition)
    assert end is not None
    behind = log_behind(partition, 203, end)
    read = bytes_read() - before
    assert behind.size_in_bytes > 17 * MIB
    assert read < MIB // 2


def test_what_cannot_be_read_is_said_and_the_offsets_are_there(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0")
    for _ in range(10):
        log.batch(("k", "v"))
    path = log.write()
    (file,) = path.glob("*.log")
    data = bytearray(file.read_bytes())
    first_batch = len(data) // 10
    data[3 * first_batch + 16] = 99  # the magic of the fourth batch
    file.write_bytes(data)
    (path / "00000000000000000000.index").unlink()
    commit(tmp_path, ("g", "orders", 0, 2))
    (row,) = lag(tmp_path).values()
    assert row["committedOffset"] == 2
    assert row["lagBytes"] is None
    assert f"{file}" in row["error"]


@pytest.mark.parametrize("leader", [1, 2])
def test_the_leaders_replica_counts_where_it_is_here(tmp_path: Path, leader: int) -> None:
    """Of node 1, whose log goes less far than the other's."""
    for node, count in ((1, 5), (2, 9)):
        directory = tmp_path / str(node)
        log = LogBuilder(directory, "orders-0")
        for _ in range(count):
            log.batch(("k", "v"))
        log.write()
        meta = (directory / "meta.properties").read_text()
        lines = [line for line in meta.splitlines() if not line.startswith("node.id")]
        (directory / "meta.properties").write_text("\n".join([*lines, f"node.id={node}", ""]))
    commit(tmp_path / "1", ("g", "orders", 0, 5))
    records = [topic("orders"), partition([1, 2]), *([] if leader == 1 else [new_leader(leader)])]
    MetadataBuilder(tmp_path / "1").batch(*records).write()
    (row,) = lag(tmp_path / "1", tmp_path / "2").values()
    assert (row["logEndOffset"], row["isLeaderHere"]) == (5 if leader == 1 else 9, True)
    (alone,) = lag(tmp_path / "1").values()
    assert (alone["logEndOffset"], alone["isLeaderHere"]) == (5, leader == 1)
