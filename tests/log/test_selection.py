"""Which partitions a command means."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import asked_for, select_partitions
from kafkalog.log.topic_partition import TopicPartition
from tests.support.log_builder import LogBuilder

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def four(log_dir: Path) -> Path:
    for name in ("orders-0", "orders-1", "other-0", "audit-0"):
        LogBuilder(log_dir, name).batch(("k", "v")).write()
    return log_dir


@pytest.mark.parametrize(
    ("topics", "names", "selected"),
    [
        ([], [], "audit-0 orders-0 orders-1 other-0"),
        (["*"], [], "audit-0 orders-0 orders-1 other-0"),
        (["o*"], [], "orders-0 orders-1 other-0"),
        (["orders"], [], "orders-0 orders-1"),
        (["orders", "audit"], [], "audit-0 orders-0 orders-1"),
        ([], [ORDERS_1], "orders-1"),
        (["o*"], [ORDERS_1], "orders-1"),
        (["audit"], [ORDERS_1], ""),
        (["z*"], [], ""),
    ],
)
def test_partitions_are_selected_by_topic_and_name(
    four: Path, topics: Sequence[str], names: Sequence[TopicPartition], selected: str
) -> None:
    found = select_partitions(open_log_dir(four), topics, names)
    assert " ".join(str(partition.topic_partition) for partition in found) == selected


def test_near_names_are_offered_for_each_of_several(four: Path) -> None:
    with pytest.raises(InvalidConfigError) as refused:
        select_partitions(open_log_dir(four), ["ordres", "*", "audits"], [])
    said = "not in the log dirs: ordres, audits; did you mean orders or audit?"
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("topics", "names", "missing"),
    [
        (["order"], [], "order"),
        (["Orders", "orders"], [], "Orders"),
        ([], [TopicPartition("orders", 9)], "orders-9"),
        (["*"], [ORDERS_0, TopicPartition("x", 0)], "x-0"),
    ],
)
def test_a_name_that_matches_nothing_is_refused(
    four: Path, topics: Sequence[str], names: Sequence[TopicPartition], missing: str
) -> None:
    with pytest.raises(
        InvalidConfigError, match=f"not in the log dirs: {missing}($|; did you mean)"
    ):
        select_partitions(open_log_dir(four), topics, names)


_PARTITIONS = [TopicPartition(topic, n) for topic in ("a", "ab", "b.a", "a[b]") for n in range(2)]


@given(
    topics=st.lists(st.sampled_from(["a", "ab", "b.a", "a[b]", "*", "a*", "?b", "[ab]", "z"])),
    names=st.lists(st.sampled_from(_PARTITIONS)),
)
def test_each_partition_is_asked_for_as_if_held_against_all_names(
    topics: list[str], names: list[TopicPartition]
) -> None:
    is_asked_for = asked_for(topics, names)
    for name in _PARTITIONS:
        by_topic = not topics or any(fnmatchcase(name.topic, each) for each in topics)
        assert is_asked_for(name) == (by_topic and (not names or name in names))
