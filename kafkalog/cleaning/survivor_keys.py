"""Which records a later one of their key supersedes, for `--verify deep`: by sorting, with none of
the kernels that decide in a round.

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
from kafkalog.resources.memory import MemoryBudget
from kafkalog.resources.spilled_array import SpilledArray

# Keys up to here go the vectorized way.
_SHORT_KEY_BYTES = 1024
# Bytes of keys hashed at once: each takes some words.
_PIECE_BYTES = 256 * 1024
# hash, hash, record number << 1 | whether it was mapped
_WORDS = 3
# Of a bucket: its words, its order, and what sorting takes.
_SORTING_FACTOR = 4
_MOST_BUCKETS = 256


class SurvivorKeys:
    """`add` the records of all sources in order, `close` once, then `take` them in the same
    order.
    """

    def __init__(self, most_records: int, budget: MemoryBudget) -> None:
        """`most_records`: about so many are expected."""
        entry_bytes = most_records * _WORDS * 8 * _SORTING_FACTOR
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
        rows = np.empty((numbers.size, _WORDS), np.uint64)
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
        rows = entries.read(0, entries.size).reshape(-1, _WORDS)
        if not len(rows):
            return
        # Each hash is one run of rows then; the largest mapped record of a run is what supersedes,
        # and every record of the run below it goes.
        order, is_new = _runs(rows[:, 0], rows[:, 1])
        words = rows[order, 2]
        del rows
        records = (words >> np.uint64(1)).view(np.int64)
        starts = np.flatnonzero(is_new)
        mapped = np.where(words & np.uint64(1), records, -1)
        sizes = np.diff(starts, append=words.size)
        latest = np.repeat(np.maximum.reduceat(mapped, starts), sizes)
        gone = records[(records < latest) & (records >= first) & (records < first + count)] - first
        if gone.size:
            # In order, so that the bits of one byte are put together before it is touched.
            gone.sort()
            places, bits = gone >> 3, np.left_shift(1, gone & 7).astype(np.uint8)
            of_byte = np.flatnonzero(_changes(places))
            marks[places[of_byte]] |= np.bitwise_or.reduceat(bits, of_byte)

    def _hashes(self, keys: pa.Array) -> NDArray[np.uint64]:
        """128 bits of each key, uint64[n, 2]."""
        data, starts, lengths = binary_spans(keys)
        result = np.zeros((len(keys), 2), np.uint64)
        is_short = lengths <= _SHORT_KEY_BYTES
        for r in np.flatnonzero(~is_short).tolist():
            key = data[starts[r] : starts[r] + lengths[r]].tobytes()
            digest = hashlib.blake2b(key, key=self._seed, digest_size=16).digest()
            result[r] = np.frombuffer(digest, np.uint64)
        short = np.flatnonzero(is_short)
        ends = np.cumsum(lengths[short])
        at = 0
        while at < short.size:
            done = int(ends[at - 1]) if at else 0
            upto = max(at + 1, int(np.searchsorted(ends, done + _PIECE_BYTES, "right")))
            piece = short[at:upto]
            result[piece] = self._short_hashes(data, starts[piece], lengths[piece])
            at = upto
        return result

    def _short_hashes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        length = int(lengths[0])
        # Keys of one length that lie one behind the other, the usual case: a row a key.
        if (
            np.array_equal(starts, starts[0] + np.arange(starts.size) * length)
            and (lengths == length).all()
        ):
            end = int(starts[-1]) + length
            values = data[starts[0] : end].reshape(starts.size, length).astype(np.uint64)
            words = self._words[:, :length]
            summed: NDArray[np.uint64] = (values + np.uint64(1)) @ words.T
            summed += self._lengths[:, length]
            return summed
        # All bytes of all keys in one array, each with its place within its key. The sums over keys
        # are differences of one running sum, which wraps around as 64-bit numbers do and is right
        # all the same.
        ends = np.cumsum(lengths)
        place = np.arange(int(ends[-1]), dtype=np.int64) - np.repeat(ends - lengths, lengths)
        values = data[place + np.repeat(starts, lengths)].astype(np.uint64) + np.uint64(1)
        result = np.empty((starts.size, 2), np.uint64)
        for half in range(2):
            sums = np.zeros(values.size + 1, np.uint64)
            np.cumsum(values * self._words[half][place], out=sums[1:])
            result[:, half] = sums[ends] - sums[ends - lengths] + self._lengths[half][lengths]
        return result


def _runs(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """An order in which equal hashes lie together, and bool[n]: where another one begins."""
    # Sorted by one word, which is several times as fast: two hashes that share it are one in 2^64
    # pairs, and then both words are sorted.
    order = np.argsort(first)
    is_new, others = _changes(first[order]), _changes(second[order])
    if (others & ~is_new).any():
        order = np.lexsort((second, first))
        is_new, others = _changes(first[order]), _changes(second[order])
    return order, is_new | others


def _changes(sorted_words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    result = np.ones(sorted_words.size, np.bool_)
    np.not_equal(sorted_words[1:], sorted_words[:-1], out=result[1:])
    return result
