"""Batches kept for idempotent producers, and their state afterwards (spec items 60-62, 65, 67)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kafkalog.log.header_facts import ActiveProducer
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.producer_state import active_producers
from tests.conformance.rounds import (
    DAY_MS,
    NOW_MS,
    bases,
    batches,
    compacted,
    continued,
    last_offsets,
    offsets,
)
from tests.support.log_builder import START_MS, LogBuilder

NEVER_MS = 2**62


def _producers(path: Path, *, from_log_only: bool = False) -> dict[int, ActiveProducer]:
    if from_log_only:
        for file in path.glob("*.snapshot"):
            file.unlink()
    (partition,) = open_log_dir(path).partitions
    known = active_producers(partition, now_ms=NOW_MS, expiration_ms=NEVER_MS)
    # a rebuilt batch tells the time of what stays, as with Kafka
    return {pid: replace(producer, last_timestamp_ms=0) for pid, producer in known.items()}


def _three_producers(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir).segment()
    log.batch(("1", ""), ("2", ""), ("3", ""), producer_id=1)  # 0-2
    log.batch(("3", ""), ("1", ""), ("4", ""), producer_id=2)  # 3-5
    log.batch(("1", ""), ("4", ""), producer_id=3)  # 6-7
    return log


def test_last_offsets_and_sequences_of_each_producer_survive(log_dir: Path) -> None:
    log = _three_producers(log_dir)
    path = log.segment().write()
    full = _producers(path, from_log_only=True)
    compacted(log_dir)
    assert offsets(path) == [1, 3, 6, 7]
    assert last_offsets(path) == [2, 5, 7]
    assert [header.last_sequence for header, _ in batches(path)] == [2, 2, 1]
    assert _producers(path, from_log_only=True) == full


def test_a_producers_last_batch_stays_empty_when_all_its_records_went(log_dir: Path) -> None:
    path = _three_producers(log_dir).segment().write()
    compacted(log_dir)
    path = continued(path).batch(("2", ""), producer_id=4).segment().write()
    full = _producers(path, from_log_only=True)
    compacted(log_dir, now_ms=NOW_MS + 1)
    assert offsets(path) == [3, 6, 7, 8]
    header, part = batches(path)[0]
    assert (header.producer_id, part) == (1, [])
    assert (header.last_offset, header.last_sequence) == (2, 2)
    assert _producers(path, from_log_only=True) == full


def test_only_the_last_batch_of_a_producer_is_kept_for_it(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "1"), ("a", "2"), producer_id=1)  # 0-1: all superseded, the producer's last
    log.batch(("b", "3"), producer_id=2)  # 2: superseded, and not its producer's last
    log.batch(("a", "4"), producer_id=3).batch(("b", "5"), producer_id=2)
    path = log.segment().write()
    compacted(log_dir)
    assert last_offsets(path) == [1, 3, 4]
    assert [len(part) for _, part in batches(path)] == [0, 1, 1]


def test_a_producer_that_expired_keeps_nothing(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=1).batch(("a", "2"))
    path = log.segment().write()
    compacted(log_dir, f"producer.id.expiration.ms={NOW_MS - START_MS}")
    assert last_offsets(path) == [1]


def test_a_producer_that_has_not_expired_yet_keeps_its_batch(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=1).batch(("a", "2"))
    path = log.segment().write()
    compacted(log_dir, f"producer.id.expiration.ms={NOW_MS - START_MS + 1}")
    assert last_offsets(path) == [0, 1]


def test_a_batch_in_the_active_segment_frees_the_older_one(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=1).batch(("a", "2"))
    path = log.segment().batch(("c", "3"), producer_id=1).write()
    compacted(log_dir)
    assert last_offsets(path) == [1, 2]


def test_snapshots_stay_at_segment_bases_only(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for number in range(5):
        log.segment().batch(("k", str(number)), producer_id=1)
    path = log.segment().write()
    before = _producers(path)
    compacted(log_dir)
    assert bases(path) == [0, 5]
    assert [int(file.stem) for file in path.glob("*.snapshot")] == [5]
    assert _producers(path) == before


def test_producer_state_after_rounds_is_that_of_the_full_log(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    for number in range(40):
        log.batch((f"k{number % 5}", "v"), (f"j{number % 3}", "v"), producer_id=number % 7)
        if number % 9 == 8:
            log.segment()
    path = log.segment().write()
    full = _producers(path, from_log_only=True)
    compacted(log_dir)
    assert _producers(path, from_log_only=True) == full
    assert len(full) == 7
    continued(path).batch(("z", "")).segment().write()
    compacted(log_dir, now_ms=NOW_MS + DAY_MS // 2)
    assert _producers(path, from_log_only=True) == full
