"""The search for a batch behind bytes that nothing leads over."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.next_batch import Bounds, find_next_batch, work_for
from tests.support.packing import pack_legacy_entries

RECORD = Record(100, 5, b"key", b"value")
BATCHES = {
    "magic 2": pack_batch([RECORD]),
    "compressed": pack_batch([RECORD] * 1, codec=4),
    "empty": pack_batch([], base_offset=100, last_offset=103),
    "magic 1": pack_legacy_entries([RECORD], magic=1, codec=0),
    "magic 0 wrapper": pack_legacy_entries([RECORD], magic=0, codec=1),
}


def search(path: Path, data: bytes, last_offset: int = 50, end_offset: int = 1000) -> int | None:
    path.write_bytes(data)
    bounds = Bounds(0, len(data), last_offset, end_offset)
    return find_next_batch(str(path), bounds, work_for(len(data)))[0]


@pytest.mark.parametrize("what", BATCHES)
@pytest.mark.parametrize("before", [0, 1, 16, 61, 32 * 1024 - 30, 200_000])
def test_a_batch_is_found_wherever_a_window_ends(tmp_path: Path, what: str, before: int) -> None:
    garbage = random.Random(before).randbytes(before)
    assert search(tmp_path / "log", garbage + BATCHES[what] + b"\0" * 40) == before


@pytest.mark.parametrize("what", BATCHES)
def test_what_is_not_whole_right_and_in_place_is_no_batch(tmp_path: Path, what: str) -> None:
    path, batch = tmp_path / "log", BATCHES[what]
    assert search(path, b"x" * 9 + batch) == 9
    assert search(path, b"x" * 9 + batch[:-1]) is None
    assert search(path, b"x" * 9 + batch[:-1] + bytes([batch[-1] ^ 1])) is None
    assert search(path, b"x" * 9 + batch, last_offset=100) is None
    assert search(path, b"x" * 9 + batch, end_offset=100) is None
    assert search(path, bytes(100_000)) is None


@pytest.mark.parametrize("end_offset", [2**63 - 1, 2**63, 2**63 + 2**31])
def test_offsets_up_to_the_highest_fit(tmp_path: Path, end_offset: int) -> None:
    """The end may be beyond 64 bits: a file may have the name of any offset."""
    path, highest = tmp_path / "log", 2**63 - 2
    batch = pack_batch([Record(highest, 5, b"key", b"value")])
    assert search(path, b"x" * 9 + batch, highest - 1, end_offset) == 9
    assert search(path, b"x" * 9 + batch, highest, end_offset) is None


def test_the_search_gives_up_when_it_has_cost_enough(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lying = bytearray(pack_batch([RECORD]))
    lying[-1] ^= 1
    path.write_bytes(bytes(lying) * 50 + BATCHES["magic 2"])
    bounds = Bounds(0, path.stat().st_size, 50, 1000)
    found, left = find_next_batch(str(path), bounds, work_for(path.stat().st_size))
    assert found == 50 * len(lying)
    assert left == work_for(path.stat().st_size) - 50 * len(lying)
    assert find_next_batch(str(path), bounds, 20 * len(lying))[0] is None
