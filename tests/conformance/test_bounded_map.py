"""Rounds whose key map is bounded as a broker's (`--dedupe-buffer-size`)."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.rounds import cleaner_offset, compact, compacted, keys, offsets
from tests.support.log_builder import LogBuilder

# 24 bytes a slot, of which nine in ten are filled: room for one, two and three keys.
ONE_KEY, TWO_KEYS, THREE_KEYS = 48, 72, 96


def write(log_dir: Path, *names: str, first_dirty: int) -> Path:
    """One record a batch, of these keys, in one segment below an empty active one."""
    log = LogBuilder(log_dir).segment()
    for name in names:
        log.batch((name, "v"))
    return log.segment().cleaner_offset(first_dirty).write()


def test_what_a_full_map_does_not_know_stays(log_dir: Path) -> None:
    path = write(log_dir, "old", "a", "b", "a", "b", first_dirty=1)
    stats = compacted(log_dir, dedupe_buffer_size=TWO_KEYS)
    # The map is asked full before it is asked for a key it has: it ends before the second "a".
    assert stats.end_offset == cleaner_offset(path) == 3
    assert offsets(path) == [0, 1, 2, 3, 4]
    compacted(log_dir, dedupe_buffer_size=TWO_KEYS)
    assert keys(path) == ["old", "a", "b"]
    assert offsets(path) == [0, 3, 4]


def test_a_round_ends_behind_the_last_key_mapped_or_behind_a_hole(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "mid-0").segment()
    log.batch(("a", "v"), ("b", "v")).segment().write()
    stats = compacted(log_dir, dedupe_buffer_size=ONE_KEY)
    assert stats.end_offset == 1  # in the middle of a batch
    log = LogBuilder(log_dir, "hole-0").segment().batch(("a", "v"))
    path = log.segment(10).batch(("b", "v")).segment().write()
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\nmid 0 2\n")
    for end in (10, 11):  # the offsets without records are behind it, too
        (result,) = compact(log_dir, dedupe_buffer_size=ONE_KEY).results
        assert result.stats.end_offset == end == cleaner_offset(path)


def test_a_map_for_two_keys_stops_at_the_third(log_dir: Path) -> None:
    path = write(log_dir, "k2", "k0", "k2", "k3", "k4", "k0", first_dirty=2)
    stats = compacted(log_dir, dedupe_buffer_size=TWO_KEYS)
    assert (stats.end_offset, stats.distinct_keys) == (4, 2)
    assert offsets(path) == [1, 2, 3, 4, 5]  # k0 was not mapped, so its old record stays
    assert cleaner_offset(path) == 4


def test_a_map_for_one_key_removes_one_record_a_round(log_dir: Path) -> None:
    path = write(log_dir, "k0", "k1", "k0", "k1", "k0", first_dirty=2)
    left = []
    for _ in range(3):
        compacted(log_dir, dedupe_buffer_size=ONE_KEY)
        left.append((cleaner_offset(path), offsets(path)))
    assert left == [(3, [1, 2, 3, 4]), (4, [2, 3, 4]), (5, [3, 4])]


def test_counts_of_a_round_with_room_for_all_keys(log_dir: Path) -> None:
    path = write(log_dir, "k0", "k1", "k0", "k1", "k0", first_dirty=2)
    size = (path / f"{0:020d}.log").stat().st_size
    stats = compacted(log_dir, dedupe_buffer_size=THREE_KEYS)
    assert (stats.end_offset, stats.records_read, stats.records_retained) == (5, 5, 2)
    after = (path / f"{0:020d}.log").stat().st_size
    assert (stats.bytes_before, stats.bytes_after) == (size, after)
    assert (stats.no_key, stats.superseded) == (0, 3)
    assert offsets(path) == [3, 4]
