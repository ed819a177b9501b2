"""Entries packed by a kernel against Python's sorting and packing."""

from __future__ import annotations

import itertools
import random
import struct

import numpy as np
import pytest

from kafkalog.kernels.entry_bytes import pack_entries

WORDS = 3
Entry = tuple[bytes, list[int]]


def packed(directories: list[list[Entry]]) -> list[bytes]:
    """By the kernel."""
    entries = [entry for directory in directories for entry in directory]
    names = np.frombuffer(b"".join(name for name, _ in entries), np.uint8)
    name_ends = np.cumsum([len(name) for name, _ in entries], dtype=np.int64)
    numbers = np.array([number for _, own in entries for number in own], np.int64)
    ends = np.cumsum([len(directory) for directory in directories], dtype=np.int64)
    order, out_ends = np.empty(len(entries), np.int64), np.empty(len(directories), np.int64)
    out = np.empty(names.size + len(entries) + 8 * numbers.size, np.uint8)
    pack_entries(names, name_ends, numbers, ends, order, out, out_ends)
    edges = [0, *out_ends.tolist()]
    assert edges[-1] == out.size
    return [out[a:b].tobytes() for a, b in itertools.pairwise(edges)]


def by_python(directory: list[Entry]) -> bytes:
    return b"".join(
        name + b"\0" + struct.pack(f"<{WORDS}q", *numbers) for name, numbers in sorted(directory)
    )


def random_directory(rnd: random.Random, size: int) -> list[Entry]:
    """Names that are beginnings of others among them, and bytes above 127."""
    alphabet = rnd.choice((b"ab", b"0123456789", bytes(range(1, 256))))
    names = {bytes(rnd.choices(alphabet, k=rnd.randint(1, 30))) for _ in range(size)}
    numbers = [-1, 0, 1, 2**63 - 1, -(2**63), rnd.getrandbits(62)]
    entries = [(name, rnd.choices(numbers, k=WORDS)) for name in sorted(names)]
    rnd.shuffle(entries)
    return entries


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_packed_in_the_order_of_their_names(seed: int) -> None:
    rnd = random.Random(seed)
    directories = [random_directory(rnd, rnd.choice((0, 1, 2, 5, 17, 90))) for _ in range(9)]
    assert packed(directories) == [by_python(directory) for directory in directories]


def test_names_that_count_down_are_sorted() -> None:
    names = [f"{number:020}.log".encode() for number in range(200)]
    entries = [(name, [number] * WORDS) for number, name in enumerate(names)]
    assert packed([entries[::-1], [], entries]) == [by_python(entries), b"", by_python(entries)]


def test_no_directories_are_no_bytes() -> None:
    assert packed([]) == []
    assert packed([[], []]) == [b"", b""]
