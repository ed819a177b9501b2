"""Segments, indexes, checkpoint and swap of a round."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.format.file_names import log_file_name
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.format.time_index import parse_time_index
from kafkalog.log.topic_partition import TopicPartition
from tests.conformance.rounds import (
    NOW_MS,
    bases,
    batches,
    cleaner_offset,
    compact,
    compacted,
    continued,
    directory_bytes,
    offsets,
)
from tests.support.log_builder import START_MS, LogBuilder

KINDS = (".log", ".index", ".timeindex")


def _segments_of_one_key(log_dir: Path, count: int, name: str = "orders-0") -> LogBuilder:
    """Closed segments that hold k and a key of their own, and an empty active one."""
    log = LogBuilder(log_dir, name)
    for number in range(count):
        log.segment(modified_ms=START_MS + number).batch(("k", str(number)), (f"own{number}", "v"))
    return log.segment()


# -- what is cleaned, and what the checkpoint says -------------------------------------------------


@pytest.mark.parametrize("high_watermark", [4, 5], ids=["at-the-base", "past-the-base"])
def test_the_segment_of_the_high_watermark_and_later_ones_are_untouched(
    log_dir: Path, high_watermark: int
) -> None:
    path = _segments_of_one_key(log_dir, 4).high_watermark(high_watermark).write()
    before = directory_bytes(path)
    compacted(log_dir)
    after = directory_bytes(path)
    later = [f"{base:020d}{kind}" for base in (4, 6, 8) for kind in KINDS]
    assert {name: after[name] for name in later} == {name: before[name] for name in later}
    assert offsets(path) == [1, 2, 3, 4, 5, 6, 7]
    assert cleaner_offset(path) == 4


def test_data_younger_than_the_lag_is_left_until_it_is_old_enough(log_dir: Path) -> None:
    path = _segments_of_one_key(log_dir, 3).write()
    before = directory_bytes(path)
    lag = NOW_MS - START_MS
    run = compact(log_dir, f"min.compaction.lag.ms={lag}")
    assert [plan.status for plan in run.plans] == ["skip"]
    assert directory_bytes(path) == before
    compacted(log_dir, f"min.compaction.lag.ms={lag}", now_ms=NOW_MS + 3)
    assert offsets(path) == [1, 2, 3, 4, 5]
    assert cleaner_offset(path) == 4


def test_a_checkpoint_outside_the_log_is_corrected_even_if_nothing_is_cleaned(
    log_dir: Path,
) -> None:
    _segments_of_one_key(log_dir, 2, "dirty-0").cleaner_offset(99).write()
    LogBuilder(log_dir, "idle-0").segment(20).batch(("k", "v")).cleaner_offset(15).write()
    LogBuilder(log_dir, "sound-0").segment().batch(("k", "v")).cleaner_offset(1).write()
    run = compact(log_dir)
    assert [plan.status for plan in run.plans] == ["clean", "skip", "skip"]
    found = parse_offset_checkpoint((log_dir / CLEANER_OFFSET_FILE).read_bytes())
    assert found == {("dirty", 0): 4, ("idle", 0): 20, ("sound", 0): 1}


def test_lines_of_other_partitions_stay_and_those_of_lost_ones_go(log_dir: Path) -> None:
    _segments_of_one_key(log_dir, 2, "a-0").write()
    _segments_of_one_key(log_dir, 2, "b-0").cleaner_offset(1).write()
    checkpoint = log_dir / CLEANER_OFFSET_FILE
    checkpoint.write_text("0\n2\nb 0 1\ngone 7 4\n")
    compact(log_dir, partitions=[TopicPartition("a", 0)])
    assert parse_offset_checkpoint(checkpoint.read_bytes()) == {("a", 0): 4, ("b", 0): 1}


def test_a_round_that_fails_leaves_the_checkpoint_as_it_was(log_dir: Path) -> None:
    path = _segments_of_one_key(log_dir, 2).cleaner_offset(2).write()
    log = path / log_file_name(0)
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    (result,) = compact(log_dir).results
    assert (result.status, "CRC" in result.reason) == ("failed", True)
    assert cleaner_offset(path) == 2


# -- segments become one ---------------------------------------------------------------------------


def test_sources_of_a_group_become_one_segment_with_the_last_ones_time(log_dir: Path) -> None:
    path = _segments_of_one_key(log_dir, 3).write()
    compacted(log_dir)
    assert bases(path) == [0, 6]
    assert offsets(path) == [1, 3, 4, 5]
    times = {(path / f"{0:020d}{kind}").stat().st_mtime_ns for kind in KINDS}
    assert times == {(START_MS + 2) * 1_000_000}


def test_groups_are_made_by_the_sizes_before_cleaning(log_dir: Path) -> None:
    log = _segments_of_one_key(log_dir, 5)
    size = len(log.segments[0].log)
    path = log.write()
    compacted(log_dir, f"internal.segment.bytes={2 * size + 1}")
    assert bases(path) == [0, 4, 8, 10]


def test_segments_cleaned_to_nothing_stay_as_segments_and_merge_in_the_next_round(
    log_dir: Path,
) -> None:
    far = 2**31
    log = LogBuilder(log_dir)
    for base in (0, far, 2 * far):
        log.segment(base).batch(("k", str(base)))
    path = log.segment(3 * far).batch(("y", "")).write()
    compacted(log_dir)
    assert bases(path) == [0, far, 2 * far, 3 * far]
    sizes = [(path / log_file_name(base)).stat().st_size for base in (0, far)]
    assert sizes == [0, 0]
    assert (path / f"{0:020d}.index").stat().st_size == 0
    assert (path / f"{0:020d}.timeindex").stat().st_size == 0
    continued(path).segment().batch(("z", "")).write()
    compacted(log_dir)
    assert bases(path) == [0, 2 * far, 3 * far, 3 * far + 1]


# -- indexes ---------------------------------------------------------------------------------------


def _indexed(log_dir: Path, interval_bytes: int) -> tuple[Path, list[tuple[int, int]]]:
    log = LogBuilder(log_dir, index_interval_bytes=interval_bytes).segment()
    for number in range(6):
        log.batch((f"k{number}", "v" * 20), timestamp=START_MS + (number if number != 3 else 50))
    log.batch(("k0", "w"), timestamp=START_MS)
    path = log.segment().batch(("z", "")).write()
    compacted(log_dir, f"index.interval.bytes={interval_bytes}")
    positions, position = [], 0
    for header, _ in batches(path):
        positions.append((header.last_offset, position))
        position += header.size_in_bytes
    return path, positions[:-1]


def test_an_index_entry_needs_more_than_the_interval_since_the_last(log_dir: Path) -> None:
    size = 61 + 29  # all batches of _indexed but the last are as long
    path, batch_list = _indexed(log_dir, 2 * size)
    data = (path / f"{0:020d}.index").read_bytes()
    index = parse_offset_index(data, 0)
    entries = list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True))
    assert [position for _, position in batch_list[:4]] == [0, size, 2 * size, 3 * size]
    assert entries == [batch_list[3]]


def test_the_first_batch_gets_no_entry_and_the_interval_zero_one_for_each_other(
    log_dir: Path,
) -> None:
    path, batch_list = _indexed(log_dir, 0)
    index = parse_offset_index((path / f"{0:020d}.index").read_bytes(), 0)
    entries = list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True))
    assert entries == batch_list[1:]
    times = parse_time_index((path / f"{0:020d}.timeindex").read_bytes(), 0)
    found = list(zip(times.timestamps.tolist(), times.offsets.tolist(), strict=True))
    assert found == [(START_MS + 2, 2), (START_MS + 50, 3)]


def test_the_time_index_is_closed_with_the_largest_timestamp(log_dir: Path) -> None:
    path, _ = _indexed(log_dir, 100_000)
    assert (path / f"{0:020d}.index").read_bytes() == b""
    times = parse_time_index((path / f"{0:020d}.timeindex").read_bytes(), 0)
    found = list(zip(times.timestamps.tolist(), times.offsets.tolist(), strict=True))
    assert found == [(START_MS + 50, 3)]


@pytest.mark.parametrize(("limit", "fits"), [(60, False), (72, True)])
def test_a_time_index_without_room_refuses_the_round_and_says_so(
    log_dir: Path, limit: int, fits: bool
) -> None:
    log = LogBuilder(log_dir, index_interval_bytes=0)
    for number in range(2):
        log.segment().batch((f"a{number}", "")).batch((f"b{number}", "")).batch((f"c{number}", ""))
    path = log.segment().write()
    before = directory_bytes(path)
    # 2 + 2 time entries pass the sum; merged they are 5, and the closing one asks for room as well
    run = compact(log_dir, "index.interval.bytes=0", f"segment.index.bytes={limit}")
    (result,) = run.results
    if fits:
        assert result.status == "compacted"
        assert bases(path) == [0, 6]
    else:
        assert result.status == "refused"
        assert "time index of the new segment 0 needs room for 6 entries" in result.reason
        assert directory_bytes(path) == before
        assert cleaner_offset(path) is None


# -- what a crash leaves ---------------------------------------------------------------------------


def _crashed(path: Path, new: dict[str, bytes], suffixes: dict[str, str], gone: str) -> None:
    """Put the files of a finished cleaning beside or in place of the sources, as a crash would:
    `suffixes` by kind for the new files, `gone` what happened to the sources.
    """
    for file in list(path.iterdir()):
        if file.suffix in KINDS and int(file.stem) < 6:
            if gone == "deleted":
                file.rename(f"{file}.deleted")
            elif gone == "removed":
                file.unlink()
    for kind in KINDS:
        (path / f"{0:020d}{kind}{suffixes[kind]}").write_bytes(new[kind])


@pytest.mark.parametrize(
    ("suffixes", "gone", "is_completed"),
    [
        ((".cleaned", ".cleaned", ".cleaned"), "", False),
        ((".swap", ".cleaned", ".cleaned"), "", False),
        ((".swap", ".swap", ".swap"), "", True),
        ((".swap", ".swap", ".swap"), "deleted", True),
        (("", "", ".swap"), "deleted", True),
        (("", "", ""), "deleted", True),
    ],
    ids=[f"stage-{number}" for number in range(1, 7)],
)
def test_what_a_crashed_broker_left_is_undone_or_completed(
    log_dir: Path, suffixes: tuple[str, str, str], gone: str, is_completed: bool
) -> None:
    other = log_dir / "other"
    other.mkdir()
    cleaned = _segments_of_one_key(other, 3).write()
    compacted(other)
    new = {kind: (cleaned / f"{0:020d}{kind}").read_bytes() for kind in KINDS}
    wanted = {name: content for name, (content, _) in directory_bytes(cleaned).items()}
    here = log_dir / "here"
    here.mkdir()
    path = _segments_of_one_key(here, 3).write()
    _crashed(path, new, dict(zip(KINDS, suffixes, strict=True)), gone)
    # a setting that makes nothing due: what is left is resolved, and nothing else happens
    run = compact(here, "min.cleanable.dirty.ratio=1")
    assert run.recovered or suffixes == ("", "", "")
    found = sorted(file.name for file in path.iterdir())
    if is_completed:
        assert offsets(path) == [1, 3, 4, 5]
        assert bases(path) == [0, 6]
    else:
        assert offsets(path) == [0, 1, 2, 3, 4, 5]
        assert bases(path) == [0, 2, 4, 6]
    assert not [name for name in found if name.endswith((".cleaned", ".swap", ".tmp"))]
    # what a broker would still delete stays where nothing is due, and goes with what is replaced
    assert any(name.endswith(".deleted") for name in found) == (gone == "deleted")
    compacted(here)
    assert not list(path.glob("*.deleted"))
    assert {
        name: content
        for name, (content, _) in directory_bytes(path).items()
        if name.endswith(KINDS)
    } == {name: content for name, content in wanted.items() if name.endswith(KINDS)}
