"""Which records stay (spec items 41-50, 52, 57-59)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.constants import CompressionType
from tests.conformance.rounds import (
    DAY_MS,
    NOW_MS,
    batches,
    cleaner_offset,
    compact,
    compacted,
    continued,
    directory_bytes,
    keys,
    last_offsets,
    offsets,
    records,
)
from tests.support.log_builder import START_MS, LogBuilder

CODECS = list(CompressionType)


def _numbered(log: LogBuilder, keys: str, *, per_batch: int = 1) -> LogBuilder:
    """A batch for every `per_batch` of these one-letter keys, the value telling the offset."""
    for at in range(0, len(keys), per_batch):
        start = log.next_offset
        part = keys[at : at + per_batch]
        log.batch(*[(key, f"v{start + i}") for i, key in enumerate(part)])
    return log


def test_later_records_of_a_key_supersede_and_nothing_else_goes(log_dir: Path) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "abcabd")
    _numbered(log.segment(), "ae")
    _numbered(log.segment(), "z")
    source_bytes = sum(len(segment.log) for segment in log.segments[:2])
    path = log.write()
    stats = compacted(log_dir)
    assert offsets(path) == [2, 4, 5, 6, 7, 8]
    assert [record.value for record in records(path)] == [f"v{n}".encode() for n in offsets(path)]
    assert (stats.records_read, stats.records_retained, stats.superseded) == (8, 5, 3)
    assert (stats.bytes_before, stats.distinct_keys) == (source_bytes, 5)


def test_the_active_segment_supersedes_nothing(log_dir: Path) -> None:
    path = _numbered(_numbered(LogBuilder(log_dir).segment(), "aba").segment(), "aab").write()
    compacted(log_dir)
    assert offsets(path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("first_dirty", "distinct"), [(0, 4), (3, 4), (4, 3), (5, 2), (6, 1)])
def test_only_records_from_first_dirty_on_are_mapped(
    log_dir: Path, first_dirty: int, distinct: int
) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "abcabcd", per_batch=3)
    path = _numbered(log.segment(), "z").cleaner_offset(first_dirty).write()
    stats = compacted(log_dir)
    assert stats.distinct_keys == distinct
    dirty = set("abcabcd"[first_dirty:])
    gone = [n for n, key in enumerate("abcabcd"[:3]) if key in dirty]
    assert offsets(path) == [n for n in range(8) if n not in gone]


def test_offsets_far_apart_in_small_segments_are_mapped(log_dir: Path) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "k")
    _numbered(log.segment(7_206_178), "k")
    path = _numbered(log.segment(), "z").write()
    compacted(log_dir)
    assert offsets(path) == [7_206_178, 7_206_179]


def test_offset_holes_at_segment_ends_do_not_stall_the_checkpoint(log_dir: Path) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "abcabcabc")
    _numbered(log.segment(11), "abc")
    _numbered(log.segment(14), "a")
    path = _numbered(log.segment(29), "z").write()
    compacted(log_dir)
    assert cleaner_offset(path) == 29
    assert offsets(path) == [12, 13, 14, 29]


def test_tombstones_hide_their_keys_and_go_when_their_horizon_is_reached(log_dir: Path) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "abcdef")
    log.batch(*[(key, None) for key in "ace"])
    path = _numbered(log.segment(), "y").write()
    compacted(log_dir)
    assert keys(path) == ["b", "d", "f", "a", "c", "e", "y"]
    _numbered(continued(path).segment(), "z").write()
    compacted(log_dir, now_ms=NOW_MS + DAY_MS)
    assert keys(path) == ["b", "d", "f", "y", "z"]


@pytest.mark.parametrize(("wait_ms", "stays"), [(DAY_MS - 1, True), (DAY_MS, False)])
def test_a_tombstone_goes_exactly_at_its_horizon(log_dir: Path, wait_ms: int, stays: bool) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", None), ("b", "1"))
    path = _numbered(log.segment(), "y").write()
    compacted(log_dir)
    assert keys(path) == ["a", "b", "y"]
    _numbered(continued(path).segment(), "z").write()
    compacted(log_dir, now_ms=NOW_MS + wait_ms)
    assert keys(path) == (["a"] if stays else []) + ["b", "y", "z"]


def test_keyless_records_go_and_are_counted_and_keyed_ones_stay_as_they_are(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch((None, "1")).batch(("a", "2")).batch((None, None), (None, "3")).batch(("", "4"))
    path = _numbered(log.segment(), "z").write()
    kept = [bytes(log.segments[0].log)[p : p + h.size_in_bytes] for p, h in log.segments[0].batches]
    stats = compacted(log_dir)
    assert stats.no_key == 3
    assert (path / f"{0:020}.log").read_bytes() == kept[1] + kept[3]


def test_the_timestamp_of_a_tombstone_does_not_matter(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "1"), timestamp=2**60).batch(("a", None), timestamp=0)
    path = _numbered(log.segment(), "w").write()
    for number, end in enumerate("xyz"):
        compacted(log_dir, now_ms=NOW_MS + number)
        assert keys(path)[0] == "a"
        assert offsets(path)[0] == 1
        _numbered(continued(path).segment(), end).write()


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_keeps_the_newest_value_of_each_key(log_dir: Path, codec: int) -> None:
    log = LogBuilder(log_dir).segment()
    newest: dict[str, tuple[str, int]] = {}
    for number in range(0, 300, 10):
        specs = [(f"key-{n % 100}", f"value {n} " * 5) for n in range(number, number + 10)]
        newest |= {key: (value, number + i) for i, (key, value) in enumerate(specs)}
        log.batch(*specs, codec=codec)
    # only a part of this batch goes
    log.batch(*[(f"key-{n}", "half" * n) for n in range(0, 20, 2)], codec=codec)
    newest |= {f"key-{n}": ("half" * n, 300 + n // 2) for n in range(0, 20, 2)}
    path = log.segment().batch(("z", "v"), codec=codec).write()
    stats = compacted(log_dir)
    found = {
        (r.key or b"").decode(): ((r.value or b"").decode(), r.offset) for r in records(path)[:-1]
    }
    assert found == newest
    assert len(records(path)) == 101
    assert {header.codec for header, part in batches(path) if part} == {codec}
    assert 0 < stats.bytes_after < stats.bytes_before
    log = continued(path)
    log.segment().batch(("key-7", "huge" * 300_000), codec=codec)
    log.segment().batch(("z", "w"), codec=codec).write()
    compacted(log_dir, now_ms=NOW_MS + 1)
    assert {r.key: len(r.value or b"") for r in records(path)}[b"key-7"] == 1_200_000
    assert len(records(path)) == 102  # z is in the first active segment and in the second


def test_a_round_that_keeps_nothing_keeps_its_last_batch_empty(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch((None, "1")).batch((None, "2"), (None, "3"))
    path = _numbered(log.segment(), "z").write()
    compacted(log_dir)
    (header, part), _ = batches(path)
    assert (header.records_count, part, header.size_in_bytes) == (0, [], 61)
    assert (header.base_offset, header.last_offset) == (1, 2)
    assert header.base_timestamp == -1
    assert header.max_timestamp == START_MS + 2


@pytest.mark.parametrize(
    ("high_watermark", "kept"), [(3, [2, 3]), (4, [3])], ids=["at-the-round", "beyond"]
)
def test_from_4_4_the_batch_below_the_high_watermark_is_kept_empty(
    log_dir: Path, high_watermark: int, kept: list[int]
) -> None:
    log = LogBuilder(log_dir).segment().batch((None, "1")).batch((None, "2"), (None, "3"))
    path = _numbered(log.segment(), "z").high_watermark(high_watermark).write()
    compact(log_dir, kafka_version="4.4")
    assert last_offsets(path) == kept


@pytest.mark.parametrize("setting", ["preallocate=true", "preallocate=false"])
def test_output_is_as_long_as_its_batches(log_dir: Path, setting: str) -> None:
    path = _numbered(_numbered(LogBuilder(log_dir).segment(), "abab").segment(), "z").write()
    stats = compacted(log_dir, setting)
    log = path / f"{0:020}.log"
    assert last_offsets(path) == [2, 3, 4]  # read to the last byte
    assert log.stat().st_size == stats.bytes_after
    assert log.with_suffix(".index").stat().st_size == 0
    assert log.with_suffix(".timeindex").stat().st_size == 12


def test_a_second_round_over_the_same_log_changes_no_byte(log_dir: Path) -> None:
    log = _numbered(LogBuilder(log_dir).segment(), "abcab").batch(("c", None), ("d", "1"))
    path = _numbered(log.segment(), "z").write()
    compacted(log_dir)
    first = directory_bytes(path)
    (log_dir / "cleaner-offset-checkpoint").unlink()
    compacted(log_dir, now_ms=NOW_MS + 1)
    assert directory_bytes(path) == first
