"""Batches of a new segment that are not copies: their checksums, and what `verify` must know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.checksum import crc32c
from kafkalog.format.record_batch import CRC_POSITION, CRC_START
from kafkalog.log.segment_file import Chunk
from kafkalog.native.checksums import crc32c_of_ranges
from kafkalog.resources.spilled_array import SpilledArray


class RebuiltBatches:
    """Where rebuilt batches went in a new segment, and the fold of their records, for `verify`;
    `corrupt` has the positions of corrupt batches that were kept, and the CRC-32C of all their
    bytes.
    """

    def __init__(self, kept_bytes: int) -> None:
        self.positions = SpilledArray(np.int64, kept_bytes)
        self.folds = SpilledArray(np.int64, kept_bytes)
        self.corrupt: dict[int, int] = {}

    def add(self, positions: NDArray[np.int64], folds: NDArray[np.int64]) -> None:
        """Batches behind all that were added before."""
        self.positions.append(positions)
        self.folds.append(folds)

    def add_all(self, others: RebuiltBatches, position: int) -> None:
        """Those of a part, at `position`, behind all that were added before."""
        for positions, folds in zip(others.positions.blocks(), others.folds.blocks(), strict=True):
            self.add(positions + position, folds)

    def note_corrupt(self, row: np.void, chunk: Chunk, new_rows: NDArray[np.void]) -> None:
        """If a corrupt batch is among those just copied: its row as it states it, and the checksum
        that its own is not.
        """
        # By offset and checksum: it was copied byte for byte, so that both are the source's.
        at = np.flatnonzero(
            (new_rows["base_offset"] == row["base_offset"]) & (new_rows["crc"] == row["crc"])
        )
        if at.size:
            new_rows["records_count"][at[0]] = row["records_count"]
            start = int(row["position"]) - chunk.position
            data = chunk.buf[start : start + int(row["size_in_bytes"])]
            self.corrupt[int(new_rows["position"][at[0]])] = crc32c(data)


def set_checksums(
    out: NDArray[np.uint8], out_position: int, rows: NDArray[np.void]
) -> NDArray[np.bool_]:
    """Compute the CRC of the batches whose row has crc -1, in `out` and in the rows; which ones had
    records.
    """
    # A stored checksum is unsigned 32 bits, so -1 is none of them.
    missing = rows["crc"] == -1
    which = np.flatnonzero(missing)
    if which.size:
        starts = rows["position"][which] - out_position
        checksums = crc32c_of_ranges(out, starts + CRC_START, starts + rows["size_in_bytes"][which])
        rows["crc"][which] = checksums
        # Big-endian on disk: four bytes a batch, all written in one assignment.
        stored = checksums.astype(">u4").view(np.uint8).reshape(-1, 4)
        out[starts[:, None] + CRC_POSITION + np.arange(4)] = stored
    is_rebuilt: NDArray[np.bool_] = missing & (rows["records_count"] > 0)
    return is_rebuilt
