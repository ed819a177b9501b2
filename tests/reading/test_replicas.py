"""Replicas of one partition in one read: the same records, and each would be a row of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkalog
from kafkalog.errors import InvalidConfigError
from kafkalog.reading.conditions import RowFilter
from kafkalog.reading.scan import open_paths, plan_scan
from kafkalog.reading.selection import PartitionSelection, furthest_replicas
from kafkalog.reading.source_options import parse_options
from kafkalog.reading.view_reader import ScanNeeds
from tests.support.log_builder import LogBuilder

READ = ("records", "batches", "messages", "transactions", "producers")


@pytest.fixture
def brokers(log_dir: Path) -> list[str]:
    """Three brokers: `orders-0` on each, `own-N` on one; the second lags behind."""
    paths = []
    for number in (1, 2, 3):
        path = log_dir / f"broker-{number}"
        log = LogBuilder(path, "orders-0").segment()
        for _ in range(2 if number == 2 else 3):
            log.batch(("k", "v"), ("l", "v"))
        log.write()
        LogBuilder(path, f"own-{number}").segment().batch(("k", "v")).write()
        LogBuilder(path, "__consumer_offsets-0").segment().batch(("k", None)).write()
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("view", READ)
def test_several_replicas_are_refused_unless_all_are_asked_for(
    brokers: list[str], view: str
) -> None:
    topics = ["__consumer_offsets"] if view == "messages" else ["orders", "__consumer_offsets"]
    with pytest.raises(InvalidConfigError, match=r"is there 3 times .*replicas=all") as refused:
        kafkalog.read_view(view, brokers, topics=topics)
    assert all(path in str(refused.value) for path in brokers)
    kafkalog.read_view(view, brokers, topics=topics, mode="PERMISSIVE", replicas="all")
    kafkalog.read_view(view, brokers[0], mode="PERMISSIVE")


def test_rows_of_all_or_of_one(brokers: list[str]) -> None:
    assert kafkalog.read_records(brokers[0], topics=["orders"]).read_all().num_rows == 6
    every = kafkalog.read_records(brokers, topics=["orders"], replicas="all").read_all()
    assert every.num_rows == 6 + 4 + 6
    assert kafkalog.read_batches(brokers, topics=["orders"], replicas="all").num_rows == 3 + 2 + 3
    # what is on one broker alone is no replica
    own = kafkalog.read_records(brokers, topics=["own"]).read_all()
    assert sorted(own["partition"].to_pylist()) == [1, 2, 3]
    with pytest.raises(InvalidConfigError, match="'all' is all there is"):
        kafkalog.read_records(brokers, replicas="some")


def test_named_directories_are_replicas_as_well_and_one_named_twice_is_not(
    brokers: list[str],
) -> None:
    first, second = f"{brokers[0]}/orders-0", f"{brokers[1]}/orders-0"
    with pytest.raises(InvalidConfigError, match="is there 2 times"):
        kafkalog.read_records([first, second])
    assert kafkalog.read_records([first, brokers[0] + "/orders-*"]).read_all().num_rows == 6


@pytest.mark.parametrize("view", ["segments", "partitions", "leader_epochs", "checkpoints"])
def test_what_is_of_each_directory_is_told_of_each(brokers: list[str], view: str) -> None:
    found = kafkalog.read_view(view, brokers)
    paths = found["path"].to_pylist() if "path" in found.column_names else []
    assert found.num_rows >= 3
    assert not paths or {path.split("broker-")[1][0] for path in paths} == {"1", "2", "3"}


def test_only_what_is_read_is_looked_at(brokers: list[str]) -> None:
    """Each broker has a replica of the internal topics: they hinder nobody who asks for others."""
    inventory, named = open_paths(brokers)
    selection = PartitionSelection().naming(named)
    wanted = ScanNeeds(row_filter=RowFilter().with_topics(frozenset({"own"})))
    assert plan_scan("records", inventory, selection, wanted)
    with pytest.raises(InvalidConfigError, match="__consumer_offsets-0 is there 3 times"):
        plan_scan("offset_commits", inventory, selection)


def test_the_furthest_counts_where_replicas_are_told_once(brokers: list[str]) -> None:
    inventory, _ = open_paths(brokers[1:])
    found = {str(p.topic_partition): p for p in furthest_replicas(inventory.partitions)}
    assert found["orders-0"].path == f"{brokers[2]}/orders-0"


def test_the_source_takes_the_option() -> None:
    given = {"path": "/d", "replicas": "all"}
    assert parse_options(given).selection.all_replicas
    assert not parse_options({"path": "/d"}).selection.all_replicas
    for wrong in ({"replicas": "one"}, {"replicas": "all", "view": "segments"}):
        with pytest.raises(InvalidConfigError, match="replicas"):
            parse_options({"path": "/d", **wrong})
