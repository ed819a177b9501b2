from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW, HEADER, field_position, pack_batch, parse_header
from kafkalog.kernels import status
from kafkalog.kernels.scan_batches import scan_batches
from tests.format.vectors import SPEC_BATCH, SPEC_COMMIT_BATCH, SPEC_EMPTY_BATCH
from tests.kernels.arrays import read_only

BATCHES = [
    SPEC_BATCH,
    pack_batch(
        [Record(300 + i, 5000 + i, b"k", b"v" * i) for i in range(9)],
        codec=4,
        partition_leader_epoch=7,
        producer_id=2**40,
        producer_epoch=12,
        base_sequence=2**31 - 1,
        last_offset=900,
    ),
    SPEC_COMMIT_BATCH,
    SPEC_EMPTY_BATCH,
    pack_batch([Record(2**62, -1, None, b"x")], max_timestamp=-1),
]
LOG = b"".join(BATCHES)
EDGES = np.cumsum([0] + [len(batch) for batch in BATCHES]).tolist()


def scan(
    data: bytes,
    pos: int = 0,
    end: int | None = None,
    file_end: int | None = None,
    file_position: int = 0,
    room: int = 20,
) -> tuple[NDArray[np.void], int, int]:
    rows = np.zeros(room + 1, BATCH_ROW)
    end = len(data) if end is None else end
    file_end = len(data) if file_end is None else file_end
    count, found, next_pos = scan_batches(
        read_only(data), pos, end, file_end, file_position, rows[:room]
    )
    assert not rows[room].tolist()[0], "the row behind the room is untouched"
    return rows[:count], found, int(next_pos)


def test_rows_are_what_the_plain_codec_parses() -> None:
    rows, found, next_pos = scan(LOG, file_position=10_000)
    assert (found, next_pos) == (status.OK, len(LOG))
    assert len(rows) == len(BATCHES)
    for row, position in zip(rows, EDGES, strict=False):
        header = parse_header(LOG, position)
        assert row["position"] == position + 10_000
        assert row["size_in_bytes"] == header.batch_length + 12
        assert row["last_offset"] == header.base_offset + header.last_offset_delta
        for name in set(BATCH_ROW.names or ()) & set(HEADER.names or ()):
            assert row[name] == getattr(header, name), name


@given(st.binary(min_size=61, max_size=61))
def test_any_sound_header_gives_its_fields(header: bytes) -> None:
    data = header[:8] + struct.pack(">i", 49) + header[12:16] + b"\x02" + header[17:57]
    data += struct.pack(">i", struct.unpack(">i", header[57:])[0] & 0x7FFF_FFFF)
    with np.errstate(over="ignore"):
        rows, found, _ = scan(data)
    assert found == status.OK
    disk = np.frombuffer(data, HEADER)[0]
    for name in set(BATCH_ROW.names or ()) & set(HEADER.names or ()):
        assert rows[0][name] == disk[name], name


def test_every_cut_is_a_torn_tail_at_the_last_whole_batch() -> None:
    for size in range(len(LOG)):
        rows, found, next_pos = scan(LOG[:size])
        whole = max(edge for edge in EDGES if edge <= size)
        assert next_pos == whole
        assert len(rows) == EDGES.index(whole)
        assert found == (status.OK if whole == size else status.NEED_MORE)


@given(st.lists(st.integers(0, len(LOG)), min_size=1, max_size=6))
def test_windows_of_any_size_find_the_same_batches(cuts: list[int]) -> None:
    found_rows, pos = [], 0
    for end in [*sorted(cuts), len(LOG)]:
        if pos >= end:
            continue
        # Nothing behind the window is in the buffer.
        rows, found, pos = scan(LOG[:end], pos, end, len(LOG))
        assert found == status.OK
        found_rows += rows.tolist()
    assert found_rows == scan(LOG)[0].tolist()


@pytest.mark.parametrize("in_hand", [0, 1, 16, 17, 18, 60])
def test_a_header_cut_by_the_window_waits_for_the_next(in_hand: int) -> None:
    rows, found, next_pos = scan(SPEC_BATCH[:in_hand], file_end=len(SPEC_BATCH))
    assert (len(rows), found, next_pos) == (0, status.OK, 0)


def test_a_body_need_not_be_in_the_buffer() -> None:
    rows, found, next_pos = scan(SPEC_BATCH[:61], file_end=10**6)
    assert (len(rows), found, next_pos) == (1, status.OK, len(SPEC_BATCH))


def test_full_rows_say_where_to_go_on() -> None:
    rows, found, next_pos = scan(LOG, room=2)
    assert (len(rows), found, next_pos) == (2, status.OUTPUT_FULL, EDGES[2])


@pytest.mark.parametrize("zeros", [18, 100, 5000])
def test_a_zero_tail_is_its_own_end(zeros: int) -> None:
    rows, found, next_pos = scan(LOG + bytes(zeros))
    assert (len(rows), found, next_pos) == (len(BATCHES), status.ZERO_TAIL, len(LOG))
    assert scan(LOG + bytes(zeros) + b"\x01")[1] == status.CORRUPT_LENGTH


@pytest.mark.parametrize("size", range(1, 18))
def test_seventeen_bytes_or_fewer_are_a_torn_tail(size: int) -> None:
    for tail in (b"\x00", b"\xff"):
        assert scan(LOG + tail * size)[1:] == (status.NEED_MORE, len(LOG))


def forge(name: str, value: int) -> bytes:
    position, kind = field_position(name), HEADER[name]
    data = bytearray(LOG)
    at = EDGES[1] + position
    data[at : at + kind.itemsize] = value.to_bytes(kind.itemsize, "big", signed=True)
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("batch_length", -1, status.CORRUPT_LENGTH),
        ("batch_length", -(2**31), status.CORRUPT_LENGTH),
        ("batch_length", 0, status.CORRUPT_LENGTH),
        ("batch_length", 13, status.CORRUPT_LENGTH),
        ("batch_length", 14, status.CORRUPT_LENGTH),
        ("batch_length", 48, status.CORRUPT_LENGTH),
        ("batch_length", 2**31 - 1, status.NEED_MORE),
        ("magic", 3, status.UNSUPPORTED_MAGIC),
        ("magic", -1, status.UNSUPPORTED_MAGIC),
        ("records_count", -1, status.NEGATIVE_COUNT),
        ("records_count", -(2**31), status.NEGATIVE_COUNT),
    ],
)
def test_a_forged_header_stops_the_walk_in_front_of_it(name: str, value: int, found: int) -> None:
    rows, answer, next_pos = scan(forge(name, value))
    assert (len(rows), answer, next_pos) == (1, found, EDGES[1])


def test_a_legacy_entry_shorter_than_its_magic_allows_is_corrupt() -> None:
    for magic, smallest in ((0, 14), (1, 22)):
        entry = struct.pack(">qiib", 5, smallest, 0, magic) + bytes(smallest - 5)
        rows, found, _ = scan(entry)
        assert (found, rows["last_offset"].tolist()) == (status.OK, [5])
        short = struct.pack(">qiib", 5, smallest - 1, 0, magic) + bytes(smallest - 6)
        assert scan(short)[1:] == (status.CORRUPT_LENGTH, 0)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_garbage_ends_with_a_status(data: bytes) -> None:
    with np.errstate(over="ignore"):
        rows, found, next_pos = scan(data)
    assert found in status.STATUS_TEXT
    assert 0 <= next_pos <= len(data)
    assert rows["size_in_bytes"].sum() == next_pos


def test_mutated_logs_end_with_a_status() -> None:
    rng = random.Random(3)
    for _ in range(1000):
        data = bytearray(LOG)
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        with np.errstate(over="ignore"):
            rows, found, next_pos = scan(bytes(data))
        assert found in status.STATUS_TEXT
        assert rows["size_in_bytes"].sum() == next_pos <= len(data)
