"""The latest record of each key of a log, counted in bounded memory: how many keys there are, and
what their latest records weigh.

Up to `most_keys` keys all are kept and the counts are exact (keys are told apart by 64 bits of a
keyed hash: of 2 million two are taken for one with a chance of 1 in 10 million). Past that only
keys whose hash ends in a zero bit are kept, then in two, and so on: a sample in which each key is
with equal chance whatever it costs (distinct sampling: Gibbons 2001). Counts and sums are then
scaled up, and come with the error that 95 of 100 such samples stay within.

Source: P. Gibbons, "Distinct Sampling for Highly-Accurate Answers to Distinct Values Queries"; the
variance is Horvitz and Thompson's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.log.json_facts import JsonFacts

# 30 bytes a key, and as much again four times while the table is put in order.
MOST_KEYS = 1_000_000
_FIRST_PENDING = 256 * 1024

KEY_ROW = np.dtype(
    [("key", np.uint64), ("bytes", np.float32), ("batch", np.int64), ("flags", np.uint8)]
)
Keys = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Estimate(JsonFacts):
    """A number, and how far it may be off (0: exact)."""

    value: int
    error: int


class LatestKeys:
    """Add keyed records in offset order."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = max(most_keys, 1)
        self._known: Keys = np.empty(0, KEY_ROW)
        self._pending: list[Keys] = []
        self._pending_count = 0
        self._sample_bits = 0

    @property
    def is_exact(self) -> bool:
        """Whether no key was left out."""
        return self._sample_bits == 0

    def add(self, rows: Keys) -> None:
        """KEY_ROW[n] in offset order, behind all that were added before."""
        rows = self._sampled(rows)
        self._pending.append(rows)
        self._pending_count += rows.size
        if self._pending_count >= max(_FIRST_PENDING, self._known.size):
            self._merge()

    def latest(self) -> Keys:
        """The latest record of each key there is, or of the sampled ones; not to be changed."""
        self._merge()
        return self._known

    def total(self, amounts: NDArray[np.float64]) -> Estimate:
        """The sum over all keys of an amount that is known of `latest`."""
        scale = float(1 << self._sample_bits)
        error = 1.96 * math.sqrt(float((amounts**2).sum()) * scale * (scale - 1))
        return Estimate(round(float(amounts.sum()) * scale), math.ceil(error))

    def _sampled(self, rows: Keys) -> Keys:
        if not self._sample_bits:
            return rows
        sampled: Keys = rows[rows["key"] & np.uint64((1 << self._sample_bits) - 1) == 0]
        return sampled

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = np.concatenate([self._known, *self._pending])
        self._pending, self._pending_count = [], 0
        rows = rows[np.argsort(rows["key"], kind="stable")]
        keys = rows["key"]
        self._known = rows[np.append(keys[1:] != keys[:-1], np.ones(min(keys.size, 1), np.bool_))]
        while self._known.size > self._most_keys:
            self._sample_bits += 1
            self._known = self._sampled(self._known)
