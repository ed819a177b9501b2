"""The format's test vectors and edge cases (edge_cases.toml) against the tests there are, and those
cases that need a log.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kafkalog
from kafkalog.format.file_names import offset_index_file_name, transaction_index_file_name
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.log_dir import open_log_dir
from tests.support.log_builder import LogBuilder
from tests.test_conformance import functions_of, named_tests

TABLE: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "edge_cases.toml").read_text()
)
COUNTS = {"vector": 9, "case": 30}
LATER = {"coordinator topics"}
ITEMS = [(kind, number) for kind, items in TABLE.items() for number in items]


def test_every_item_is_there_once() -> None:
    assert list(TABLE) == list(COUNTS)
    for kind, count in COUNTS.items():
        assert list(TABLE[kind]) == [str(number) for number in range(1, count + 1)]


@pytest.mark.parametrize(("kind", "number"), ITEMS)
def test_item_names_tests_that_exist_or_what_it_waits_for(kind: str, number: str) -> None:
    item = TABLE[kind][number]
    assert len(item.keys() & {"test", "later"}) == 1
    assert item.get("later") in {None, *LATER}
    for test in named_tests(item):
        path, _, function = test.partition("::")
        assert function in functions_of(path), f"{test} does not exist"


# -- cases that need a log -------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    """Twenty batches of two records each, some 2 KB."""
    log = LogBuilder(tmp_path, "orders-0").segment()
    for number in range(20):
        log.batch((f"k{number}", "v" * 20), (f"l{number}", "w" * 20))
    return log


def found_offsets(path: Path, start: int = 0) -> list[int]:
    partition = open_log_dir(path).partitions[0].topic_partition
    stream = kafkalog.read_records(path, columns=["offset"], starting_offsets={partition: start})
    offsets: list[int] = stream.read_all()["offset"].to_pylist()
    return offsets


def test_an_empty_last_batch_tells_the_log_end(log: LogBuilder) -> None:
    log.append(pack_batch([], base_offset=40, last_offset=49, producer_id=7, producer_epoch=0))
    (partition,) = open_log_dir(log.write()).partitions
    assert partition.log_end_offset == 50


def test_the_log_end_comes_from_the_header_not_from_the_records(log: LogBuilder) -> None:
    log.append(pack_batch([Record(40, 1, b"k", b"v")], base_offset=40, last_offset=45))
    path = log.write()
    (partition,) = open_log_dir(path).partitions
    assert partition.log_end_offset == 46
    assert found_offsets(path)[-1] == 40


def test_an_index_of_no_bytes_loses_nothing(log: LogBuilder) -> None:
    path = log.write()
    (path / offset_index_file_name(0)).write_bytes(b"")
    assert open_log_dir(path).partitions[0].log_end_offset == 40
    assert found_offsets(path, 31) == list(range(31, 40))


@pytest.mark.parametrize("writer", ["first offset", "last offset", "last offset of the whole set"])
def test_index_entries_of_every_writer_lead_to_the_same_records(
    log: LogBuilder, writer: str
) -> None:
    """Up to 1.1 the base offset, then the last one of the batch, or of all that was appended."""
    path = log.write()
    batches = [log.segments[0].batches[number] for number in (5, 11, 17)]
    shift = {"first offset": 0, "last offset": 1, "last offset of the whole set": 3}[writer]
    offsets = np.array([header.base_offset + shift for _, header in batches])
    positions = np.array([position for position, _ in batches])
    index = path / offset_index_file_name(0)
    index.write_bytes(pack_offset_index(offsets, positions, 0))
    (row,) = kafkalog.read_view("segments", path).to_pylist()
    assert row["indexState"] == "whole"
    assert open_log_dir(path).partitions[0].log_end_offset == 40
    for start in (0, 11, 23, 35, 39):
        assert found_offsets(path, start) == list(range(start, 40))


def test_without_a_transaction_index_nothing_is_aborted(log: LogBuilder) -> None:
    path = log.write()
    assert not (path / transaction_index_file_name(0)).exists()
    (partition,) = open_log_dir(path).partitions
    aborted = AbortedTransactions(partition.segments, partition.log_start_offset)
    assert aborted.is_empty
    assert aborted.between(0, 40) == []
