"""Headers read one by one from a file against where its batches are known to be."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from kafkalog.format.constants import RECORD_BATCH_OVERHEAD as HEADER
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.native.batch_headers import read_headers

BATCHES = [pack_batch([Record(i, 5, b"k", bytes(100 * i))]) for i in range(4)]
POSITIONS = [0, *np.cumsum([len(batch) for batch in BATCHES]).tolist()]


def hop(
    path: Path, data: bytes, *, end: int | None = None, most: int = 10, first: int = HEADER
) -> tuple[list[int], int]:
    """(positions, where it stopped) of the batches from the file's start on, of each of which its
    `first` bytes are read.
    """
    path.write_bytes(data)
    headers, positions = np.zeros(most * first, np.uint8), np.zeros(most, np.int64)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        last = len(data) if end is None else end
        count, stopped = read_headers(descriptor, 0, last, headers, positions)
    finally:
        os.close(descriptor)
    found = positions[:count].tolist()
    for b, position in enumerate(found):
        read = data[position : position + first]
        assert headers[b * first :][: len(read)].tobytes() == read
    return found, stopped


def test_whole_batches_are_hopped_over(tmp_path: Path) -> None:
    data = b"".join(BATCHES)
    assert hop(tmp_path / "log", data) == (POSITIONS[:-1], POSITIONS[-1])
    assert hop(tmp_path / "log", data, most=2) == (POSITIONS[:2], POSITIONS[2])
    assert hop(tmp_path / "log", data, end=POSITIONS[2] + 1) == (POSITIONS[:2], POSITIONS[2])
    assert hop(tmp_path / "log", data, first=100) == (POSITIONS[:-1], POSITIONS[-1])
    assert hop(tmp_path / "log", b"") == ([], 0)


@pytest.mark.parametrize(
    ("at", "bad"),
    [
        (8, b"\xff\xff\xff\xff"),
        (8, b"\0\0\0\x10"),
        (8, b"\x7f\xff\xff\xff"),
        (16, b"\1"),
        (57, b"\xff"),
    ],
    ids=["negative length", "short length", "length past the end", "magic 1", "negative count"],
)
def test_it_stops_in_front_of_what_is_not_a_sound_batch(
    tmp_path: Path, at: int, bad: bytes
) -> None:
    data = bytearray(b"".join(BATCHES))
    place = POSITIONS[2] + at
    data[place : place + len(bad)] = bad
    assert hop(tmp_path / "log", bytes(data)) == (POSITIONS[:2], POSITIONS[2])


def test_it_stops_at_a_torn_tail(tmp_path: Path) -> None:
    for cut in (1, 30, HEADER - 1, HEADER, len(BATCHES[3]) - 1):
        data = b"".join(BATCHES[:3]) + BATCHES[3][:cut]
        assert hop(tmp_path / "log", data) == (POSITIONS[:3], POSITIONS[3])


def test_headers_without_room_are_an_index_error() -> None:
    with pytest.raises(IndexError, match="headers of 2 batches"):
        read_headers(0, 0, 1000, np.zeros(2 * HEADER - 1, np.uint8), np.zeros(2, np.int64))
