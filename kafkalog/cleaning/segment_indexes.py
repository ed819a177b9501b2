"""The offset and time index of one segment, collected while its batches go by in order.

The rule is Kafka's (kernels.index_entries), the same whether a segment is written or recovered. On
closing, the time index gets the segment's largest timestamp.

Source: Kafka LogSegment.append, LogSegment.recover, onBecomeInactiveSegment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.constants import NO_TIMESTAMP
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, pack_offset_index
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, pack_time_index
from kafkalog.kernels.index_entries import (
    LAST_TIME_ENTRY,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_OFFSET,
    STATE_SIZE,
    index_entries,
)
from kafkalog.planning.log_config import LogConfig

_Entries = list[tuple[NDArray[np.int64], NDArray[np.int64]]]


class SegmentIndexes:
    """`add` batches in offset order, then pack."""

    def __init__(self, base_offset: int, config: LogConfig) -> None:
        self.base_offset = base_offset
        self._config = config
        # As Kafka opens an empty segment: no bytes since an entry, no timestamp, and the base
        # offset as that of the largest one.
        self._state = np.array([0, NO_TIMESTAMP, base_offset, NO_TIMESTAMP], np.int64)
        assert self._state.size == STATE_SIZE  # noqa: S101  (a bug of ours, not an input)
        self._entries: _Entries = []
        self._time_entries: _Entries = []

    def add(self, rows: NDArray[np.void]) -> None:
        """Consecutive batches, BATCH_ROW[b] with positions in this segment's file."""
        offsets, positions, timestamps, timestamp_offsets = np.empty((4, rows.size), np.int64)
        entries, time_entries = index_entries(
            rows,
            self._config.index_interval_bytes,
            self._state,
            offsets,
            positions,
            timestamps,
            timestamp_offsets,
        )
        # Copies: few batches get an entry, and a view would hold on to all.
        if entries:
            self._entries.append((offsets[:entries].copy(), positions[:entries].copy()))
        if time_entries:
            times = timestamps[:time_entries].copy(), timestamp_offsets[:time_entries].copy()
            self._time_entries.append(times)

    def pack_offset_index(self) -> bytes:
        """The `.index`. LogCleaningRefusedError if segment.index.bytes has no room for it."""
        offsets, positions = _joined(self._entries)
        self._check_capacity("offset", offsets.size, OFFSET_INDEX_ENTRY_BYTES)
        return pack_offset_index(offsets, positions, self.base_offset)

    def pack_time_index(self) -> bytes:
        """The `.timeindex`. LogCleaningRefusedError if segment.index.bytes has no room for it."""
        timestamps, offsets = _joined(self._time_entries)
        events, _ = _joined(self._entries)
        if events.size:
            # At each entry of the offset index Kafka asks for room here, whether the largest
            # timestamp has grown or not, and keeps the last slot for the closing entry.
            before_last = np.count_nonzero(offsets <= events[-2]) if events.size > 1 else 0
            self._check_capacity("time", int(before_last) + 2, TIME_INDEX_ENTRY_BYTES)
        # The closing entry, as when Kafka rolls a segment: lookups by time and retention take the
        # last entry for the segment's largest timestamp.
        if self._state[MAX_TIMESTAMP] > self._state[LAST_TIME_ENTRY]:
            timestamps = np.append(timestamps, self._state[MAX_TIMESTAMP])
            offsets = np.append(offsets, self._state[MAX_TIMESTAMP_OFFSET])
        return pack_time_index(timestamps, offsets, self.base_offset)

    def _check_capacity(self, what: str, entries: int, entry_bytes: int) -> None:
        """A broker fails on a full index, and its cleaner gives the partition up; say so instead of
        writing one.
        """
        room = self._config.segment_index_bytes // entry_bytes
        if entries > room:
            raise LogCleaningRefusedError(
                f"the {what} index of the new segment {self.base_offset} needs room for {entries} "
                f"entries, segment.index.bytes={self._config.segment_index_bytes} has it for "
                f"{room}: a broker fails here as well",
            )


def _joined(parts: _Entries) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    empty = np.empty(0, np.int64)
    return (
        np.concatenate([empty, *(first for first, _ in parts)]),
        np.concatenate([empty, *(second for _, second in parts)]),
    )
