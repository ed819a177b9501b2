"""The end of an index file, against the parser that reads all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.offset_index import (
    OFFSET_INDEX_ENTRY_BYTES,
    pack_offset_index,
    parse_offset_index,
)
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, pack_time_index, parse_time_index
from kafkalog.log.index_tail import IndexTail, read_index_tail


@pytest.mark.parametrize("entries", [0, 1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("padding", [0, 1, 2, 5, 1021])
@pytest.mark.parametrize("torn_bytes", [0, 3])
def test_tail_of_an_offset_index_agrees_with_the_parser(
    tmp_path: Path, entries: int, padding: int, torn_bytes: int
) -> None:
    packed = pack_offset_index(
        [100 + 5 * number for number in range(1, entries + 1)],
        [70 * number for number in range(1, entries + 1)],
        100,
    )
    data = packed + bytes(OFFSET_INDEX_ENTRY_BYTES * padding + torn_bytes)
    path = tmp_path / "00000000000000000100.index"
    path.write_bytes(data)
    tail = read_index_tail(path, OFFSET_INDEX_ENTRY_BYTES)
    index = parse_offset_index(data, 100)
    assert tail.valid_bytes == index.valid_bytes == len(packed)
    assert tail.last_entry == packed[-OFFSET_INDEX_ENTRY_BYTES:]


@pytest.mark.parametrize("first_timestamp", [0, 1_700_000_000_000])
@pytest.mark.parametrize("entries", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("padding", [0, 1, 2, 9])
def test_tail_of_a_time_index_agrees_with_the_parser(
    tmp_path: Path, first_timestamp: int, entries: int, padding: int
) -> None:
    timestamps = [first_timestamp + number for number in range(entries)]
    data = pack_time_index(timestamps, [100 + number for number in range(entries)], 100)
    data += bytes(TIME_INDEX_ENTRY_BYTES * padding)
    path = tmp_path / "00000000000000000100.timeindex"
    path.write_bytes(data)
    tail = read_index_tail(path, TIME_INDEX_ENTRY_BYTES)
    index = parse_time_index(data, 100)
    assert tail.valid_bytes == index.valid_bytes
    assert parse_time_index(tail.last_entry, 100).last_timestamp == index.last_timestamp


def test_a_missing_index_has_no_entries(tmp_path: Path) -> None:
    assert read_index_tail(tmp_path / "none.index", OFFSET_INDEX_ENTRY_BYTES) == IndexTail()
