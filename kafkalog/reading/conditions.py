"""What rows must satisfy, in a form that partitions, segments, batch headers and records can each
be held against, cheapest first.

A filter is the AND of conditions on single columns. Whole numbers, truth values (0 and 1) and
timestamps (ms) are ranges and sets of integers; a key equals one of some byte strings; a topic is
one of some names. Where a column's sentinel (-1) is null, no condition is met by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkalog.format.constants import MAX_INT64, NO_TIMESTAMP
from kafkalog.log.topic_partition import TopicPartition

MIN_INT64 = -MAX_INT64 - 1

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Condition:
    """A whole number from `low` to `high`, both included, and one of `values` where they are given
    (rising)."""

    low: int = MIN_INT64
    high: int = MAX_INT64
    values: tuple[int, ...] | None = None

    @classmethod
    def one_of(cls, values: frozenset[int]) -> Condition:
        """Nothing meets it where `values` is empty."""
        chosen = tuple(sorted(v for v in values if MIN_INT64 <= v <= MAX_INT64))
        return cls(chosen[0], chosen[-1], chosen) if chosen else cls(1, 0, ())

    @property
    def is_impossible(self) -> bool:
        return self.low > self.high or self.values == ()

    def also(self, other: Condition) -> Condition:
        """Both conditions at once."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        values = self.values if other.values is None else other.values
        if values is None:
            return Condition(low, high)
        if self.values is not None and other.values is not None:
            values = tuple(sorted(set(self.values) & set(other.values)))
        return Condition.one_of(frozenset(v for v in values if low <= v <= high))

    def accepts(self, number: int) -> bool:
        in_range = self.low <= number <= self.high
        return in_range and (self.values is None or number in self.values)

    def meets_range(self, first: int, last: int) -> bool:
        """Whether a number from `first` to `last`, both included, may satisfy it."""
        if self.values is None:
            return first <= self.high and last >= self.low
        return any(first <= value <= last for value in self.values)

    def mask(self, numbers: npt.NDArray[Any]) -> Mask:
        """bool[n]: which of the numbers satisfy it."""
        if self.values is not None:
            return np.isin(numbers, np.array(self.values, np.int64))
        met: Mask = (numbers >= self.low) & (numbers <= self.high)
        return met

    def mask_of_ranges(self, firsts: npt.NDArray[Any], lasts: npt.NDArray[Any]) -> Mask:
        """bool[n]: `meets_range` of each."""
        if self.values is None:
            met: Mask = (firsts <= self.high) & (lasts >= self.low)
            return met
        values = np.array(self.values, np.int64)
        # A wanted value lies in a range exactly if fewer values lie below its first number than up
        # to its last.
        return np.searchsorted(values, firsts) < np.searchsorted(values, lasts, side="right")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The AND of its parts; without any, every row passes.

    numbers: by column, as in `columns.schemas`. keys: records whose key is one of them.
    """

    topics: frozenset[str] | None = None
    numbers: Mapping[str, Condition] = field(default_factory=dict)
    keys: frozenset[bytes] | None = None

    @property
    def is_impossible(self) -> bool:
        """No row can pass."""
        impossible = any(condition.is_impossible for condition in self.numbers.values())
        return impossible or self.keys == frozenset() or self.topics == frozenset()

    def with_number(self, column: str, condition: Condition) -> RowFilter:
        known = self.numbers.get(column)
        both = condition if known is None else known.also(condition)
        return replace(self, numbers={**self.numbers, column: both})

    def with_keys(self, keys: frozenset[bytes]) -> RowFilter:
        return replace(self, keys=keys if self.keys is None else self.keys & keys)

    def with_topics(self, topics: frozenset[str]) -> RowFilter:
        return replace(self, topics=topics if self.topics is None else self.topics & topics)

    def accepts(self, partition: TopicPartition) -> bool:
        """Whether rows of this partition may pass."""
        number = self.numbers.get("partition")
        return (self.topics is None or partition.topic in self.topics) and (
            number is None or number.accepts(partition.partition)
        )

    @property
    def offsets(self) -> Condition | None:
        """What is asked of a record's offset."""
        return self.numbers.get("offset")

    @property
    def timestamps(self) -> Condition | None:
        """What is asked of a record's timestamp in ms, by either of its columns."""
        chosen = [self.numbers[c] for c in ("timestamp", "timestampMs") if c in self.numbers]
        if not chosen:
            return None
        return chosen[0] if len(chosen) == 1 else chosen[0].also(chosen[1])

    def timestamp_mask(self, timestamps: npt.NDArray[np.int64]) -> Mask | None:
        """bool[n] over timestamps in ms; None if nothing is asked of them. -1 is null in column
        `timestamp`."""
        condition = self.timestamps
        if condition is None:
            return None
        met = condition.mask(timestamps)
        return met & (timestamps != NO_TIMESTAMP) if "timestamp" in self.numbers else met


EVERYTHING = RowFilter()
