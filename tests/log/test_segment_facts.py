"""What headers tell of a segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.header_facts import SegmentFacts
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_facts import scan_partition_facts, scan_segment_facts
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries


def _facts(log: LogBuilder) -> list[SegmentFacts]:
    log.write()
    return [
        scan_segment_facts(segment) for segment in open_log_dir(log.path).partitions[0].segments
    ]


def test_a_plain_segment_is_counted(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment(10)
    log.batch(("a", "1"), ("b", None)).batch(("c", "3"), codec=CompressionType.ZSTD)
    (facts,) = _facts(log)
    assert (facts.batches_count, facts.records_count) == (2, 3)
    assert (facts.first_offset, facts.last_offset, facts.next_offset) == (10, 12, 13)
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (START_MS + 10, START_MS + 12)
    assert facts.first_batch_max_timestamp_ms == START_MS + 11
    assert (facts.has_transactional, facts.has_control, facts.has_producer_ids) == (False,) * 3
    assert (facts.magics, facts.codecs) == ((2,), (0, 4))
    assert facts.valid_bytes == len(log.segments[0].log)
    assert (facts.trailing_bytes, facts.corrupt, facts.unsupported_magic) == (0, None, False)
    assert facts.largest_batch_bytes == max(h.size_in_bytes for _, h in log.segments[0].batches)


def test_an_empty_segment_has_no_offsets(log_dir: Path) -> None:
    facts = _facts(LogBuilder(log_dir).batch(("k", "v")).segment())[1]  # item 23
    assert (facts.first_offset, facts.last_offset, facts.next_offset) == (None, None, 1)
    assert facts.first_batch_max_timestamp_ms is None
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms, facts.magics) == (-1, -1, ())


def test_transactions_are_noticed(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7, is_transactional=True)
    log.segment().marker(ControlRecordType.COMMIT, 7).segment().batch(("k", "v"), producer_id=8)
    flags = [(f.has_transactional, f.has_control, f.has_producer_ids) for f in _facts(log)]
    assert flags == [(True, False, True), (True, True, True), (False, False, True)]


def test_log_append_time_is_the_only_timestamp_of_a_batch(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.batch(("k", "v"), timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=START_MS + 9)
    (facts,) = _facts(log)
    assert facts.min_timestamp_ms == facts.max_timestamp_ms == START_MS + 9


def test_no_timestamps_are_minus_one(log_dir: Path) -> None:
    (facts,) = _facts(LogBuilder(log_dir).batch(("k", "v"), timestamp=-1))
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (-1, -1)


@pytest.mark.parametrize("torn_bytes", [1, 30, 61])
def test_a_torn_tail_is_not_corruption(log_dir: Path, torn_bytes: int) -> None:
    (facts,) = _facts(LogBuilder(log_dir).batch(("k", "v")).torn(torn_bytes))
    assert (facts.trailing_bytes, facts.corrupt) == (torn_bytes, None)


def test_a_broken_batch_is_a_fact_with_its_position(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"))
    position = len(log.segments[0].log)
    (facts,) = _facts(log.raw(bytes(8) + b"\x00\x00\x00\x05" + b"\x01" * 80))
    assert (facts.corrupt_position, facts.batches_count) == (position, 1)
    assert facts.corrupt is not None
    assert "length 5" in facts.corrupt


def test_an_unknown_magic_is_named(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"))
    log.segments[0].log[16] = 3
    (facts,) = _facts(log)
    assert facts.unsupported_magic
    assert facts.corrupt is not None
    assert "magic 3" in facts.corrupt


@pytest.mark.parametrize("second", [0, 1, 2])
def test_batches_out_of_order_are_corruption(log_dir: Path, second: int) -> None:
    log = LogBuilder(log_dir).batch(("a", "1"), ("b", "2"), ("c", "3"))
    position = len(log.segments[0].log)
    (facts,) = _facts(log.raw(pack_batch([Record(second, START_MS, b"k", b"v")])))
    assert facts.corrupt == f"batch of offsets {second} to {second} is out of order"
    assert facts.corrupt_position == position


def test_a_batch_below_the_base_offset_is_corruption(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment(5).raw(pack_batch([Record(4, START_MS, b"k", b"v")]))
    (facts,) = _facts(log)
    assert (facts.corrupt_position, facts.corrupt) == (
        0,
        "batch of offsets 4 to 4 is out of order",
    )


def test_facts_of_a_partition_cover_each_segment_and_the_producers(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7)
    log.segment().batch(("k", "w"), producer_id=8).segment()
    log.write()
    (partition,) = open_log_dir(log_dir)
    facts = scan_partition_facts(partition, now_ms=START_MS, expiration_ms=1000)
    assert [segment.base_offset for segment in facts.segments] == [0, 1, 2]
    assert [(p.producer_id, p.last_data_offset) for p in facts.active_producers] == [(7, 0), (8, 1)]
    assert facts.problems == ()


def test_a_broken_batch_past_the_snapshot_leaves_the_producers_unknown(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7).segment().batch(("k", "v"))
    log.raw(bytes(100) + b"\x01").write(clean_shutdown=False)
    (partition,) = open_log_dir(log_dir)
    facts = scan_partition_facts(partition, now_ms=START_MS, expiration_ms=1000)
    assert "cannot be rebuilt" in facts.problems[0]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_transaction_from_before_the_log_start_is_open_from_a_wrappers_first_message(
    log_dir: Path, magic: int
) -> None:
    """Kafka takes the base of the batch at the log start, which headers of a wrapper lack."""
    log = LogBuilder(log_dir).batch(("k", "v"), producer_id=7, is_transactional=True).segment(1)
    messages = [Record(offset, START_MS if magic else -1, b"k", b"v") for offset in (1, 2, 3)]
    log.raw(pack_legacy_entries(messages, magic, codec=CompressionType.GZIP)).segment(4)
    log.log_start_offset(1).write()
    (partition,) = open_log_dir(log.path).partitions
    facts = scan_partition_facts(partition, now_ms=START_MS, expiration_ms=10**9)
    assert facts.first_unstable_offset(4, partition.log_start_offset) == 1


def test_a_wrapper_at_the_log_start_is_not_opened_without_transactions(log_dir: Path) -> None:
    entry = bytearray(pack_legacy_entries([Record(0, -1, b"k", b"v")], 0, codec=1))
    entry[-9:] = bytes(9)  # no gzip
    log = LogBuilder(log_dir).raw(bytes(entry)).segment(1)
    log.write()
    (partition,) = open_log_dir(log.path).partitions
    facts = scan_partition_facts(partition, now_ms=START_MS, expiration_ms=10**9)
    assert (facts.batches_at, facts.problems) == ((), ())
