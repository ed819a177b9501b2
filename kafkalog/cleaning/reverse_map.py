"""The key map of records that come from the last part of a log to the first.

A record whose key is held already, with a later offset, is superseded for good, so of each part the
flags are known as soon as it was entered: no record that comes after it can change them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.cleaning.key_map import (
    RECORDS_PER_KEY,
    STAGED_ENTRIES,
    KeyHasher,
    KeySecret,
    RunSink,
    mark_superseded,
)
from kafkalog.cleaning.run_map import RunMap
from kafkalog.kernels.hash_keys import KEYLESS

# Numbers fall from part to part, and stay above those of records that are mapped in their order.
_END_INDEX = 1 << 62


class ReverseMap:
    """`flags_of` one part after the other, each in front of those before it."""

    def __init__(
        self,
        first_dirty_offset: int,
        latest_offset: int,
        pool_bytes: int,
        expected_records: int,
        secret: KeySecret,
    ) -> None:
        """Offsets as in `KeyMap`; `expected_records` sizes the table, more or fewer are fine."""
        self._map = RunMap(pool_bytes, expected_records // RECORDS_PER_KEY)
        staged = min(STAGED_ENTRIES, self._map.most_keys)
        self._hasher = KeyHasher(first_dirty_offset, latest_offset, staged, secret)
        self._first_index = _END_INDEX
        self.keyless = 0

    @property
    def distinct_keys(self) -> int:
        """Of the dirty records."""
        return self._map.distinct_keys

    @property
    def used_bytes(self) -> int:
        """Of memory."""
        return self._map.used_bytes

    def has_room(self, records: int) -> bool:
        """Whether so many records may enter, whatever their keys."""
        return self._map.has_room(records)

    def flags_of(
        self,
        rows: NDArray[np.void],
        areas: RecordAreas,
        path: str,
        roles: NDArray[np.uint8],
    ) -> NDArray[np.uint8]:
        """The flags of a part's records, uint8[r], for which there is room; `roles` as in
        `KeyHasher.hash`. After an error the map is of no more use.
        """
        end_index = self._first_index
        self._first_index -= int(rows["records_count"].sum(dtype=np.int64))
        self._hasher.begin_at(self._first_index)
        self._map.begin_part(self._first_index)
        parts = []
        for entries, flags in self._hasher.hash(rows, areas, path, roles):
            self._map.enter(entries, end_index)
            parts.append(flags)
        # Those that are only looked up, too: whatever supersedes them has entered.
        self._map.end()
        flags = parts[0] if len(parts) == 1 else np.concatenate(parts)
        mark_superseded(flags, self._map.marks.bits)
        self.keyless += int(np.count_nonzero(flags & KEYLESS))
        return flags

    def give_to(self, sink: RunSink, bucket_bits: int) -> None:
        """Hand the latest entry of each key over, for records in front of all parts. The map is of
        no more use then.
        """
        # Of those that were looked up nothing is open.
        self._map.begin_part(self._first_index)
        for bucket, entries in self._map.buckets(bucket_bits):
            sink.add_entries(bucket, entries)
