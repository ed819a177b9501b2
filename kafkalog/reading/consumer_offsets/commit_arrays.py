"""Records of `__consumer_offsets` to offset commits, as arrays: the seam to
`kernels.offset_commits`; `kernels.commit_fields` has the numbers of kinds and fields.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels import offset_commits as kernel
from kafkalog.kernels.commit_fields import FIELDS, WIDTH

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_SMALLEST_TABLE = 1 << 16
_LAST_COMMIT_TYPE = 1


@dataclass(frozen=True, slots=True)
class Spans:
    """Byte strings in `buf`: starts and lengths int64[n], a length of -1 is null."""

    buf: Bytes
    starts: Int64s
    lengths: Int64s


def span_at(spans: Spans, at: int) -> bytes | None:
    """One of them as it lies."""
    start, length = int(spans.starts[at]), int(spans.lengths[at])
    return None if length < 0 else spans.buf[start : start + length].tobytes()


def is_commit_key(keys: Spans) -> NDArray[np.bool_]:
    """bool[n]: which keys have the type of an offset commit, 0 or 1, in their first two bytes."""
    found = np.zeros(keys.starts.size, np.bool_)
    typed = np.flatnonzero(keys.lengths >= 2)
    starts = keys.starts[typed]
    found[typed] = (keys.buf[starts] == 0) & (keys.buf[starts + 1] <= _LAST_COMMIT_TYPE)
    return found


@dataclass(frozen=True, slots=True)
class LatestChange:
    """What some records brought: spans int64[k, 4] of group and topic in the keys of those seen for
    the first time, in the order of their numbers; int64[m, 3] number, start and length in the
    values of metadata, in order; how many records cannot be read (of which those with a readable
    key are the latest of it), and how many are no commits.
    """

    new: Int64s
    texts: Int64s
    unreadable: int
    others: int


def read_commits(keys: Spans, values: Spans) -> tuple[Int64s, int]:
    """Fields int64[n, FIELDS] of n records, by the numbers in `kernels.commit_fields`.

    And how many cannot be read. Groups and topics lie in the keys, metadata in the values.
    """
    n = keys.starts.size
    fields, states = np.empty(n * FIELDS, np.int64), np.zeros(n, np.int64)
    nothing, no_hashes = np.empty(0, np.int64), np.empty(0, np.uint64)
    _, _, unreadable, _ = kernel.read_offset_commits(
        keys.buf, values.buf, keys.starts, keys.lengths, values.starts, values.lengths,
        states, states, np.uint64(0), np.uint64(0), nothing, no_hashes, 0, nothing, nothing,
        nothing, fields, no_hashes,
    )  # fmt: skip
    return fields.reshape(n, FIELDS), int(unreadable)


@dataclass(slots=True)
class LatestCommits:
    """The keys seen so far, numbered in the order they came up, and the last record of each.

    Memory: some 300 bytes a key.
    """

    secret: tuple[int, int] = field(
        default_factory=lambda: (secrets.randbits(64), secrets.randbits(64))
    )
    count: int = 0
    _table: Int64s = field(default_factory=lambda: np.full(_SMALLEST_TABLE, -1, np.int64))
    _known: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    _latest: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def rows(self) -> Int64s:
        """int64[count, WIDTH]: the first words of the fields, and offset, bytes and state of the
        record.
        """
        return self._latest[: self.count * WIDTH].reshape(self.count, WIDTH)

    def add(
        self, keys: Spans, values: Spans, record_offsets: Int64s, states: Int64s
    ) -> LatestChange:
        """Records in order. A state below zero: it does not count."""
        n, before = keys.starts.size, self.count
        self._make_room(n)
        new, texts = np.empty(4 * n, np.int64), np.empty(3 * n, np.int64)
        first, second = (np.uint64(word) for word in self.secret)
        # of no size that means to keep the fields of all records
        scratch = np.empty(kernel.BLOCK * FIELDS + 1, np.int64)
        count, texts_count, unreadable, others = kernel.read_offset_commits(
            keys.buf, values.buf, keys.starts, keys.lengths, values.starts, values.lengths,
            record_offsets, states, first, second, self._table, self._known, before,
            self._latest, new, texts, scratch, np.empty(2 * kernel.BLOCK, np.uint64),
        )  # fmt: skip
        self.count = int(count)
        return LatestChange(
            new[: 4 * (self.count - before)].reshape(-1, 4),
            texts[: 3 * int(texts_count)].reshape(-1, 3),
            int(unreadable),
            int(others),
        )

    def _make_room(self, more: int) -> None:
        needed = self.count + more
        if self._known.size < 2 * needed:
            known, latest = (
                np.empty(4 * needed, np.uint64),
                np.empty(2 * needed * WIDTH, np.int64),
            )
            known[: 2 * self.count] = self._known[: 2 * self.count]
            latest[: self.count * WIDTH] = self._latest[: self.count * WIDTH]
            self._known, self._latest = known, latest
        if self._table.size < 2 * needed:
            self._table = np.full(1 << (2 * needed - 1).bit_length(), -1, np.int64)
            kernel.fill_table(self._known, self.count, self._table)
