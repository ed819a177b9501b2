"""Partitions and offsets as people write them."""

from __future__ import annotations

from typing import Any

import pytest

import kafkalog
from kafkalog import TopicPartition
from kafkalog.errors import InvalidConfigError
from kafkalog.log.named_partitions import offsets_in, partitions_in

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.mark.parametrize(
    "given",
    [
        [A, B],
        [("orders", 0), "orders-1"],
        {"orders": [0, 1]},
        (("orders", 0), ("orders", 1)),
        iter(["orders-0", B]),
    ],
)
def test_partitions_are_taken_as_a_person_writes_them(given: Any) -> None:
    assert partitions_in(given) == (A, B)


def test_one_partition_is_one_whatever_its_form() -> None:
    assert {partitions_in(given) for given in (A, ("orders", 0), "orders-0", [A])} == {(A,)}
    assert partitions_in(()) == ()


@pytest.mark.parametrize("given", ["orders", [3], {"orders": ["x"]}, [("orders", "0", 1)]])
def test_what_names_no_partition_is_refused(given: Any) -> None:
    with pytest.raises(InvalidConfigError, match="names no partition"):
        partitions_in(given)


def test_offsets_are_taken_by_topic_or_by_partition() -> None:
    wanted = {A: 5, B: -2}
    assert offsets_in({"orders": {0: 5, "1": -2}}) == wanted
    assert offsets_in({A: 5, ("orders", 1): -2}) == wanted
    assert offsets_in({"orders-0": 5, "orders-1": -2}) == wanted
    assert offsets_in("earliest") == "earliest"
    with pytest.raises(InvalidConfigError, match="'5' is no offset"):
        offsets_in({A: "5"})


def test_dir_shows_the_interface_alone() -> None:
    assert set(dir(kafkalog)) == set(kafkalog.__all__)
    assert {"TopicPartition", "read_records", "sql"} <= set(dir(kafkalog))
    assert all(getattr(kafkalog, name) is not None for name in dir(kafkalog))
