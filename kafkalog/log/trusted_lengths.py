"""Which lengths can be believed of batches with a wrong checksum, and where the next sound one is.

A batch with a wrong checksum may have a wrong length too: it is believed only if it leads, maybe
over more such batches, to a sound batch or to the end. Values can hold whole batches, so the search
inside what a length leads over comes second, and what it finds there counts only if it leads to the
same sound batch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.log.damage import FileRange
from kafkalog.log.next_batch import Bounds, find_next_batch, work_for
from kafkalog.log.single_batch import sound_batch_at
from kafkalog.log.storage import open_file

Rows = NDArray[np.void]


class TrustedLengths:
    """Of one file that is walked; all its searches together have one bound (`next_batch`)."""

    def __init__(self, wanted: FileRange) -> None:
        self._wanted = wanted
        self._work = work_for(wanted.end - wanted.start)

    def trusted(self, rows: Rows, is_valid: NDArray[np.bool_], last_offset: int) -> int:
        """How many batches in front (BATCH_ROW[b], bool[b]: their checksums are right) have a
        length that can be believed; `last_offset` is that of the sound batch before them.
        """
        if is_valid.all():
            return len(rows)
        # Runs of neighbours with a wrong checksum: the lengths of a run are believed together or
        # not at all.
        bad = np.flatnonzero(~is_valid)
        for run in np.split(bad, np.flatnonzero(np.diff(bad) > 1) + 1):
            if not self._leads_on(rows, int(run[0]), int(run[-1]), last_offset):
                return int(run[0])
        return len(rows)

    def next_sound(
        self, start: int, end: int, last_offset: int, end_offset: int | None = None
    ) -> int | None:
        """Position of the first sound batch in [start, end) of the file whose offsets lie between
        these two (None: the segment's end).
        """
        upper = self._wanted.ends.upper_bound_offset
        if end_offset is not None:
            upper = min(upper, end_offset)
        bounds = Bounds(start, end, last_offset, upper)
        found, self._work = find_next_batch(self._wanted.path, bounds, self._work)
        return found

    def _leads_on(self, rows: Rows, first: int, last: int, last_offset: int) -> bool:
        """Whether the lengths of bad batches lead to a sound one or the end, with none between."""
        start = int(rows["position"][first])
        end = int(rows["position"][last]) + int(rows["size_in_bytes"][last])
        behind = None
        if last + 1 < len(rows):
            behind = rows[last + 1]
        elif end < self._wanted.end:
            with open_file(self._wanted.path) as file:
                behind = sound_batch_at(file, end, self._wanted.end)
            if behind is None:
                return False
        # The next offset follows at once: nothing is missing, so no length has led over a sound
        # batch.
        follows = None if behind is None else int(behind["base_offset"])
        if follows == int(rows["last_offset"][last]) + 1:
            return True
        # Offsets are missing behind, as where a length took sound batches with it.
        before = int(rows["last_offset"][first - 1]) if first else last_offset
        before = self._wanted.ends.bounding(before)
        found = self.next_sound(start + 1, end, before, follows)
        return found is None or not self._is_chain(found, end)

    def _is_chain(self, position: int, end: int) -> bool:
        """Whether sound batches lead from one place to the other."""
        with open_file(self._wanted.path) as file:
            while position < end:
                # A value may hold a whole batch. What only lies inside a value leads into the
                # middle of something; a batch of the log leads to where the length of the bad one
                # does.
                row = sound_batch_at(file, position, end)
                if row is None:
                    return False
                position += int(row["size_in_bytes"])
        return True
