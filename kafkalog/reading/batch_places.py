"""Which batches of a chunk lie where their offsets say.

No CRC covers a base offset, so a damaged one shows here only; and such a batch may hold any offset,
so none is left out as unwanted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kafkalog.errors import CorruptRecordError
from kafkalog.log.batch_order import sound_places
from kafkalog.log.single_batch import whole_batch_at
from kafkalog.log.storage import open_file
from kafkalog.reading.split_chunks import Rows, file_range
from kafkalog.reading.splits import ScanSplit

Mask = npt.NDArray[np.bool_]
_Int64s = npt.NDArray[np.int64]


class BatchPlaces:
    """Looks at the batches of splits. A read that goes on past damage (`goes_on`) asks the whole
    segment which are not to be believed: a batch too high makes the one behind it look too low, and
    two that were swapped are both right.
    """

    def __init__(self, *, goes_on: bool) -> None:
        self._goes_on = goes_on
        self._places: tuple[str, tuple[_Int64s, _Int64s]] | None = None  # of the segment at hand

    def misplaced(self, rows: Rows, previous_offset: int, limit: int, split: ScanSplit) -> Mask:
        """Batches whose offsets are not to be believed."""
        found = misplaced(rows, previous_offset, limit)
        if not self._goes_on or not found.any():
            return found
        if self._places is None or self._places[0] != split.path:
            whole = replace(split, start=0, end=split.size)
            self._places = split.path, sound_places(file_range(whole))
        sound, wrong = self._places[1]
        positions = rows["position"]
        return np.isin(positions, wrong) | (found & ~np.isin(positions, sound))


def misplaced(rows: Rows, previous_offset: int, limit: int) -> Mask:
    """Batches that do not lie behind the one before them and below `limit`. No CRC covers a base
    offset, so a damaged one shows here only; and such a batch may hold any offset, so none is
    left out as unwanted.
    """
    before = np.concatenate([[previous_offset], rows["last_offset"][:-1]])
    found: Mask = (rows["base_offset"] <= before) | (rows["last_offset"] < rows["base_offset"])
    return found | (rows["last_offset"] >= limit)


def offset_limit(split: ScanSplit) -> int:
    """The offset that all of a split lie below: the next split's first, or the next segment's."""
    limit = file_range(split).ends.upper_bound_offset
    if split.end >= split.size:
        return limit
    with open_file(split.path) as file:
        behind = whole_batch_at(file, split.end, file.size)
    # of a legacy wrapper that is its last offset
    return limit if behind is None else min(limit, int(behind["base_offset"]))


def check_places(rows: Rows, misplaced: npt.NDArray[np.int64], path: str) -> None:
    """CorruptRecordError for the first of `rows` that is misplaced, by its position."""
    bad = np.flatnonzero(np.isin(rows["position"], misplaced))
    if bad.size:
        row = rows[bad[0]]
        raise CorruptRecordError(
            f"batch of offsets {row['base_offset']} to {row['last_offset']} does not lie behind "
            "the one before it and in front of what follows",
            path=path,
            position=int(row["position"]),
            offset=int(row["base_offset"]),
        )
