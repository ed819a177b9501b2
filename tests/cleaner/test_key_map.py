from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena, open_record_areas
from kafkalog.cleaner.key_map import KeyMap, map_sources
from kafkalog.errors import CorruptRecordError
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.kernels.hash_keys import KEYLESS, SUPERSEDED
from kafkalog.log.aborted_transactions import AbortedTransactions
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_file import ChunkBuffers
from tests.batches.logs import rows_of
from tests.kernels.compaction import expected_superseded
from tests.support.log_builder import LogBuilder

NONE_ABORTED = AbortedTransactions((), 0)


def add(key_map: KeyMap, records: list[Record], per_batch: int, codec: int = 0) -> None:
    batches = [records[i : i + per_batch] for i in range(0, len(records), per_batch)]
    log = b"".join(pack_batch(batch, codec=codec) for batch in batches)
    rows = rows_of(log)
    areas = open_record_areas(np.frombuffer(log, np.uint8), 0, rows, Arena())
    key_map.add(rows, areas, "x.log")


@given(
    st.lists(st.none() | st.integers(0, 3000), min_size=1, max_size=30),
    st.integers(1, 4000),
    st.integers(0, 4000),
    st.sampled_from([0, 10, 100_000]),
    st.sampled_from([0, 4]),
)
@settings(max_examples=25, deadline=None)
def test_flags_are_those_of_a_dict_however_many_were_expected(
    pattern: list[int | None], count: int, first_dirty: int, expected: int, codec: int
) -> None:
    numbers = [pattern[i % len(pattern)] for i in range(count)]
    keys = [None if n is None else b"%d" % (n + i % 7 * 1000) for i, n in enumerate(numbers)]
    records = [Record(2 * i, 0, key, b"v") for i, key in enumerate(keys)]
    key_map = KeyMap(first_dirty, expected)
    third = max(1, count // 3)
    for start in range(0, count, third):
        add(key_map, records[start : start + third], 170, codec)
    found = key_map.superseded()
    gone, distinct = expected_superseded(keys, range(0, 2 * count, 2), first_dirty)
    assert [bool(flag & SUPERSEDED) for flag in found.flags] == gone
    assert [bool(flag & KEYLESS) for flag in found.flags] == [key is None for key in keys]
    assert found.distinct_keys == distinct


def test_many_more_records_than_expected_find_room() -> None:
    count = 60_000
    keys = [b"%d" % (i * 7919 % 20_000) for i in range(count)]
    key_map = KeyMap(0, 1)
    for start in range(0, count, 15_000):
        records = [Record(i, 0, keys[i], None) for i in range(start, start + 15_000)]
        add(key_map, records, 1500)
    found = key_map.superseded()
    gone, distinct = expected_superseded(keys, range(count), 0)
    assert [bool(flag & SUPERSEDED) for flag in found.flags] == gone
    assert found.distinct_keys == distinct == 20_000


def test_nothing_is_nothing() -> None:
    found = KeyMap(0, 0).superseded()
    assert (found.flags.size, found.distinct_keys) == (0, 0)
    assert map_sources([], 0, 0, NONE_ABORTED, ChunkBuffers()).flags.size == 0


def test_every_map_has_a_secret_of_its_own() -> None:
    one, other = KeyMap(0, 1), KeyMap(0, 1)
    assert (one._k0, one._k1) != (other._k0, other._k1)


def test_a_damaged_record_is_named_with_its_place() -> None:
    good = pack_batch([Record(0, 0, b"k", b"v")])
    bad = bytearray(pack_batch([Record(1, 0, b"k", b"v"), Record(2, 0, b"k", b"v")]))
    bad[61 + 9] = 0x70  # the second record is longer than the batch
    log = good + bytes(bad)
    rows = rows_of(log)
    areas = open_record_areas(np.frombuffer(log, np.uint8), 0, rows, Arena())
    with pytest.raises(CorruptRecordError, match="in record 1 of the batch") as caught:
        KeyMap(0, 1).add(rows, areas, "x.log")
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
        map_sources(partition.segments[:2], 0, 3, NONE_ABORTED, ChunkBuffers())
    assert caught.value.path == str(source)
