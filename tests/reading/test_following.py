"""A log that grows, rolls, loses old segments and is compacted between the batches of a stream."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.errors import InvalidConfigError, LogChangedError, OffsetOutOfRangeError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading import at_rest, following
from kafkalog.reading.following import (
    Offsets,
    end_offsets,
    first_offsets,
    latest_offsets,
    plan_between,
    read_following,
)
from kafkalog.reading.request import ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import SplitPlan
from kafkalog.reading.view_reader import ScanNeeds, ScanTask
from kafkalog.reading.views import select_columns
from tests.support.log_builder import LogBuilder

EVERYTHING = PartitionSelection()
CARELESS = PartitionSelection(fail_on_data_loss=False)
REQUEST = ReadRequest.of(select_columns("records", ["partition", "offset"]))
Seen = list[tuple[int, int]]


def read(tasks: list[ScanTask[Any]], selection: PartitionSelection = EVERYTHING) -> Seen:
    return [
        (row["partition"], row["offset"])
        for task in tasks
        for batch in read_following(task, REQUEST, selection)
        for row in batch.to_pylist()
    ]


def between(
    path: Path, start: Offsets, end: Offsets, selection: PartitionSelection = EVERYTHING
) -> list[ScanTask[Any]]:
    return plan_between([str(path)], selection, start, end, ScanNeeds())


def rewrite(log: LogBuilder) -> None:
    """The directory as a broker has it later: other files, same names where they stay."""
    shutil.rmtree(log.path)
    log.write()


def test_batches_cover_a_growing_log_once(log_dir: Path) -> None:
    rnd = random.Random(4)
    logs = [LogBuilder(log_dir, f"orders-{number}").batch(("k", "0")) for number in range(3)]
    for log in logs:
        log.write(clean_shutdown=False)
    offsets = first_offsets([str(log_dir)], EVERYTHING)
    assert offsets == {"orders": {"0": 0, "1": 0, "2": 0}}
    seen: Seen = []
    for _ in range(12):
        for log in logs:
            if rnd.random() < 0.3:
                log.segment()
            for _ in range(rnd.randrange(4)):
                log.batch(*(("k", "v") for _ in range(rnd.randint(1, 5))))
            if rnd.random() < 0.3:
                log.batch(("torn", "x" * 50))
                whole = len(log.segments[-1].log)
                del log.segments[-1].batches[-1]
                log.next_offset -= 1
                log.records.pop()
                rewrite(log)
                file = log.path / f"{log.segments[-1].base_offset:020}.log"
                file.write_bytes(file.read_bytes()[: whole - 7])  # in the middle of an append
                log.segments[-1].log = log.segments[-1].log[
                    : sum(header.size_in_bytes for _, header in log.segments[-1].batches)
                ]
            else:
                rewrite(log)
        most = rnd.choice((None, 7))
        end = latest_offsets([str(log_dir)], EVERYTHING, offsets, max_offsets=most)
        found = read(between(log_dir, offsets, end))
        assert most is None or len(found) <= most + len(logs)
        seen += found
        offsets = end
    end = latest_offsets([str(log_dir)], EVERYTHING, offsets)
    seen += read(between(log_dir, offsets, end))
    assert end == end_offsets([str(log_dir)], EVERYTHING)
    expected = [(p, record.offset) for p, log in enumerate(logs) for record in log.records]
    assert sorted(seen) == expected


def test_segments_that_roll_go_or_are_merged_between_plan_and_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for number in range(30):
        if number % 5 == 0:
            log.segment()
        log.batch(("k", "v"), ("l", "w"))
    log.write()
    start: Offsets = {"orders": {"0": 3}}
    tasks = between(log_dir, start, {"orders": {"0": 55}})
    everything = [(0, offset) for offset in range(3, 55)]
    assert read(tasks) == everything
    # compaction: the first four segments become one, without every third batch
    merged = LogBuilder(log_dir).segment(0)
    kept: list[int] = []
    for segment in log.segments[:4]:
        for position, header in segment.batches:
            if header.base_offset % 3:
                merged.next_offset = header.base_offset
                merged.append(bytes(segment.log[position : position + header.size_in_bytes]))
                kept += [header.base_offset, header.base_offset + 1]
    merged.segments += log.segments[4:]
    merged.next_offset, merged.producers = log.next_offset, log.producers
    rewrite(merged)
    kept += range(40, 60)
    assert read(tasks) == [(0, offset) for offset in kept if 3 <= offset < 55]
    # retention: the merged segment is gone as well
    (log.path / f"{0:020}.log").unlink()
    with pytest.raises(OffsetOutOfRangeError, match="it has 40 to 60"):
        read(tasks)
    assert read(tasks, CARELESS) == [(0, offset) for offset in range(40, 55)]
    shutil.rmtree(log.path)
    with pytest.raises(OffsetOutOfRangeError, match="not there any more"):
        read(tasks)
    assert read(tasks, CARELESS) == []


def test_a_segment_that_vanishes_in_the_middle_is_lost(log_dir: Path) -> None:
    """Before a batch is planned, and between its plan and the read."""
    log = ten_segments(log_dir)
    start: Offsets = {"orders": {"0": 1}}
    end: Offsets = {"orders": {"0": 15}}
    tasks = between(log_dir, start, end)
    logs_of(log)[3].unlink()
    for lost in (lambda: read(tasks), lambda: between(log_dir, start, end)):
        with pytest.raises(OffsetOutOfRangeError, match="offsets 6 to 7 are not here"):
            lost()
    there = [(0, offset) for offset in range(1, 15) if offset not in (6, 7)]
    assert read(tasks, CARELESS) == there
    assert read(between(log_dir, start, end, CARELESS), CARELESS) == there
    assert read(between(log_dir, {"orders": {"0": 8}}, end)) == there[5:]
    assert read(between(log_dir, start, {"orders": {"0": 6}})) == there[:5]


def test_a_stream_from_the_beginning_begins_where_the_log_did(log_dir: Path) -> None:
    log = ten_segments(log_dir)
    logs_of(log)[0].unlink()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 1 are not here"):
        first_offsets([str(log_dir)], EVERYTHING)
    assert first_offsets([str(log_dir)], CARELESS) == {"orders": {"0": 2}}


def test_a_stream_that_comes_to_the_end_learns_that_the_log_was_longer(log_dir: Path) -> None:
    log = ten_segments(log_dir)
    logs_of(log)[-1].unlink()
    start, end = {"orders": {"0": 1}}, {"orders": {"0": 18}}
    with pytest.raises(OffsetOutOfRangeError, match="offsets 18 to 19 are not here"):
        between(log_dir, start, end)
    assert read(between(log_dir, start, end, CARELESS), CARELESS)[-1] == (0, 17)


def ten_segments(log_dir: Path) -> LogBuilder:
    log = LogBuilder(log_dir)
    for _ in range(10):
        log.segment().batch(("k", "v"), ("l", "w"))
    log.write()
    return log


def compacted(log: LogBuilder) -> None:
    """The cleaner has been there."""
    log.cleaner_offset(2)
    rewrite(log)


def set_aside(log: LogBuilder, segments: int, name: str | None) -> None:
    """The first segments under another name, or gone, as their indexes are."""
    for path in logs_of(log)[:segments]:
        for file in log.path.glob(f"{path.stem}.*index"):
            file.unlink()
        if name is None:
            path.unlink()
        else:
            path.rename(path.with_name(name.format(path.name)))


def logs_of(log: LogBuilder) -> list[Path]:
    return sorted(log.path.glob("*.log"))


@pytest.mark.parametrize("name", ["{}.deleted", "kafkalog-0123456789ab-{}.undo"])
def test_a_segment_that_was_set_aside_is_read_as_planned(log_dir: Path, name: str) -> None:
    """By a broker, or by a run of ours that keeps what it replaces."""
    log = ten_segments(log_dir)
    compacted(log)
    tasks = between(log_dir, {"orders": {"0": 1}}, {"orders": {"0": 15}})
    set_aside(log, 4, name)
    # under the name of the first segment, one in which compaction left a record
    LogBuilder(log_dir / "cleaned").batch(("k", "v")).write()
    shutil.copy(log_dir / "cleaned" / "orders-0" / f"{0:020}.log", log.path)
    assert read(tasks) == [(0, offset) for offset in range(1, 15)]
    planned_now = between(log_dir, {"orders": {"0": 0}}, {"orders": {"0": 15}})
    assert read(planned_now) == [(0, 0), *((0, offset) for offset in range(8, 15))]


class FakeTime:
    """Time as `at_rest` sees it: it goes on only while somebody waits. `then` happens after so many
    waits, and is the last change of the directory.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.waits, self.now = directory, 0, 2_000_000_000 * 10**9
        self.then: dict[int, Callable[[], object]] = {}
        self.touch()
        monkeypatch.setattr(at_rest, "time", self)
        monkeypatch.setattr(at_rest, "now_ns", lambda: self.now)

    def touch(self) -> None:
        os.utime(self.directory, ns=(self.now, self.now))

    def monotonic(self) -> float:
        return self.now / 1e9

    def sleep(self, seconds: float) -> None:
        self.waits += 1
        self.now += int(seconds * 1e9)
        if self.waits in self.then:
            self.then[self.waits]()
            self.touch()


def test_a_swap_that_is_under_way_is_waited_for(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the renames of a cleaner neither the old segments nor the new one are there."""
    log = ten_segments(log_dir)
    compacted(log)
    tasks = between(log_dir, {"orders": {"0": 0}}, {"orders": {"0": 20}})
    swapped = log.path / f"{0:020}.log.swap"
    shutil.copy(logs_of(log)[0], swapped)
    set_aside(log, 4, None)
    survivors = [(0, offset) for offset in (0, 1, *range(8, 20))]
    fake = FakeTime(log.path, monkeypatch)
    for ask in (
        lambda: read(tasks),  # planned before
        lambda: read(between(log_dir, {"orders": {"0": 0}}, {"orders": {"0": 20}})),
    ):
        goes_on_at = fake.waits + 15
        fake.then[goes_on_at] = lambda: swapped.rename(swapped.with_suffix(""))
        assert ask() == survivors
        assert fake.waits > goes_on_at
        swapped.with_suffix("").rename(swapped)
        fake.touch()


def test_a_change_between_listing_and_planning_is_looked_at_again(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment that was listed is gone when its headers are looked at."""
    log = ten_segments(log_dir)
    tasks = between(log_dir, {"orders": {"0": 0}}, {"orders": {"0": 20}})
    path = logs_of(log)[3]
    replaced = shutil.copy(path, path.with_suffix(".other"))
    path.unlink()
    plan, failures = following.plan_reading, iter([True, False] * 2)

    def plan_late(*arguments: Any) -> SplitPlan:
        if next(failures, False):
            raise LogChangedError("the segment is gone since the plan was made", path=str(path))
        return plan(*arguments)

    Path(replaced).rename(path)
    monkeypatch.setattr(following, "plan_reading", plan_late)
    everything = [(0, offset) for offset in range(20)]
    assert read(tasks) == everything
    assert read(between(log_dir, {"orders": {"0": 0}}, {"orders": {"0": 20}})) == everything
    assert next(failures, None) is None


def test_a_swap_that_a_broker_left_is_not_waited_for(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ten_segments(log_dir)
    path = logs_of(log)[0]
    path.rename(path.with_name(f"{path.name}.swap"))
    fake = FakeTime(log.path, monkeypatch)
    fake.now += 3 * 10**9
    assert end_offsets([str(log_dir)], EVERYTHING) == {"orders": {"0": 20}}
    assert not fake.waits


def test_a_partition_that_is_gone_is_an_error_or_passed_over(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_rest, "PATIENCE_S", 0.1)
    shutil.rmtree(LogBuilder(log_dir, "orders-0").batch(("a", "1")).write())
    LogBuilder(log_dir, "orders-1").batch(("a", "1")).write()
    start: Offsets = {"orders": {"0": 0, "1": 0}}
    end: Offsets = {"orders": {"0": 1, "1": 1}}
    with pytest.raises(OffsetOutOfRangeError, match="orders-0, which is not there any more"):
        between(log_dir, start, end)
    assert read(between(log_dir, start, end, CARELESS), CARELESS) == [(1, 0)]
    other = PartitionSelection(partitions=frozenset({TopicPartition("orders", 1)}))
    assert read(between(log_dir, start, end, other), other) == [(1, 0)]  # it is not asked for


def test_lost_offsets_are_an_error_or_passed_over(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "1"), ("b", "2")).segment().batch(("c", "3"))
    log.log_start_offset(2).write()
    start: Offsets = {"orders": {"0": 1}}
    with pytest.raises(OffsetOutOfRangeError, match="failOnDataLoss=false goes on"):
        between(log_dir, start, {"orders": {"0": 3}})
    (log.path / f"{0:020}.log").unlink()
    assert read(between(log_dir, start, {"orders": {"0": 3}}, CARELESS), CARELESS) == [(0, 2)]
    with pytest.raises(OffsetOutOfRangeError, match="it has 2 to 3"):
        latest_offsets([str(log_dir)], EVERYTHING, {"orders": {"0": 9}})
    assert latest_offsets([str(log_dir)], CARELESS, {"orders": {"0": 9}}) == {"orders": {"0": 9}}


def test_partitions_come_and_go(log_dir: Path) -> None:
    LogBuilder(log_dir, "orders-0").batch(("a", "1")).write()
    selection = PartitionSelection(starting_offsets={TopicPartition("orders", 0): 1})
    start = first_offsets([str(log_dir)], selection)
    assert start == {"orders": {"0": 1}}
    up_to = end_offsets([str(log_dir)], EVERYTHING)
    LogBuilder(log_dir, "orders-1").batch(("a", "1"), ("b", "2")).write()
    paths = [str(log_dir)]
    assert latest_offsets(paths, EVERYTHING, start, up_to=up_to) == {"orders": {"0": 1}}
    end = latest_offsets(paths, EVERYTHING, start)
    assert end == {"orders": {"0": 1, "1": 2}}
    assert read(between(log_dir, start, end)) == [(1, 0), (1, 1)]
    shutil.rmtree(log_dir / "orders-0")
    assert latest_offsets(paths, EVERYTHING, end) == end
    shutil.copytree(log_dir / "orders-1", log_dir / "other" / "orders-1")
    with pytest.raises(InvalidConfigError, match="there are two of orders-1"):
        end_offsets([*paths, str(log_dir / "other" / "orders-1")], EVERYTHING)


def test_a_stream_begins_where_spark_s_kafka_source_would(log_dir: Path) -> None:
    """latest, -1 and -2; every partition that is there is named, and one that comes later is read
    from its earliest offset."""
    for number in range(2):
        log = LogBuilder(log_dir, f"orders-{number}")
        log.batch(*(("k", str(n)) for n in range(3 + number))).write()
    path = [str(log_dir)]
    zero, one = TopicPartition("orders", 0), TopicPartition("orders", 1)
    latest = PartitionSelection(starting_offsets="latest")
    assert first_offsets(path, latest) == {"orders": {"0": 3, "1": 4}}
    mixed = PartitionSelection(starting_offsets={zero: -1, one: -2})
    assert first_offsets(path, mixed) == {"orders": {"0": 3, "1": 0}}
    with pytest.raises(
        InvalidConfigError, match=r"must name every partition .* orders-1 is missing"
    ):
        first_offsets(path, PartitionSelection(starting_offsets={zero: 1}))
    begun = first_offsets(path, latest)
    LogBuilder(log_dir, "orders-2").batch(("k", "new"), ("k", "newer")).write()
    ends = latest_offsets(path, latest, begun)
    assert ends == {"orders": {"0": 3, "1": 4, "2": 2}}
    assert read(between(log_dir, begun, ends, latest), latest) == [(2, 0), (2, 1)]


def test_a_read_that_starts_at_the_end_is_refused(log_dir: Path) -> None:
    """As Spark's Kafka source refuses it of a batch query."""
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    for start in ("latest", {"orders": {0: -1}}):
        with pytest.raises(InvalidConfigError, match=r"latest \(-1\) is for streams"):
            kafkalog.read_records(log_dir, starting_offsets=start).read_all()
    behind = {("orders", 0): 1}
    found = kafkalog.read_records(log_dir, starting_offsets=behind, columns=["offset"])
    assert found.read_all().num_rows == 0
