"""Which partitions and offsets are read."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkalog
from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.scan import open_paths, plan_scan
from kafkalog.reading.selection import HIGH_WATERMARK, PartitionSelection, select_partitions
from tests.support.log_builder import LogBuilder

ORDERS = TopicPartition("orders", 0)
FUTURE = "orders-0.0123456789abcdef0123456789abcdef-future"


@pytest.fixture
def path(log_dir: Path) -> Path:
    for name in ("orders-0", "orders-1", "a.b-c-0", "moving-0"):
        log = LogBuilder(log_dir, name).batch((name, "1"), ("k", "2")).batch(("k", "3"))
        log.high_watermark(2).write()
    (log_dir / "moving-0").rename(log_dir / FUTURE)
    return log_dir


def keys(path: Path, **options: object) -> list[str]:
    table = kafkalog.read_records(path, columns=["key", "offset"], **options).read_all()  # type: ignore[arg-type]
    return [r["key"].decode() for r in table.to_pylist() if r["offset"] == 0]


def test_live_partitions_are_read_in_order(path: Path) -> None:
    assert keys(path) == ["a.b-c-0", "orders-0", "orders-1"]


def test_named_directory_is_read_whatever_its_kind(path: Path) -> None:
    assert keys(path / FUTURE) == ["moving-0"]
    assert keys(path / FUTURE / f"{0:020}.log") == ["moving-0"]


def test_several_paths_and_globs(path: Path) -> None:
    assert keys([path / "orders-1", path / "a.b-c-0"]) == ["a.b-c-0", "orders-1"]  # type: ignore[arg-type]
    assert keys(path / "orders-?") == ["orders-0", "orders-1"]


def test_topic_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"not there: order; there are: a\.b-c, orders"):
        keys(path, topics=["order"])
    for number in range(20):
        LogBuilder(path, f"another-{number:02}-0").batch(("k", "v")).write()
    with pytest.raises(InvalidConfigError, match=r"not there: order; did you mean orders\?$"):
        keys(path, topics=["order"])
    inventory, _ = open_paths([path])
    selection = PartitionSelection(partitions=frozenset({TopicPartition("orders", 7)}))
    with pytest.raises(InvalidConfigError, match="not there: orders-7"):
        select_partitions(inventory, selection, every_kind=False)


def test_offsets_must_name_the_partitions_that_are_read(path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="orders-1 is missing"):
        keys(path, topics=["orders"], starting_offsets={ORDERS: 0})
    with pytest.raises(InvalidConfigError, match="names orders-0, which is not selected"):
        keys(path, topics=["a.b-c"], ending_offsets={ORDERS: 0})


def test_high_watermark_bounds_the_read(path: Path) -> None:
    table = kafkalog.read_records(
        path / "orders-0", columns=["offset"], ending_offsets=HIGH_WATERMARK
    ).read_all()
    assert table["offset"].to_pylist() == [0, 1]


@pytest.mark.parametrize("view", ["segments", "partitions"])
def test_descriptions_show_every_kind(path: Path, view: str) -> None:
    inventory, named = open_paths([path])
    (task,) = plan_scan(view, inventory, PartitionSelection().naming(named))
    assert len(task.pieces) == 4


def test_only_segments_with_such_names_are_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for number in range(3):
        log.segment().batch(("k", str(number)), ("k", "more"))
    log.write()
    inventory, _ = open_paths([log_dir])
    selection = PartitionSelection(file_glob="*[24].log")
    for view in ("records", "batches", "segments"):
        tasks = plan_scan(view, inventory, selection)
        paths = [piece.path for task in tasks for piece in task.pieces]
        assert [Path(path).name[-5:] for path in paths] == ["2.log", "4.log"]
