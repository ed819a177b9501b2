"""Tasks decoded by threads: order, errors, bounds, and that nothing goes on when nobody reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from kafkalog.duckdb.decoding import decode_in_order


def batch(task: int, number: int, size: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"task": [task] * size, "number": [number] * size})


def rows(batches: Iterator[pa.RecordBatch]) -> list[tuple[int, int]]:
    return [(each["task"][0].as_py(), each["number"][0].as_py()) for each in batches]


def decoding_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("kafkalog-decoding")]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("ready_bytes", [1, 1000, 1 << 20])
def test_batches_come_in_the_order_of_the_tasks(threads: int, ready_bytes: int) -> None:
    """However long each task takes, and however little may lie ready."""

    def decode(task: int) -> Iterator[pa.RecordBatch]:
        for number in range(task % 4):
            time.sleep(0.001 * ((task * 7 + number) % 3))
            yield batch(task, number)

    found = rows(decode_in_order(range(30), decode, threads, ready_bytes))
    assert found == [(task, number) for task in range(30) for number in range(task % 4)]
    assert decoding_threads() == []


@pytest.mark.parametrize("threads", [1, 3])
def test_error_comes_behind_the_batches_before_it(threads: int) -> None:
    def decode(task: int) -> Iterator[pa.RecordBatch]:
        yield batch(task, 0)
        if task == 4:
            raise ValueError("task 4")

    found: list[pa.RecordBatch] = []
    with pytest.raises(ValueError, match="task 4"):
        found.extend(decode_in_order(range(9), decode, threads))
    assert rows(iter(found)) == [(task, 0) for task in range(5)]
    assert decoding_threads() == []


def test_reader_that_leaves_ends_the_threads() -> None:
    begun = []

    def decode(task: int) -> Iterator[pa.RecordBatch]:
        begun.append(task)
        for number in range(1_000_000):
            yield batch(task, number)

    batches = decode_in_order(range(50), decode, 3)
    next(batches)
    assert len(decoding_threads()) == 3
    batches.close()  # type: ignore[attr-defined] # a generator
    assert decoding_threads() == []
    assert len(begun) <= 3


def test_what_lies_ready_is_bounded() -> None:
    """Though the reader takes one batch only."""
    made, size = [], batch(0, 0, 1000).nbytes
    made_all = threading.Event()

    def decode(task: int) -> Iterator[pa.RecordBatch]:
        for number in range(1000):
            made.append(task)
            yield batch(task, number, 1000)
        made_all.set()

    batches = decode_in_order(range(8), decode, 4, ready_bytes=20 * size)
    next(batches)
    assert not made_all.wait(0.3)
    # Each thread has one batch in hand beside those that lie ready.
    assert len(made) <= 20 + 20 // 8 + 1 + 4 + 1
    batches.close()  # type: ignore[attr-defined] # a generator
