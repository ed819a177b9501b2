"""Cleaning of magic 0 and 1: what stays becomes magic 2 (KIP-724)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkalog.format.compression import compress
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader
from kafkalog.format.time_index import parse_time_index
from kafkalog.planning.statuses import REFUSED
from tests.cleaning.logs import read_segment
from tests.conformance.rounds import DAY_MS, NOW_MS, compact, compacted
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]


def r(offset: int, key: bytes | None, value: bytes | None = b"v", timestamp: int = -1) -> Record:
    return Record(offset, timestamp, key, value)


def legacy_log(log_dir: Path, *entries: bytes, end: int, modified_ms: int = START_MS) -> LogBuilder:
    """A closed segment of these bytes, then the active one from `end` on."""
    log = LogBuilder(log_dir).segment(0, modified_ms=modified_ms)
    for entry in entries:
        log.raw(entry)
    return log.segment(end).batch(("active", "x"))


def cleaned(path: Path, base_offset: int = 0) -> list[tuple[RecordBatchHeader, list[Record]]]:
    return read_segment(path / f"{base_offset:020}.log")


def test_mixed_magics_in_one_segment_all_become_magic_2(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.raw(pack_legacy_entries([r(0, b"a"), r(1, b"b"), r(2, b"a")], 0)).segments[0]
    log.raw(pack_legacy_entries([r(3, b"c", timestamp=START_MS), r(4, b"a", timestamp=7)], 1))
    log.next_offset = 5
    log.batch(("d", "1"), partition_leader_epoch=3)
    log.raw(pack_legacy_entries([r(6, b"e", timestamp=9)], 1)).segment(7).batch(("active", "x"))
    path = log.write()
    stats = compacted(log_dir)
    found = cleaned(path)
    assert [header.magic for header, _ in found] == [2] * 5
    assert [[record.offset for record in records] for _, records in found] == [
        [1],
        [3],
        [4],
        [5],
        [6],
    ]
    assert [header.max_timestamp for header, _ in found[:3]] == [-1, START_MS, 7]
    assert [header.partition_leader_epoch for header, _ in found] == [-1, -1, -1, 3, -1]
    assert {(h.producer_id, h.producer_epoch, h.base_sequence) for h, _ in found} == {(-1, -1, -1)}
    assert (stats.records_read, stats.records_retained, stats.superseded) == (7, 5, 2)
    assert stats.batches_copied == 1, "only the magic 2 batch stays as it is"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_becomes_one_batch_of_what_stays(
    log_dir: Path, codec: CompressionType, magic: int
) -> None:
    times = [-1] * 4 if magic == 0 else [START_MS + 9, START_MS + 3, START_MS + 5, START_MS + 1]
    records = [r(o, k, timestamp=t) for o, k, t in zip((0, 2, 3, 7), b"abca", times, strict=True)]
    records = [Record(x.offset, x.timestamp, b"%d" % (x.key or 0), b"v") for x in records]  # type: ignore[str-bytes-safe]
    path = legacy_log(log_dir, pack_legacy_entries(records, magic, codec=codec), end=8).write()
    compacted(log_dir)
    ((header, kept),) = cleaned(path)
    assert kept == records[1:]
    assert (header.base_offset, header.last_offset, header.codec) == (2, 7, codec)
    assert header.max_timestamp == max(times[1:])
    assert header.base_timestamp == times[1]
    assert header.timestamp_type == TimestampType.CREATE_TIME


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_log_append_time_is_kept(log_dir: Path, codec: CompressionType) -> None:
    entry = pack_legacy_entries(
        [r(0, b"a", timestamp=START_MS)],
        1,
        codec=codec,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    path = legacy_log(log_dir, entry, end=1).write()
    compacted(log_dir)
    ((header, kept),) = cleaned(path)
    assert header.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert (header.max_timestamp, kept[0].timestamp) == (START_MS, START_MS)


def test_a_wrapper_whose_inner_magic_differs_is_cleaned(log_dir: Path) -> None:
    """KAFKA-4298: old cleaners left magic 0 messages in wrappers of magic 1, and the reverse."""
    inner = pack_legacy_message(r(0, b"a"), 0) + pack_legacy_message(r(1, b"b", timestamp=5), 1)
    wrapper = r(11, None, compress(CompressionType.GZIP, inner), timestamp=START_MS)
    entry = pack_legacy_message(wrapper, 1, codec=CompressionType.GZIP)
    path = legacy_log(log_dir, entry, end=12).write()
    compacted(log_dir)
    ((header, kept),) = cleaned(path)
    assert [(x.offset, x.timestamp, x.key) for x in kept] == [(10, -1, b"a"), (11, 5, b"b")]
    assert (header.base_offset, header.base_timestamp, header.max_timestamp) == (10, -1, 5)


def test_the_time_index_has_the_times_of_magic_1_data(log_dir: Path) -> None:
    times = (START_MS + 5, START_MS + 90, START_MS + 7)
    records = [r(o, b"%d" % o, timestamp=t) for o, t in enumerate(times)]
    path = legacy_log(log_dir, pack_legacy_entries(records, 1), end=3).write()
    compacted(log_dir, "index.interval.bytes=0")
    index = parse_time_index((path / f"{0:020}.timeindex").read_bytes(), 0)
    assert list(zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True)) == [
        (START_MS + 90, 1)
    ]


def _two_segments(log_dir: Path, ages: Sequence[int], magic: int) -> Path:
    """A clean segment and a dirty one with a tombstone; `ages` before now are their times."""
    log = LogBuilder(log_dir).segment(0, modified_ms=NOW_MS - ages[0])
    log.raw(pack_legacy_entries([r(0, b"a")], magic)).segment(1, modified_ms=NOW_MS - ages[1])
    log.raw(pack_legacy_entries([r(1, b"b", None), r(2, b"c")], magic)).segment(3)
    return log.batch(("active", "x")).cleaner_offset(1).write()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("ages", "stays"), [((0, DAY_MS), False), ((0, DAY_MS - 1), True)])
def test_legacy_tombstones_go_by_the_time_of_their_segment(
    log_dir: Path, ages: tuple[int, int], stays: bool, magic: int
) -> None:
    """Kept while the segment is younger than the last clean one less delete.retention.ms."""
    path = _two_segments(log_dir, ages, magic)
    compacted(log_dir)
    offsets = [record.offset for _, records in cleaned(path) for record in records]
    assert offsets == ([0, 1, 2] if stays else [0, 2])


def test_without_a_clean_segment_legacy_tombstones_stay_and_get_a_horizon(log_dir: Path) -> None:
    entry = pack_legacy_entries([r(0, b"a", None), r(1, b"b")], 1, codec=CompressionType.SNAPPY)
    path = legacy_log(log_dir, entry, end=2, modified_ms=1).write()
    compacted(log_dir)
    ((header, kept),) = cleaned(path)
    assert header.delete_horizon_ms == NOW_MS + DAY_MS
    assert kept == [r(0, b"a", None), r(1, b"b")]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_a_last_legacy_batch_of_which_nothing_stays_is_refused(
    log_dir: Path, codec: CompressionType
) -> None:
    """It should be kept empty for its offset, which its format cannot: Kafka gives up for good."""
    first = pack_legacy_entries([r(0, b"a")], 1)
    path = legacy_log(log_dir, first, pack_legacy_entries([r(1, None)], 1, codec=codec), end=2)
    before = {file.name: file.read_bytes() for file in path.write().iterdir()}
    (result,) = compact(log_dir).results
    assert result.status == REFUSED
    assert "magic 1 cannot be kept empty" in result.reason
    assert {file.name: file.read_bytes() for file in path.path.iterdir()} == before
