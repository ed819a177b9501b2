"""Views transactions and producers against what a broker wrote beside the log, and against a log
whose story is known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog import read_view
from kafkalog.errors import CorruptRecordError
from kafkalog.format.control_record import ControlRecordType
from tests.support.log_builder import START_MS, LogBuilder

BROKER = SAMPLES / "broker"
ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


def test_aborted_transactions_equal_a_brokers_transaction_index() -> None:
    indexed = read_view("transaction_index", BROKER).to_pylist()
    ours = read_view("transactions", BROKER).to_pylist()
    aborted = Counter(
        (r["topic"], r["partition"], r["producerId"], r["firstOffset"], r["markerOffset"])
        for r in ours
        if r["state"] == "aborted" and r["firstOffset"] is not None
    )
    expected = Counter(
        (r["topic"], r["partition"], r["producerId"], r["firstOffset"], r["lastOffset"])
        for r in indexed
        if r["state"] == "live"
    )
    assert aborted == expected
    assert len(expected) > 2
    assert {r["state"] for r in ours} >= {"aborted", "committed"}


def test_producers_equal_a_brokers_last_snapshot() -> None:
    """The newest snapshot of a partition that was closed in order is of the log's end."""
    snapshots = read_view("producer_snapshot", BROKER).to_pylist()
    ours = {
        (r["topic"], r["partition"], r["producerId"]): r
        for r in read_view("producers", BROKER).to_pylist()
    }
    ends = {
        (r["topic"], r["partition"]): r["logEndOffset"]
        for r in read_view("partitions", BROKER).to_pylist()
    }
    compared = 0
    for entry in snapshots:
        place = entry["topic"], entry["partition"]
        if entry["snapshotOffset"] != ends[place] or entry["state"] != "live":
            continue
        row = ours[*place, entry["producerId"]]
        assert row["producerEpoch"] == entry["producerEpoch"]
        assert (row["lastSequence"] if row["lastSequence"] is not None else -1) == entry[
            "lastSequence"
        ]
        first = row["currentTxnFirstOffset"]
        assert (-1 if first is None else first) == entry["currentTxnFirstOffset"]
        if entry["lastOffset"] >= 0:
            assert row["lastOffset"] == entry["lastOffset"]
        compared += 1
    assert compared > 3


def build(log_dir: Path) -> LogBuilder:
    """Producer 1 commits over two segments and then aborts, 2 stays open, 3 ends nothing; what has
    no producer is one row."""
    log = LogBuilder(log_dir, index_interval_bytes=100)
    log.batch(("a", "1"), ("b", "2"), producer_id=1, is_transactional=True)
    log.batch(("x", "plain"))
    log.segment().batch(("c", "3"), producer_id=1, is_transactional=True)
    log.marker(COMMIT, 1, coordinator_epoch=4)
    log.batch(("d", "4"), producer_id=2, is_transactional=True)
    log.batch(("e", "5"), producer_id=1, is_transactional=True)
    log.marker(ABORT, 1, timestamp=START_MS + 100)
    log.marker(COMMIT, 3)
    return log


def test_story_of_each_transaction(log_dir: Path) -> None:
    log = build(log_dir)
    log.write()
    rows = read_view("transactions", log.path).to_pylist()
    assert [(r["producerId"], r["state"], r["firstOffset"], r["lastOffset"]) for r in rows] == [
        (1, "committed", 0, 3),
        (1, "aborted", 6, 6),
        (3, "committed", None, None),
        (2, "open", 5, 5),
    ]
    first, aborted, empty, still_open = rows
    assert (first["recordsCount"], first["batchesCount"], first["markerOffset"]) == (3, 2, 4)
    assert (first["coordinatorEpoch"], first["durationMs"]) == (4, 4 - 1)
    sizes = [h.size_in_bytes for _, h in log.segments[0].batches[:1] + log.segments[1].batches[:1]]
    assert first["sizeInBytes"] == sum(sizes)
    assert (aborted["durationMs"], aborted["markerTimestampMs"]) == (94, START_MS + 100)
    assert (empty["recordsCount"], empty["durationMs"]) == (0, None)
    assert (still_open["markerOffset"], still_open["durationMs"]) == (None, None)


def test_what_each_producer_wrote(log_dir: Path) -> None:
    log = build(log_dir)
    log.write()
    rows = {r["producerId"]: r for r in read_view("producers", log.path).to_pylist()}
    assert set(rows) == {None, 1, 2, 3}
    assert (rows[1]["recordsCount"], rows[1]["committedCount"], rows[1]["abortedCount"]) == (
        4,
        1,
        1,
    )
    assert (rows[1]["firstOffset"], rows[1]["lastOffset"], rows[1]["lastSequence"]) == (0, 6, 3)
    assert (rows[2]["currentTxnFirstOffset"], rows[1]["currentTxnFirstOffset"]) == (5, None)
    assert (rows[3]["recordsCount"], rows[3]["committedCount"]) == (0, 1)
    assert (rows[None]["recordsCount"], rows[None]["lastSequence"]) == (1, None)
    total = sum(row["sizeInBytes"] for row in rows.values())
    markers = [h for s in log.segments for _, h in s.batches if h.attributes & 0x20]
    everything = sum(h.size_in_bytes for s in log.segments for _, h in s.batches)
    assert total == everything - sum(h.size_in_bytes for h in markers)


def test_the_last_sequence_of_what_has_no_producer_is_told(log_dir: Path) -> None:
    """Coordinators write sequences without a producer."""
    log = LogBuilder(log_dir).batch(("a", "1"), ("b", "1"), base_sequence=0)
    log.segment().batch(("c", "1"), ("d", "1"), ("e", "1"), base_sequence=0, timestamp=START_MS)
    log.write()
    (row,) = read_view("producers", log.path).to_pylist()
    assert (row["producerId"], row["producerEpoch"], row["lastSequence"]) == (None, None, 2)
    assert (row["recordsCount"], row["lastTimestampMs"]) == (5, START_MS)


def test_damage_in_each_mode(log_dir: Path) -> None:
    log = build(log_dir)
    file = log.write() / f"{0:020}.log"
    content = bytearray(file.read_bytes())
    content[log.segments[0].batches[1][0] + 8] = 0xFF  # a negative length
    file.write_bytes(content)
    with pytest.raises(CorruptRecordError, match="batch length"):
        read_view("transactions", log.path)
    dropped = read_view("transactions", log.path, mode="DROPMALFORMED")
    assert dropped["state"].to_pylist() == ["committed", "aborted", "committed", "open"]
    rows = read_view("producers", log.path, mode="PERMISSIVE").to_pylist()
    assert [row["producerId"] for row in rows if row["error"] is None] == [1, 2, 3]
    assert len([row for row in rows if row["error"] is not None]) == 1
