"""Partition directory names."""

from __future__ import annotations

import pytest

from kafkalog.log.topic_partition import (
    PartitionKind,
    TopicPartition,
    parse_partition_dir_name,
    parse_topic_partition,
)

UNIQUE_ID = "2e699e9b000340b68a5200850085fc71"


@pytest.mark.parametrize(
    ("name", "topic", "partition"),
    [
        ("orders-0", "orders", 0),
        ("a-b.c_d-12", "a-b.c_d", 12),
        ("x-delete-3", "x-delete", 3),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        ("t-2147483647", "t", 2147483647),
        ("0-0", "0", 0),
    ],
)
def test_a_live_name_is_split_at_the_last_dash(name: str, topic: str, partition: int) -> None:
    parsed = parse_partition_dir_name(name)
    assert parsed is not None
    assert parsed.topic_partition == TopicPartition(topic, partition)
    assert (parsed.kind, parsed.unique_id) == (PartitionKind.LIVE, None)
    assert str(parsed.topic_partition) == name


@pytest.mark.parametrize("kind", ["delete", "future", "stray"])
def test_a_renamed_directory_keeps_its_partition(kind: str) -> None:
    parsed = parse_partition_dir_name(f"my.topic-7.{UNIQUE_ID}-{kind}")
    assert parsed is not None
    assert parsed.topic_partition == TopicPartition("my.topic", 7)
    assert (parsed.kind, parsed.unique_id) == (kind, UNIQUE_ID)


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "work",
        "remote-log-index-cache",
        "orders-",
        "-0",
        "orders-x",
        "orders--1-",
        "orders-2147483648",
        "orders-0.abc-gone",
        "orders-delete",
        "orders-0-delete",
        "two words-0",
        "a/b-0",
        "line\nbreak-0",
        "orders-0\n",
        "x" * 250 + "-0",
        "",
    ],
)
def test_other_names_are_no_partitions(name: str) -> None:
    assert parse_partition_dir_name(name) is None


def test_only_a_live_partition_can_be_named() -> None:
    assert parse_topic_partition("orders-3") == TopicPartition("orders", 3)
    assert parse_topic_partition(f"orders-3.{UNIQUE_ID}-future") is None
    assert parse_topic_partition("orders") is None


def test_partitions_are_ordered_by_topic_then_number() -> None:
    names = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert sorted(names) == [names[2], names[1], names[0]]
