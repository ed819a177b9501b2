"""One new segment: its `.log` written front to back, its indexes collected on the way, all under
scratch names.

Files are synced before anything is renamed, and carry owner, group and mode of the segment they
replace and the modification time of the last source, which Kafka's cleaner carries over as well:
legacy tombstones and the retention of data without timestamps go by it.

Source: Kafka LogSegment.append, onBecomeInactiveSegment; Cleaner.cleanSegments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.batch_table import extend_file_checksum
from kafkalog.cleaning.new_files import NewFiles
from kafkalog.cleaning.segment_indexes import SegmentIndexes
from kafkalog.errors import LogCleaningRefusedError, LogSegmentOffsetOverflowError
from kafkalog.format.checksum import crc32c, extend_crc32c
from kafkalog.format.constants import MAX_INT32
from kafkalog.format.file_names import (
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.format.transaction_index import AbortedTxn, pack_transaction_index
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.pace import spend
from kafkalog.planning.log_config import LogConfig
from kafkalog.resources.spilled_array import SpilledArray


@dataclass(frozen=True, slots=True)
class OutputFile(JsonFacts):
    """A finished output: where it lies now, the name it will have, the CRC-32C of its bytes."""

    path: str
    name: str
    size_in_bytes: int
    checksum: int


class OutputSegment:
    """A segment being written; `append` in offset order, then `close` once."""

    def __init__(
        self,
        base_offset: int,
        config: LogConfig,
        files: NewFiles,
        scratch_path: dict[str, str],
        kept_bytes: int = 1024 * 1024,
    ) -> None:
        """`scratch_path` maps the four live file names to where they are written; `kept_bytes` of
        what was written are in memory, the rest on local disk.
        """
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.position = 0
        self._checksum = 0
        self._files = files
        self._paths = scratch_path
        self._fd: int | None = files.create(scratch_path[log_file_name(base_offset)])
        self._indexes = SegmentIndexes(base_offset, config)
        self.written_rows = SpilledArray(BATCH_ROW, kept_bytes)
        self.aborted_transactions: Sequence[AbortedTxn] = ()

    def append(
        self, parts: Sequence[memoryview], rows: NDArray[np.void], *, are_sound: bool = True
    ) -> None:
        """Write whole batches, at least one, in one or more parts; `rows` BATCH_ROW[b] have
        positions in this file and their final CRC, which is that of their bytes if they
        `are_sound`. LogSegmentOffsetOverflowError for an offset too far from the base.
        """
        size = sum(len(part) for part in parts)
        # Positions in an offset index are 32 bits wide, and so are offsets, relative to the base.
        if self.position + size > MAX_INT32:
            raise LogCleaningRefusedError(
                f"the new segment {self.base_offset} would pass {MAX_INT32} bytes"
            )
        last_offset = int(rows["last_offset"][-1])
        if last_offset - self.base_offset > MAX_INT32:
            raise LogSegmentOffsetOverflowError(
                f"segment {self.base_offset} cannot hold offset {last_offset}: it is more than "
                f"{MAX_INT32} away"
            )
        for part in parts:
            self._files.write(self._open_fd(), part)
            spend(len(part))
        # The file's checksum follows from those of its batches: no byte is looked at twice for it,
        # and the read-back compares the disk with what the batches state.
        if len(parts) == 1:
            buf = np.frombuffer(parts[0], np.uint8)
            known = None if are_sound else np.zeros(rows.size, np.bool_)
            self._checksum = extend_file_checksum(self._checksum, buf, rows, known)
        else:
            for part in parts:
                self._checksum = extend_crc32c(self._checksum, part)
        self.position += size
        self.next_offset = last_offset + 1
        self.written_rows.append(rows)
        self._indexes.add(rows)

    def close(self, owner: os.stat_result, modification_time_ms: int) -> list[OutputFile]:
        """Write the indexes, sync all files and give them owner, mode and modification time.

        The transaction index is made only if it has an entry, and keeps the time it was made, as in
        Kafka.
        """
        log_name = log_file_name(self.base_offset)
        self._finish(self._open_fd(), owner, modification_time_ms)
        self.abandon()
        made = [OutputFile(self._paths[log_name], log_name, self.position, self._checksum)]
        time_ms: int | None = modification_time_ms
        indexes = [
            (offset_index_file_name(self.base_offset), self._indexes.pack_offset_index(), time_ms),
            (time_index_file_name(self.base_offset), self._indexes.pack_time_index(), time_ms),
        ]
        if self.aborted_transactions:
            name = transaction_index_file_name(self.base_offset)
            indexes.append((name, pack_transaction_index(self.aborted_transactions), None))
        for name, data, modified_ms in indexes:
            fd = self._files.create(self._paths[name])
            try:
                self._files.write(fd, memoryview(data))
                spend(len(data))
                self._finish(fd, owner, modified_ms)
            finally:
                os.close(fd)
            made.append(OutputFile(self._paths[name], name, len(data), crc32c(data)))
        return made

    def _open_fd(self) -> int:
        assert self._fd is not None, "written after it was closed"  # noqa: S101
        return self._fd

    def abandon(self) -> None:
        """Close the `.log` if it is open still; the files stay where they are."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _finish(self, fd: int, owner: os.stat_result, modification_time_ms: int | None) -> None:
        # All before the sync, so that owner and times are on disk with the bytes.
        self._files.set_owner(fd, owner)
        if modification_time_ms is not None:
            self._files.set_modification_time(fd, modification_time_ms)
        self._files.sync_file(fd)
