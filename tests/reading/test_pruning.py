"""What is not wanted is not read: counted in bytes of system calls, and by what is copied."""

from __future__ import annotations

import logging
import os
import random
from pathlib import Path

import numpy as np
import pytest

import kafkalog.columns.arrow_arrays as arrow_arrays
from kafkalog import open_log_dir, read_records
from kafkalog.format.constants import CompressionType
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.time_index import pack_time_index
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.scan import plan_scan, read_task
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import SplitNeeds, SplitSizes, pack_splits
from kafkalog.reading.view_reader import ScanNeeds
from kafkalog.reading.views import select_columns
from tests.support.bytes_read import bytes_read
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.sparse_log import GIB, KIB, MIB, RECORDS, TEN_GIB_OFFSET, SparseLog, ten_gib

BIG = TopicPartition("big", 0)
Row = tuple[int, int, bytes | None]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> SparseLog:
    log = ten_gib(tmp_path_factory.mktemp("big"))
    assert log.size_in_bytes == 10 * GIB
    return log


@pytest.fixture
def wanted_offset() -> int:
    return TEN_GIB_OFFSET


def filtered(
    path: Path, row_filter: RowFilter, *, fail_on_data_loss: bool = True, **settings: object
) -> list[Row]:
    """Rows that pass, read as a task reads them."""
    request = ReadRequest.of(
        select_columns("records", ["offset", "timestampMs", "key"]), row_filter=row_filter
    )
    needs = ScanNeeds(row_filter=row_filter, **settings)  # type: ignore[arg-type]
    selection = PartitionSelection(fail_on_data_loss=fail_on_data_loss)
    rows: list[Row] = []
    for task in plan_scan("records", open_log_dir(path), selection, needs):
        for batch in read_task(task, request):
            rows += zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)
    return rows


def test_one_offset_of_ten_gib_reads_less_than_a_megabyte(
    big: SparseLog, wanted_offset: int
) -> None:
    exact = RowFilter().with_number("offset", Condition(wanted_offset, wanted_offset))
    filtered(big.path, exact)  # modules are loaded now
    before = bytes_read()
    assert filtered(big.path, exact) == [(wanted_offset, START_MS + wanted_offset, b"k30")]
    assert bytes_read() - before < 1_000_000
    start, end = {BIG: wanted_offset}, {BIG: wanted_offset + 1}
    read_records(big.path, starting_offsets=start, ending_offsets=end).read_all()
    before = bytes_read()
    table = read_records(big.path, starting_offsets=start, ending_offsets=end).read_all()
    assert table["key"].to_pylist() == [b"k30"]
    assert bytes_read() - before < 1_000_000


def test_one_timestamp_of_ten_gib_reads_less_than_a_megabyte(
    big: SparseLog, wanted_offset: int
) -> None:
    time = START_MS + wanted_offset
    before = bytes_read()
    table = read_records(
        big.path, starting_timestamp=time, ending_timestamp=time + 1, columns=["offset", "key"]
    ).read_all()
    assert table.to_pylist() == [{"offset": wanted_offset, "key": b"k30"}]
    assert bytes_read() - before < 1_000_000


@pytest.mark.parametrize("index", ["missing", "garbage", "stale"])
def test_one_offset_without_a_right_index_reads_headers_only(
    big: SparseLog, wanted_offset: int, index: str
) -> None:
    base = 5 * KIB * RECORDS
    path = big.path / f"{base:020}.index"
    right = path.read_bytes()
    lasts = [base + RECORDS * number for number in range(1, 16 * KIB)]
    wrong = {
        "garbage": b"\xff" * 8000,
        "stale": pack_offset_index(lasts, [64 * KIB * n - 7 for n in range(1, 16 * KIB)], base),
    }
    path.unlink()
    if index != "missing":
        path.write_bytes(wrong[index])
    try:
        exact = RowFilter().with_number("offset", Condition(wanted_offset, wanted_offset))
        before = bytes_read()
        assert [row[0] for row in filtered(big.path, exact)] == [wanted_offset]
        # 16,384 headers, some of them more than once, and what tells that the index is wrong
        assert bytes_read() - before < 16 * MIB
    finally:
        path.write_bytes(right)


def test_plan_says_what_was_skipped(
    big: SparseLog, wanted_offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkalog")
    filtered(big.path, RowFilter().with_number("offset", Condition(wanted_offset, wanted_offset)))
    assert caplog.messages == [
        "records: 1 of 10 segments, 131072 of 10737418240 bytes in 1 splits",
        "records: 1 batches skipped by their headers, 65536 bytes of them not read;"
        " 1 of 51 records kept",
    ]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_one_key_copies_no_other_records_value(
    log_dir: Path, codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogBuilder(log_dir)
    for number in range(40):
        log.batch(*((f"key-{number % 7}", "v" * (100 + i)) for i in range(30)), codec=codec)
    log.batch(("other", "wanted"), ("othex", "x" * 900), codec=codec)
    path = log.write()
    copied: list[int] = []
    gather = arrow_arrays.gather_spans

    def counted(*args: np.ndarray) -> None:
        copied.append(int(args[2].clip(min=0).sum()))
        gather(*args)

    monkeypatch.setattr(arrow_arrays, "gather_spans", counted)
    found = read_records(path, keys=[b"other"], columns=["key", "value"]).read_all().to_pylist()
    assert found == [{"key": b"other", "value": b"wanted"}]
    assert sum(copied) == len(b"other") + len(b"wanted")
    with_null = read_records(path, keys=[b"key-3", b"absent", b""]).read_all()
    assert set(with_null["key"].to_pylist()) == {b"key-3"}
    assert with_null.num_rows == sum(number % 7 == 3 for number in range(40)) * 30


def random_log(log_dir: Path, rnd: random.Random) -> LogBuilder:
    """Several segments, producers, epochs and codecs; timestamps out of order, some of them -1."""
    log = LogBuilder(log_dir, index_interval_bytes=rnd.choice((100, 400, 4096)))
    for _ in range(rnd.randint(2, 5)):
        log.segment()
        for _ in range(rnd.randint(1, 12)):
            log.epoch(log.leader_epoch + rnd.choice((0, 0, 1)))
            times = [rnd.choice((-1, START_MS + rnd.randrange(500))) for _ in range(3)]
            records = [
                Record(log.next_offset + i + rnd.randrange(2) * (i == 2), time, key, b"value" * i)
                for i, time in enumerate(times)
                for key in [rnd.choice((None, b"", b"a", b"bb", b"bc"))]
            ]
            codec = rnd.choice((0, 0, 3))
            producer_id = rnd.choice((-1, -1, 5, 6))
            log.batch(*records, codec=codec, producer_id=producer_id)
            if rnd.random() < 0.1:
                log.next_offset += rnd.randrange(5)
    return log


def random_filter(rnd: random.Random, log: LogBuilder) -> RowFilter:
    row_filter = RowFilter()
    for column, most in (("offset", log.next_offset + 3), ("timestampMs", START_MS + 520)):
        least = 0 if column == "offset" else START_MS - 20
        low, high = sorted(rnd.randrange(least, most) for _ in range(2))
        choice = rnd.randrange(5)
        if choice < 3:
            bounds = (Condition(low, high), Condition(low=low), Condition(high=high))[choice]
            row_filter = row_filter.with_number(column, bounds)
        elif choice == 3 and column == "offset":
            values = frozenset(rnd.randrange(most) for _ in range(3))
            row_filter = row_filter.with_number(column, Condition.one_of(values))
    if rnd.random() < 0.3:
        row_filter = row_filter.with_number("producerId", Condition.one_of(frozenset({5})))
    if rnd.random() < 0.3:
        row_filter = row_filter.with_number("leaderEpoch", Condition(1, 3))
    if rnd.random() < 0.3:
        row_filter = row_filter.with_keys(frozenset({b"a", b""}))
    return row_filter


def break_an_index(rnd: random.Random, log: LogBuilder) -> None:
    """Any one file: gone, of another log, or cut."""
    files = sorted([*log.path.glob("*.index"), *log.path.glob("*.timeindex")])
    path = rnd.choice(files)
    base = int(path.stem)
    damage = rnd.randrange(4)
    if damage == 0:
        path.unlink()
    elif damage == 1:
        path.write_bytes(path.read_bytes() + bytes(240))
    elif path.suffix == ".index":
        entries = sorted(rnd.sample(range(1, 3000), 6))
        path.write_bytes(pack_offset_index([base + i * 3 for i in range(6)], entries, base))
    else:
        times = sorted(START_MS + t for t in rnd.sample(range(500), 4))
        path.write_bytes(pack_time_index(times, [base + i for i in range(4)], base))


@pytest.mark.parametrize("seed", range(40))
def test_filtered_rows_equal_all_rows_filtered(log_dir: Path, seed: int) -> None:
    """Whatever indexes say: pruning may read too much, it must not lose a row."""
    rnd = random.Random(seed)
    log = random_log(log_dir, rnd)
    log.write(clean_shutdown=rnd.random() < 0.5)
    broken = rnd.random() < 0.5
    if broken:
        break_an_index(rnd, log)
    names = ["offset", "timestampMs", "key", "producerId", "leaderEpoch"]
    everything = read_records(log.path, columns=names, fail_on_data_loss=False).read_all()
    rows = [tuple(row.values()) for row in everything.to_pylist()]
    for _ in range(15):
        row_filter = random_filter(rnd, log)
        if broken and row_filter.timestamps is not None and row_filter.timestamps.low > 0:
            continue  # a time index that is wrong and looks right is what `verify` is for
        numbers = row_filter.numbers
        expected = [
            (offset, time, key)
            for offset, time, key, producer_id, epoch in rows
            if all(
                column not in numbers or (value is not None and numbers[column].accepts(value))
                for column, value in (
                    ("offset", offset),
                    ("timestampMs", time),
                    ("producerId", producer_id),
                    ("leaderEpoch", epoch),
                )
            )
            and (row_filter.keys is None or key in row_filter.keys)
        ]
        sizes = SplitSizes(rnd.choice((200, 1000, 1 << 26)))
        found = filtered(log.path, row_filter, sizes=sizes, fail_on_data_loss=False)
        assert found == expected, row_filter


def test_headers_tell_which_bodies_are_not_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for number in range(60):
        log.batch(("k", "v" * 40_000), producer_id=number % 20)
    path = log.write()
    row_filter = RowFilter().with_number("producerId", Condition(7, 7))
    request = ReadRequest.of(select_columns("records", ["offset"]), row_filter=row_filter)
    plan = plan_reading(
        open_log_dir(path), PartitionSelection(), SplitSizes(), SplitNeeds(row_filter=row_filter)
    )
    counts = ReadCounts()
    batches = list(read_record_splits(plan.splits, request, counts))
    assert [offset for batch in batches for offset in batch["offset"].to_pylist()] == [7, 27, 47]
    assert counts.skipped_batches == 57
    assert counts.skipped_bytes == sum(
        h.size_in_bytes for _, h in log.segments[0].batches if h.producer_id != 7
    )
    assert (counts.records, counts.wanted_records) == (3, 3)


def test_least_number_of_tasks_and_bytes_of_each(log_dir: Path) -> None:
    """A topic with one large partition and many small ones: tasks of like size."""
    for partition, batches in ((0, 400), (1, 3), (2, 3)):
        log = LogBuilder(log_dir, f"skewed-{partition}", index_interval_bytes=200)
        for _ in range(batches):
            log.batch(("k", "v" * 200))
        log.write()
    inventory = open_log_dir(log_dir)
    for least in (1, 2, 7, 40):
        plan = plan_reading(
            inventory, PartitionSelection(), SplitSizes(min_splits=least), SplitNeeds()
        )
        packs = pack_splits(plan.splits, plan.sizes.pack_bytes)
        assert least <= len(packs) <= least + 3
        total = sum(split.end - split.start for split in plan.splits)
        assert (
            total
            == inventory.partitions[0].size_in_bytes + 2 * inventory.partitions[1].size_in_bytes
        )
        largest = max(sum(s.end - s.start for s in pack) for pack in packs)
        assert largest <= total / least + 600
    plan = plan_reading(inventory, PartitionSelection(), SplitSizes(2000), SplitNeeds())
    assert max(split.end - split.start for split in plan.splits) < 2000 * 1.25 + 600


@pytest.mark.parametrize(("cores", "enough"), [(None, 4), (1, 4), (2, 4), (8, 16)])
def test_splits_grow_as_long_as_there_are_enough(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, enough: int
) -> None:
    """Up to most_bytes, and no further than leaves two of them for each core."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    sizes = SplitSizes(64, most_bytes=256)
    totals = (0, 64 * enough, 65 * enough, 256 * enough, 100_000)
    grown = [sizes.for_total(total).split_bytes for total in totals]
    assert grown == [64, 64, 65, 256, 256]
    least = SplitSizes(64, min_splits=4, most_bytes=256)
    assert least.for_total(100_000).split_bytes == 64
