"""One new segment: its `.log` written front to back, its indexes collected on the way, all under
scratch names.

The indexes follow Kafka's rule (kernels.index_entries); on closing, the time index gets the
segment's largest timestamp. Files are synced before anything is renamed, and carry owner, group and
mode of the segment they replace and the modification time of the last source, which Kafka's cleaner
carries over as well: legacy tombstones and the retention of data without timestamps go by it.

Source: Kafka LogSegment.append, onBecomeInactiveSegment; Cleaner.cleanSegments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.errors import LogCleaningRefusedError
from kafkalog.format.checksum import crc32c
from kafkalog.format.constants import MAX_INT32, NO_TIMESTAMP
from kafkalog.format.file_names import (
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, pack_offset_index
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, pack_time_index
from kafkalog.format.transaction_index import AbortedTxn, pack_transaction_index
from kafkalog.kernels.index_entries import (
    LAST_TIME_ENTRY,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_OFFSET,
    STATE_SIZE,
    index_entries,
)
from kafkalog.planning.log_config import LogConfig


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A finished output: where it lies now, and the name it will have. `checksum` is the CRC-32C of
    an index; a log's batches have their own.
    """

    path: str
    name: str
    size_in_bytes: int
    checksum: int | None = None


class OutputSegment:
    """A segment being written; `append` in offset order, then `close` once."""

    def __init__(
        self, base_offset: int, config: LogConfig, files: LocalFiles, scratch_path: dict[str, str]
    ) -> None:
        """`scratch_path` maps the four live file names to where they are written."""
        self.base_offset = base_offset
        self.position = 0
        self._config = config
        self._files = files
        self._paths = scratch_path
        self._fd: int | None = files.create(scratch_path[log_file_name(base_offset)])
        self._state = np.array([0, NO_TIMESTAMP, base_offset, NO_TIMESTAMP], np.int64)
        assert self._state.size == STATE_SIZE  # noqa: S101  (a bug of ours, not an input)
        self._entries: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._time_entries: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self.written_rows: list[NDArray[np.void]] = []
        self.aborted_transactions: Sequence[AbortedTxn] = ()

    def append(self, data: memoryview, rows: NDArray[np.void]) -> None:
        """Write whole batches; `rows` BATCH_ROW[b] have positions in this file and their final
        CRC.
        """
        if self.position + len(data) > MAX_INT32:
            raise LogCleaningRefusedError(
                f"the new segment {self.base_offset} would pass {MAX_INT32} bytes"
            )
        self._files.write(self._open_fd(), data)
        self.position += len(data)
        self.written_rows.append(rows)
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
        self._entries.append((offsets[:entries], positions[:entries]))
        self._time_entries.append((timestamps[:time_entries], timestamp_offsets[:time_entries]))

    def close(self, owner: os.stat_result, modification_time_ms: int) -> list[OutputFile]:
        """Write the indexes, sync all files and give them owner, mode and modification time.

        The transaction index is made only if it has an entry, and keeps the time it was made, as in
        Kafka.
        """
        log_name = log_file_name(self.base_offset)
        self._finish(self._open_fd(), owner)
        self.abandon()
        made = [OutputFile(self._paths[log_name], log_name, self.position)]
        indexes = [
            (offset_index_file_name(self.base_offset), self._pack_offset_index()),
            (time_index_file_name(self.base_offset), self._pack_time_index()),
        ]
        if self.aborted_transactions:
            name = transaction_index_file_name(self.base_offset)
            indexes.append((name, pack_transaction_index(self.aborted_transactions)))
        for name, data in indexes:
            fd = self._files.create(self._paths[name])
            try:
                self._files.write(fd, memoryview(data))
                self._finish(fd, owner)
            finally:
                os.close(fd)
            made.append(OutputFile(self._paths[name], name, len(data), crc32c(data)))
        for file in made[:3]:
            self._files.set_modification_time(file.path, modification_time_ms)
        return made

    def _open_fd(self) -> int:
        assert self._fd is not None, "written after it was closed"  # noqa: S101
        return self._fd

    def abandon(self) -> None:
        """Close the `.log` if it is open still; the files stay where they are."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _finish(self, fd: int, owner: os.stat_result) -> None:
        self._files.set_owner(fd, owner)
        self._files.sync_file(fd)

    def _pack_offset_index(self) -> bytes:
        offsets, positions = _joined(self._entries)
        self._check_capacity("offset", offsets.size, OFFSET_INDEX_ENTRY_BYTES, reserved=0)
        return pack_offset_index(offsets, positions, self.base_offset)

    def _pack_time_index(self) -> bytes:
        timestamps, offsets = _joined(self._time_entries)
        # Kafka keeps the last slot for the closing entry.
        self._check_capacity("time", timestamps.size, TIME_INDEX_ENTRY_BYTES, reserved=1)
        if self._state[MAX_TIMESTAMP] > self._state[LAST_TIME_ENTRY]:
            timestamps = np.append(timestamps, self._state[MAX_TIMESTAMP])
            offsets = np.append(offsets, self._state[MAX_TIMESTAMP_OFFSET])
        return pack_time_index(timestamps, offsets, self.base_offset)

    def _check_capacity(self, what: str, entries: int, entry_bytes: int, *, reserved: int) -> None:
        """A broker's cleaner fails on a full index and gives the partition up; say so instead of
        writing one.
        """
        room = self._config.segment_index_bytes // entry_bytes - reserved
        if entries > room:
            raise LogCleaningRefusedError(
                f"the {what} index of the new segment {self.base_offset} needs {entries} entries, "
                f"segment.index.bytes={self._config.segment_index_bytes} has room for {room}: "
                "a broker's cleaner fails here as well",
            )


def joined_rows(written_rows: list[NDArray[np.void]]) -> NDArray[np.void]:
    """The BATCH_ROWs of all appends as one array."""
    return np.concatenate([np.empty(0, BATCH_ROW), *written_rows])


def _joined(
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    empty = np.empty(0, np.int64)
    return (
        np.concatenate([empty, *(first for first, _ in parts)]),
        np.concatenate([empty, *(second for _, second in parts)]),
    )


def owner_of(segment_path: str) -> os.stat_result:
    """Whose files the new ones must look like."""
    return Path(segment_path).stat()
