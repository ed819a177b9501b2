from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.cleaning.key_map import KeyMap
from kafkalog.cleaning.source_map import SpilledRuns, map_sources
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.kernels.hash_keys import KEYLESS, SUPERSEDED
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, MemoryBudget, memory_budget
from tests.batches.logs import rows_of
from tests.kernels.compaction import expected_superseded
from tests.support.log_builder import LogBuilder

NONE_ABORTED = AbortedTransactions((), 0)
# A pool of two blocks a bucket, and few keys at once: everything is spilled, and split.
SMALL = MemoryBudget(
    pool_bytes=0,
    finished_bytes=0,
    max_batch_bytes=MAX_BATCH_BYTES,
    max_compared_bytes=MAX_BATCH_BYTES,
    kept_bytes=500,
    most_keys=40,
    window_records=1600,
)
LARGE = memory_budget(DEFAULT_MEMORY_BYTES)
BUDGETS = {"in memory": LARGE, "spilled": SMALL}


def add(key_map: KeyMap, records: list[Record], per_batch: int, codec: int = 0) -> None:
    batches = [records[i : i + per_batch] for i in range(0, len(records), per_batch)]
    log = b"".join(pack_batch(batch, codec=codec) for batch in batches)
    rows = rows_of(log)
    areas = open_record_areas(np.frombuffer(log, np.uint8), 0, rows, Arena())
    key_map.add(rows, areas, "x.log")


def flags_of(
    parts: Iterable[list[Record]],
    first_dirty: int,
    budget: MemoryBudget,
    *,
    bits: int = 1,
    per_batch: int = 170,
    codec: int = 0,
) -> tuple[list[int], int, int]:
    """(flags, distinct keys, runs) of these records."""
    runs = SpilledRuns(budget)
    key_map = KeyMap(first_dirty, bits, budget, runs)
    for records in parts:
        add(key_map, records, per_batch, codec)
    found = runs.record_flags(key_map)
    flags: list[int] = []
    while found.left:
        flags += found.take(min(found.left, 333)).tolist()
    return flags, found.distinct_keys, key_map.runs


@given(
    st.lists(st.none() | st.integers(0, 3000), min_size=1, max_size=30),
    st.integers(1, 6000),
    st.integers(0, 6000),
    st.sampled_from([1, 3]),
    st.sampled_from([0, 4]),
    st.sampled_from(list(BUDGETS)),
)
@settings(max_examples=25)
def test_flags_are_those_of_a_dict_in_memory_and_spilled(
    pattern: list[int | None], count: int, first_dirty: int, bits: int, codec: int, budget: str
) -> None:
    numbers = [pattern[i % len(pattern)] for i in range(count)]
    keys = [None if n is None else b"%d" % (n + i % 7 * 1000) for i, n in enumerate(numbers)]
    records = [Record(2 * i, 0, key, b"v") for i, key in enumerate(keys)]
    third = max(1, count // 3)
    parts = [records[start : start + third] for start in range(0, count, third)]
    found, keys_count, _ = flags_of(parts, first_dirty, BUDGETS[budget], bits=bits, codec=codec)
    gone, distinct = expected_superseded(keys, range(0, 2 * count, 2), first_dirty)
    assert [bool(flag & SUPERSEDED) for flag in found] == gone
    assert [bool(flag & KEYLESS) for flag in found] == [key is None for key in keys]
    assert keys_count == distinct


@pytest.mark.parametrize("first_dirty", [0, 25_000])
def test_many_runs_of_few_keys_and_of_many_give_the_same_answer(first_dirty: int) -> None:
    count = 60_000
    keys = [b"%d" % (i * 7919 % 20_000) if i % 3 else b"hot" for i in range(count)]
    records = [Record(i, 0, keys[i], None) for i in range(count)]
    parts = [records[start : start + 15_000] for start in range(0, count, 15_000)]
    gone, distinct = expected_superseded(keys, range(count), first_dirty)
    spilled = replace(SMALL, most_keys=4000, window_records=24_000)
    for name, budget in {**BUDGETS, "spilled": spilled}.items():
        # A batch of 15,000 records is larger than the small pool: runs end in the middle of one.
        found, keys_count, runs = flags_of(parts, first_dirty, budget, per_batch=15_000)
        assert [bool(flag & SUPERSEDED) for flag in found] == gone, name
        assert keys_count == distinct, name
        assert (runs > 20) == (name == "spilled"), (name, runs)


def test_nothing_is_nothing() -> None:
    assert flags_of([], 0, LARGE) == ([], 0, 1)
    assert map_sources([], 0, 0, NONE_ABORTED, ChunkBuffers(), LARGE).left == 0


def test_every_map_has_a_secret_of_its_own() -> None:
    runs = SpilledRuns(SMALL)
    one, other = KeyMap(0, 1, SMALL, runs), KeyMap(0, 1, SMALL, runs)
    assert (one._hasher._k0, one._hasher._k1) != (other._hasher._k0, other._hasher._k1)


def test_a_damaged_record_is_named_with_its_place() -> None:
    good = pack_batch([Record(0, 0, b"k", b"v")])
    bad = bytearray(pack_batch([Record(1, 0, b"k", b"v"), Record(2, 0, b"k", b"v")]))
    bad[61 + 9] = 0x70  # the second record is longer than the batch
    log = good + bytes(bad)
    rows = rows_of(log)
    areas = open_record_areas(np.frombuffer(log, np.uint8), 0, rows, Arena())
    with pytest.raises(CorruptRecordError, match="in record 1 of the batch") as caught:
        KeyMap(0, 1, SMALL, SpilledRuns(SMALL)).add(rows, areas, "x.log")
    error = caught.value
    assert (error.path, error.position, error.offset) == ("x.log", len(good), 1)


@pytest.mark.parametrize("damage", ["crc", "tail"])
def test_sources_are_read_with_their_checksums_to_their_end(log_dir: Path, damage: str) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1")).segment().batch(("a", "2"), ("b", "1")).segment()
    path = log.write()
    source = path / f"{1:020d}.log"
    data = bytearray(source.read_bytes())
    if damage == "crc":
        data[-1] ^= 1
    else:
        data += data[:70]
    source.write_bytes(data)
    (partition,) = open_log_dir(str(path)).partitions
    expected = "CRC" if damage == "crc" else "70 bytes after the last whole batch"
    with pytest.raises(CorruptRecordError, match=expected) as caught:
        map_sources(partition.segments[:2], 0, 3, NONE_ABORTED, ChunkBuffers(), LARGE)
    assert caught.value.path == str(source)
