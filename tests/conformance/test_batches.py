"""How a batch is written when a part of it goes (spec items 90-100, 101, 102, and §3.7-3.9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kafkalog.cleaning.compressed_bodies import LARGE_BODY_BYTES
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader, pack_batch, parse_header
from tests.conformance.rounds import (
    DAY_MS,
    NOW_MS,
    batches,
    compacted,
    continued,
    last_offsets,
    offsets,
    records,
)
from tests.support.log_builder import START_MS, LogBuilder

CODECS = list(CompressionType)
# What differs between a batch and the same batch rebuilt, whatever was removed.
REWRITTEN = {"batch_length", "crc", "records_count", "base_timestamp", "max_timestamp"}


def _source(log: LogBuilder, number: int, segment: int = 0) -> bytes:
    position, header = log.segments[segment].batches[number]
    return bytes(log.segments[segment].log[position : position + header.size_in_bytes])


def _assert_same_but(found: RecordBatchHeader, source: bytes, *differ: str) -> None:
    expected = parse_header(source)
    same = {name: getattr(expected, name) for name in differ}
    assert replace(found, **same) == expected


def test_batches_of_which_nothing_goes_are_copied_byte_for_byte(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    for number, codec in enumerate(CODECS):
        log.batch(
            (f"a{number}", "1" * 40), (f"b{number}", "2" * 40), codec=codec, producer_id=number
        )
    log.batch(("a0", "3"), ("c", "4"), ("c", "5"))
    path = log.segment().batch(("z", "")).write()
    stats = compacted(log_dir)
    data = (path / f"{0:020}.log").read_bytes()
    assert all(_source(log, number) in data for number in range(1, 5))
    assert _source(log, 0) not in data
    assert _source(log, 5) not in data
    assert (stats.batches_read, stats.batches_retained, stats.batches_copied) == (6, 6, 4)
    assert (stats.records_read, stats.records_retained) == (13, 11)
    assert (stats.bytes_before, stats.bytes_after) == (len(log.segments[0].log), len(data))


def test_a_rebuilt_batch_keeps_base_and_last_offset_of_a_gapped_source(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    gapped = [Record(offset, START_MS + offset, b"k%d" % offset, b"v") for offset in (5, 8, 10)]
    log.append(pack_batch(gapped, base_offset=0, last_offset=12))
    log.batch(("k5", "n"), ("k10", "n"))
    path = log.segment().batch(("z", "")).write()
    compacted(log_dir)
    header, part = batches(path)[0]
    assert (header.base_offset, header.last_offset, header.records_count) == (0, 12, 1)
    assert [(r.offset, r.timestamp) for r in part] == [(8, START_MS + 8)]
    assert (header.base_timestamp, header.max_timestamp) == (START_MS + 8, START_MS + 8)


def test_producer_fields_sequences_and_leader_epoch_are_kept(log_dir: Path) -> None:
    log = LogBuilder(log_dir).epoch(67).segment()
    log.batch(("a", "1"), ("b", "2"), ("c", "3"), producer_id=4, producer_epoch=3, base_sequence=90)
    log.batch(("a", "4"), ("c", "5"), producer_id=4, producer_epoch=3)
    path = log.segment().batch(("z", "")).write()
    compacted(log_dir)
    header, part = batches(path)[0]
    _assert_same_but(header, _source(log, 0), *REWRITTEN)
    assert (header.partition_leader_epoch, header.producer_id, header.producer_epoch) == (67, 4, 3)
    assert (header.base_sequence, header.last_sequence) == (90, 92)
    assert [r.offset for r in part] == [1]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_kept_as_type_and_time(log_dir: Path, codec: int) -> None:
    log = LogBuilder(log_dir).segment()
    append = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "max_timestamp": START_MS + 500}
    log.batch(("a", "1"), ("b", "2"), ("c", "3"), codec=codec, **append)
    path = log.batch(("a", "4"), ("c", "")).segment().batch(("z", "")).write()
    compacted(log_dir)
    header, part = batches(path)[0]
    assert header.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == START_MS + 500
    assert [(r.offset, r.timestamp) for r in part] == [(1, START_MS + 500)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_compressed_batch_is_rebuilt_like_a_small_one(log_dir: Path, codec: int) -> None:
    noise = Random(7).randbytes(LARGE_BODY_BYTES + 1000)
    kept = Record(1, START_MS + 1, b"b", noise)
    others = [Record(0, START_MS, b"a", b"1"), Record(2, START_MS + 2, b"c", b"3")]
    small = [Record(3, START_MS, b"a", b"1"), Record(4, START_MS, b"d", b"x")]
    small.append(Record(5, START_MS, b"c", b"3"))
    log = LogBuilder(log_dir).segment()
    log.append(pack_batch([others[0], kept, others[1]], codec=codec, producer_id=4))
    log.append(pack_batch(small, codec=codec))
    log.batch(("a", "4"), ("c", "5"))
    path = log.segment().batch(("z", "")).write()
    compacted(log_dir)
    large, other = batches(path)[:2]
    _assert_same_but(large[0], _source(log, 0), *REWRITTEN)
    assert large[0].size_in_bytes > LARGE_BODY_BYTES
    assert [(r.offset, r.timestamp, r.key, r.value) for r in large[1]] == [
        (1, START_MS + 1, b"b", noise)
    ]
    assert (other[0].last_offset, [(r.offset, r.key) for r in other[1]]) == (5, [(4, b"d")])


def test_the_greatest_timestamp_is_that_of_what_stays(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    times = (30, 20, 90, 10)
    log.batch(*[Record(n, START_MS + t, b"k%d" % n, b"v") for n, t in enumerate(times)])
    path = (
        log.batch(("k0", "n"), ("k2", "n"), timestamp=START_MS).segment().batch(("z", "")).write()
    )
    compacted(log_dir)
    header, part = batches(path)[0]
    assert [(r.offset, r.timestamp) for r in part] == [(1, START_MS + 20), (3, START_MS + 10)]
    assert (header.base_timestamp, header.max_timestamp) == (START_MS + 20, START_MS + 20)


@pytest.mark.parametrize("codec", CODECS)
def test_an_emptied_batch_of_a_producer_is_61_bytes_with_its_offsets_and_time(
    log_dir: Path, codec: int
) -> None:
    log = LogBuilder(log_dir).epoch(5).segment().batch(("x", "0"), ("y", "0"), ("w", "0"))
    log.batch(("a", "1"), ("b", "2"), codec=codec, producer_id=7, base_sequence=10)
    path = log.batch(("a", "3"), ("b", "4")).segment().batch(("z", "")).write()
    compacted(log_dir)
    header, part = batches(path)[1]
    assert (header.size_in_bytes, header.records_count, part) == (61, 0, [])
    assert (header.base_offset, header.last_offset) == (3, 4)
    assert (header.base_sequence, header.last_sequence) == (10, 11)
    assert (header.base_timestamp, header.max_timestamp) == (-1, START_MS + 4)
    assert (header.codec, header.attributes) == (0, 0)
    _assert_same_but(
        header,
        _source(log, 1),
        "batch_length",
        "crc",
        "attributes",
        "base_timestamp",
        "records_count",
    )


def test_an_empty_batch_stays_for_its_producer_and_goes_without_one(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.append(
        pack_batch(
            [],
            base_offset=0,
            last_offset=3,
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            max_timestamp=START_MS,
        )
    )
    log.append(pack_batch([], base_offset=4, last_offset=5, max_timestamp=START_MS))
    path = log.batch(("a", "1")).segment().batch(("z", "")).write()
    stats = compacted(log_dir)
    assert last_offsets(path) == [3, 6, 7]
    header, _ = batches(path)[0]
    assert (header.records_count, header.size_in_bytes, header.base_sequence) == (0, 61, 0)
    assert stats.records_read == 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_tombstone_gets_its_horizon_as_base_timestamp(log_dir: Path, codec: int) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(
        Record(0, 5, b"a", b"1"), Record(1, 10, b"b", None), Record(2, 15, b"c", b""), codec=codec
    )
    path = log.segment().batch(("z", "")).write()
    stats = compacted(log_dir)
    header, part = batches(path)[0]
    assert header.delete_horizon_ms == header.base_timestamp == NOW_MS + DAY_MS
    assert [r.timestamp for r in part] == [5, 10, 15]
    assert [r.value for r in part] == [b"1", None, b""]
    assert (header.max_timestamp, header.codec) == (15, codec)
    assert (stats.records_retained, stats.batches_copied) == (3, 0)


def test_a_horizon_is_stamped_once_and_outlives_the_tombstone(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", None), ("b", "1"), ("c", "2"))
    path = log.segment().batch(("y", "")).write()
    compacted(log_dir)
    stamped = (path / f"{0:020}.log").read_bytes()
    continued(path).segment().batch(("x", "")).write()
    compacted(log_dir, "delete.retention.ms=0", now_ms=NOW_MS + 1000)
    assert (path / f"{0:020}.log").read_bytes().startswith(stamped)
    # the tombstone is superseded, and so is c: a rebuild that needs no horizon keeps the one it had
    continued(path).batch(("a", "3"), ("c", "4")).segment().batch(("w", "")).write()
    compacted(log_dir, now_ms=NOW_MS + 2000)
    header, part = batches(path)[0]
    assert [r.offset for r in part] == [1]
    assert header.delete_horizon_ms == NOW_MS + DAY_MS
    assert part[0].timestamp == START_MS + 1


def test_a_tombstone_before_the_dirty_range_is_stamped_as_well(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", None)).segment().batch(("b", "1"))
    path = log.segment().batch(("z", "")).cleaner_offset(1).write()
    compacted(log_dir)
    header, _ = batches(path)[0]
    assert header.delete_horizon_ms == NOW_MS + DAY_MS


def test_a_delete_retention_of_ages_sets_no_horizon(log_dir: Path) -> None:
    path = LogBuilder(log_dir).segment().batch(("a", None)).segment().batch(("z", "")).write()
    compacted(log_dir, f"delete.retention.ms={2**63 - 1}")
    header, part = batches(path)[0]
    assert header.delete_horizon_ms is None  # the sum passes 64 bits: Kafka then writes none
    assert part[0].timestamp == START_MS


def test_headers_of_records_are_kept_as_they_are(log_dir: Path) -> None:
    kept = ((b"h", b"1"), (b"h", None), (b"", b""), ("\u00e9".encode(), b"\xff"))
    log = LogBuilder(log_dir).segment().batch(("a", "1", ((b"x", b"y"),)), ("b", "2", kept))
    path = log.batch(("a", "3")).segment().batch(("z", "")).write()
    compacted(log_dir)
    assert records(path)[0].headers == kept


def test_batches_larger_than_any_buffer_are_cleaned(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "old" * 1_500_000), ("b", "keep" * 1_100_000))  # rebuilt, 4.4 MB stay
    log.batch(("c", "copy" * 1_000_000)).batch(("a", "new"))
    path = log.segment().batch(("z", "")).write()
    compacted(log_dir, "max.message.bytes=100")
    assert offsets(path) == [1, 2, 3, 4]
    assert [len(r.value or b"") for r in records(path)] == [4_400_000, 4_000_000, 3, 0]
