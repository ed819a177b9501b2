"""Entries of keys by bucket: a counting sort, against the sort of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kafkalog.kernels.key_entries import ENTRY_WORDS, key_entries
from kafkalog.kernels.record_facts import CONTROL, KEYLESS, RECORD_FACT, TOMBSTONE


def random_rows(seed: int, count: int) -> tuple[NDArray[np.void], list[NDArray[np.uint16]]]:
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, RECORD_FACT)
    rows["offset"] = np.cumsum(rng.integers(1, 5, count))
    for name in ("key_first", "key_second", "record"):
        rows[name] = rng.integers(0, 2**64, count, np.uint64)
    rows["producer_id"] = rng.integers(-1, 4, count)
    rows["flags"] = rng.choice([0, KEYLESS, TOMBSTONE, CONTROL, 1 << 20], count)
    return rows, [rng.integers(0, 2**16, count).astype(np.uint16) for _ in range(3)]


def by_numpy(
    rows: NDArray[np.void], masks: list[NDArray[np.uint16]], bits: int
) -> tuple[list[int], NDArray[np.uint64]]:
    keyed = (rows["flags"] & (KEYLESS | CONTROL)) == 0
    present, absent, hidden = (mask[keyed].astype(np.uint64) for mask in masks)
    rows = rows[keyed]
    flags = rows["flags"].astype(np.uint64) & np.uint64(0xFFFF)
    word = present | absent << np.uint64(16) | hidden << np.uint64(32) | flags << np.uint64(48)
    columns = [rows["key_first"], rows["key_second"], rows["offset"], rows["producer_id"], word]
    entries = np.stack([column.astype(np.uint64) for column in columns], axis=1)
    bucket = entries[:, 0] >> np.uint64(64 - bits) if bits else np.zeros(len(entries), np.uint64)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(2**bits + 1, dtype=np.uint64))
    return edges.tolist(), entries[order]


@pytest.mark.parametrize("bits", [0, 1, 5, 8])
@pytest.mark.parametrize("count", [0, 1, 700])
def test_entries_are_those_of_numpy(bits: int, count: int) -> None:
    rows, masks = random_rows(bits * 1000 + count, count)
    starts, entries = np.zeros(2**bits + 1, np.int64), np.empty((count, ENTRY_WORDS), np.uint64)
    found = key_entries(rows, *masks, bits, starts, entries)
    edges, wanted = by_numpy(rows, masks, bits)
    assert found == len(wanted)
    assert starts.tolist() == edges
    assert np.array_equal(entries[:found], wanted)
