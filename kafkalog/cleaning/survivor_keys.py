"""Which records a later one of their key supersedes, for `--verify deep`: by sorting, with none of
the kernels that decide in a round (those here are `kernels.survivor_keys`).

Keys are hashed to 128 bits by a random word for each byte's place and value (multilinear hashing),
long ones by BLAKE2, and written to local disk by bucket. A bucket is sorted by hash and record; the
last mapped record of a hash supersedes those before it. The answer is a bit a record, on disk past
a bound, so memory does not grow with the log.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafkalog.columns.arrow_arrays import binary_spans, bool_array, valid_rows
from kafkalog.kernels.status import OK, STATUS_TEXT
from kafkalog.kernels.survivor_keys import (
    HASHES_MIXED,
    WORDS,
    mark_below_latest,
    multilinear_hashes,
)
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray

# Keys up to here are hashed by a kernel.
_SHORT_KEY_BYTES = 1024
# Of a bucket: its words, its order, and what sorting takes.
_SORTING_FACTOR = 4
_MOST_BUCKETS = 256


class SurvivorKeys:
    """`add` the records of all sources in order, `close` once, then `take` them in the same
    order.
    """

    def __init__(self, most_records: int, budget: MemoryBudget) -> None:
        """`most_records`: about so many are expected."""
        entry_bytes = most_records * WORDS * 8 * _SORTING_FACTOR
        self._buckets = min(entry_bytes // max(budget.pool_bytes, 1) + 1, _MOST_BUCKETS)
        kept = budget.kept_bytes // self._buckets
        self._entries = [SpilledArray(np.uint64, kept) for _ in range(self._buckets)]
        self._superseded = SpilledArray(np.uint8, budget.kept_bytes)
        # Where each bucket begins: equal parts of all that the first word of a hash can be.
        self._edges = np.array(
            [(2**64 * b + self._buckets - 1) // self._buckets for b in range(self._buckets)],
            np.uint64,
        )
        self._window = budget.window_records
        self._seed = secrets.token_bytes(16)
        random = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
        shape = (2, _SHORT_KEY_BYTES + 1)
        self._words = random.integers(0, 2**64, shape, np.uint64) | np.uint64(1)
        self._lengths = random.integers(0, 2**64, shape, np.uint64)
        self._added = self._taken = 0

    def add(self, keys: pa.Array, is_data: NDArray[np.bool_], is_mapped: NDArray[np.bool_]) -> None:
        """Consecutive records: their keys, whether they may be superseded, and may supersede."""
        numbers = np.arange(self._added, self._added + len(keys), dtype=np.uint64)
        self._added += len(keys)
        chosen = is_data & valid_rows(keys)
        if not chosen.all():
            keys, numbers, is_mapped = (
                keys.filter(bool_array(chosen)),
                numbers[chosen],
                is_mapped[chosen],
            )
        if not numbers.size:
            return
        rows = np.empty((numbers.size, WORDS), np.uint64)
        rows[:, :2] = self._hashes(keys)
        rows[:, 2] = numbers << np.uint64(1) | is_mapped.astype(np.uint64)
        if self._buckets == 1:
            self._entries[0].append(rows.ravel())
            return
        rows = rows[np.argsort(rows[:, 0])]
        edges = np.append(np.searchsorted(rows[:, 0], self._edges), len(rows)).tolist()
        for entries, first, end in zip(self._entries, edges[:-1], edges[1:], strict=True):
            entries.append(rows[first:end].ravel().copy())

    def close(self) -> None:
        """All records were added."""
        for first in range(0, self._added, self._window):
            count = min(self._window, self._added - first)
            marks = np.zeros(-(-count // 8), np.uint8)
            for entries in self._entries:
                self._mark(entries, first, count, marks)
            self._superseded.append(marks)
        for entries in self._entries:
            entries.close()

    def rewind(self) -> None:
        """Take from the first record on again."""
        self._taken = 0

    def take(self, count: int) -> NDArray[np.bool_]:
        """Whether the next records are superseded, bool[count]."""
        first, end = self._taken, self._taken + count
        self._taken = end
        bits = np.unpackbits(self._superseded.read(first // 8, -(-end // 8)), bitorder="little")
        result: NDArray[np.bool_] = bits[first % 8 : first % 8 + count].astype(np.bool_)
        return result

    def _mark(
        self, entries: SpilledArray, first: int, count: int, marks: NDArray[np.uint8]
    ) -> None:
        rows = entries.read(0, entries.size)
        if not rows.size:
            return
        window = np.array([first, count], np.int64)
        # Sorted by one word, which is several times as fast: two hashes that share it are one in
        # 2^64 pairs, and then both words are sorted.
        order = np.argsort(rows[::WORDS])
        _, status = mark_below_latest(rows, order, 0, window, marks)
        if status == HASHES_MIXED:
            order = np.lexsort((rows[1::WORDS], rows[::WORDS]))
            _, status = mark_below_latest(rows, order, 1, window, marks)
        _check(status)

    def _hashes(self, keys: pa.Array) -> NDArray[np.uint64]:
        """128 bits of each key, uint64[n, 2]."""
        data, starts, lengths = binary_spans(keys)
        result = np.zeros((len(keys), 2), np.uint64)
        is_short = lengths <= _SHORT_KEY_BYTES
        for r in np.flatnonzero(~is_short).tolist():
            key = data[starts[r] : starts[r] + lengths[r]].tobytes()
            digest = hashlib.blake2b(key, key=self._seed, digest_size=16).digest()
            result[r] = np.frombuffer(digest, np.uint64)
        _, status = multilinear_hashes(
            data, starts, lengths, self._words.ravel(), self._lengths.ravel(), result.ravel()
        )
        _check(status)
        return result


def _check(status: int) -> None:
    if status != OK:
        raise RuntimeError(f"keys of verify deep: {STATUS_TEXT[status]}")
