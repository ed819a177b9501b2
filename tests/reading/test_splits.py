"""Splits below a segment: true batch boundaries, everything read once, whatever the index says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog import open_log_dir
from kafkalog.errors import CorruptRecordError
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.splits import PACK_PIECES, ScanSplit, pack_splits
from kafkalog.reading.views import select_columns
from tests.support.log_builder import LogBuilder

BATCHES = 60


@pytest.fixture
def log(log_dir: Path) -> LogBuilder:
    builder = LogBuilder(log_dir, index_interval_bytes=300)
    for i in range(BATCHES):
        builder.batch((f"k{i}", "v" * (i * 7 % 90)), (f"l{i}", "w" * 20))
    builder.write()
    return builder


def index_path(log: LogBuilder) -> Path:
    return log.path / f"{0:020}.index"


def splits_of(log: LogBuilder, split_bytes: int = 1000) -> list[ScanSplit]:
    inventory = open_log_dir(log.path)
    return plan_splits(inventory.partitions, PartitionSelection(), split_bytes=split_bytes)


def offsets(splits: list[ScanSplit], mode: ReadMode = ReadMode.FAILFAST) -> list[int | None]:
    request = ReadRequest.of(select_columns("records", ["offset"]), mode=mode)
    return [o for batch in read_record_splits(splits, request) for o in batch["offset"].to_pylist()]


def check_boundaries(log: LogBuilder, splits: list[ScanSplit]) -> None:
    starts = {position for position, _ in log.segments[0].batches}
    assert {split.start for split in splits} <= starts
    assert splits[0].start == 0
    assert [s.end for s in splits] == [*(s.start for s in splits[1:]), len(log.segments[0].log)]
    assert offsets(splits) == list(range(2 * BATCHES))


def test_splits_begin_at_batches_and_cover_the_segment(log: LogBuilder) -> None:
    splits = splits_of(log)
    check_boundaries(log, splits)
    assert len(splits) == round(len(log.segments[0].log) / 1000)


@pytest.mark.parametrize("index", ["missing", "empty", "garbage", "stale", "inside"])
def test_useless_index_changes_nothing(log: LogBuilder, index: str) -> None:
    batches = log.segments[0].batches
    offsets_, positions = zip(*((h.last_offset, p) for p, h in batches[1:]), strict=True)
    contents = {
        "empty": b"",
        "garbage": b"\xff" * 80,
        # an index of the log before it was compacted: the right form, other places
        "stale": pack_offset_index(offsets_, [p + 11 for p in positions], 0),
        # real batch starts under offsets that are too low for them
        "inside": pack_offset_index(range(1, len(positions) + 1), positions, 0),
    }
    if index == "missing":
        index_path(log).unlink()
    else:
        index_path(log).write_bytes(contents[index])
    splits = splits_of(log)
    check_boundaries(log, splits)
    assert len(splits) > 3


def test_wrong_cut_is_an_error_never_a_silent_loss(log: LogBuilder) -> None:
    first, second, *others = splits_of(log)
    wrong = [replace(first, end=first.end - 5), replace(second, start=first.end - 5), *others]
    with pytest.raises(CorruptRecordError, match="batch length"):
        offsets(wrong)


def test_a_batch_that_cannot_be_walked_over_is_all_that_is_lost(log: LogBuilder) -> None:
    splits = splits_of(log)
    path = log.path / f"{0:020}.log"
    content = bytearray(path.read_bytes())
    # a batch length no batch has: the next batch has to be searched
    content[splits[1].start + 8 : splits[1].start + 12] = b"\0\0\0\1"
    path.write_bytes(content)
    found = offsets(splits, ReadMode.DROPMALFORMED)
    lost = set(range(2 * BATCHES)) - set(found)
    assert lost == set(offsets_between(log, splits[1].start, splits[1].start + 1))


def offsets_between(log: LogBuilder, start: int, end: int) -> list[int]:
    return [
        offset
        for position, header in log.segments[0].batches
        if start <= position < end
        for offset in range(header.base_offset, header.last_offset + 1)
    ]


def test_small_segment_is_one_split(log: LogBuilder) -> None:
    assert len(splits_of(log, split_bytes=1 << 20)) == 1


def test_segments_outside_the_wanted_offsets_are_not_planned(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for _ in range(4):
        log.segment().batch(*[("k", "v")] * 10)
    log.segment()
    inventory = open_log_dir(log.write())
    tp = inventory.partitions[0].topic_partition
    selection = PartitionSelection(starting_offsets={tp: 10}, ending_offsets={tp: 21})
    splits = plan_splits(inventory.partitions, selection)
    assert [split.segment_base_offset for split in splits] == [10, 20]


def test_small_splits_are_packed_and_none_is_lost(log: LogBuilder) -> None:
    one = splits_of(log, split_bytes=1 << 20)[0]
    packs = pack_splits([one] * (PACK_PIECES + 3))
    assert [len(pack) for pack in packs] == [PACK_PIECES, 3]
    large = replace(one, end=20 * 1024 * 1024)
    assert [len(pack) for pack in pack_splits([large, large, large])] == [1, 1, 1]
    assert pack_splits([]) == []
