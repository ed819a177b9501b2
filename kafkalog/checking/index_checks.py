"""Indexes against their log, by the rules of a search: whoever reads from where an entry leads must
miss nothing.

 offset index   (offset, position): a batch begins at position, all batches before it end below
                offset, and it begins at or below offset; offset is not past the segment's last one
 time index     (timestamp, offset): no batch up to the one that holds offset has a larger timestamp
 both           entries rise; the first batch of a segment has none

Entries of an offset index whose offsets all lie past the segment's last one are never found: a
search stops in front of them, whatever order they have. Only the last segment's end is taken from
them (`log_checks`).

Nothing more holds of every writer: up to 4.0 an entry stood for all batches of one append, and
restarts change where entries fall. So an index is never compared with one made anew.

The entries are read first, then compared chunk by chunk with what the walk finds, so that memory
goes by the index and not by the log.

Source: Kafka OffsetIndex, TimeIndex, LogSegment.translateOffset and findOffsetByTimestamp.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.checking.finding import FindingList
from kafkalog.checking.finding_kind import Severity

Rows = NDArray[np.void]
Entries = NDArray[np.void]

# A stretch without an entry that no append of a broker makes: the largest are buffers of old
# cleaners and batches of some MiB.
_LONG_STRETCH_BYTES = 16 * 1024 * 1024


class OffsetIndexChecks:
    """Entries of one offset index; `add` takes the rows of the log in order, `end` its end."""

    def __init__(self, entries: Entries, base_offset: int, path: str, found: FindingList) -> None:
        relative = entries["relative_offset"].astype(np.int64)
        self._offsets = relative + base_offset
        self._positions = entries["position"].astype(np.int64)
        self._path, self._found = path, found
        self._said: set[int] = set()
        self._last_offset = base_offset - 1
        wrong = (relative < 0) | (self._positions <= 0)
        wrong[1:] |= (np.diff(relative) <= 0) | (np.diff(self._positions) <= 0)
        # Those in front of the first one that does not lie above the one before it.
        self._sorted = int(np.argmax(wrong)) if wrong.any() else wrong.size

    def add(self, rows: Rows, end_position: int) -> None:
        """The next batches, which end at `end_position` of the file."""
        if not rows.size:
            return
        # Entries whose positions lie in these batches. Each must name the start of a batch whose
        # offsets reach the entry's, with no batch in front that has it: else a search begins too
        # late.
        first, stop = np.searchsorted(
            self._positions[: self._sorted], [rows["position"][0], end_position]
        )
        if first < stop:
            positions, offsets = self._positions[first:stop], self._offsets[first:stop]
            b = np.searchsorted(rows["position"], positions)
            b = np.minimum(b, rows.size - 1)
            before = np.concatenate([[self._last_offset], rows["last_offset"][:-1]])
            is_elsewhere = rows["position"][b] != positions
            is_before = before[b] >= offsets
            wrong = is_elsewhere | is_before | (rows["base_offset"][b] > offsets)
            for entry in np.flatnonzero(wrong)[:1].tolist():
                text = (
                    "no batch begins there"
                    if is_elsewhere[entry]
                    else "a batch before it has that offset"
                    if is_before[entry]
                    else "that batch begins above it"
                )
                self._say(first + entry, text)
        self._last_offset = int(rows["last_offset"][-1])

    def end(self, valid_bytes: int, *, is_whole: bool) -> None:
        """After the last batch; `is_whole`: the walk came to the log's end."""
        # An entry above the log's last offset is wrong and harmless: no search for an offset that
        # is there ends at it.
        is_past = (self._offsets > self._last_offset) & is_whole
        is_beyond = (self._positions[: self._sorted] >= valid_bytes) & is_whole
        is_wrong = is_beyond & ~is_past[: self._sorted]
        if is_wrong.any():
            self._say(int(np.argmax(is_wrong)), f"the log ends at {valid_bytes}")
        elif self._sorted < self._offsets.size:
            self._say(self._sorted, "it does not lie above the one before it", is_past)
        elif is_beyond.any():
            self._say(int(np.argmax(is_beyond)), f"the log ends at {valid_bytes}", is_past)
        elif is_past.any():
            self._say(
                self._offsets.size - 1, f"the log's last offset is {self._last_offset}", is_past
            )
        if self._sorted < self._offsets.size:
            return
        stretches = np.diff(np.concatenate([[0], self._positions, [valid_bytes]]))
        longest = int(stretches.argmax())
        if stretches[longest] > _LONG_STRETCH_BYTES:
            self._found.add(
                "offset-index-short",
                f"{stretches[longest]} bytes without an entry, {self._offsets.size} entries in all",
                path=self._path,
            )

    def _say(self, entry: int, text: str, is_past: NDArray[np.bool_] | None = None) -> None:
        """`is_past`: which entries lie past the segment's last offset."""
        if entry in self._said:
            return
        self._said.add(entry)
        is_never_found = is_past is not None and is_past[entry:].all()
        if is_never_found:
            text += "; no search comes to it"
        self._found.add(
            "offset-index-disagrees",
            f"entry {entry} is (offset {self._offsets[entry]}, position {self._positions[entry]}): "
            f"{text}",
            severity=Severity.WARNING if is_never_found else None,
            path=self._path,
            position=8 * entry,
            offset=int(self._offsets[entry]),
        )


class TimeIndexChecks:
    """The same for a time index."""

    def __init__(self, entries: Entries, base_offset: int, path: str, found: FindingList) -> None:
        relative = entries["relative_offset"].astype(np.int64)
        self._timestamps = entries["timestamp"].astype(np.int64)
        self._offsets = relative + base_offset
        self._path, self._found = path, found
        self._last_offset = base_offset - 1
        self._largest = -1
        wrong = (self._timestamps < 0) | (relative < 0)
        # Timestamps rise strictly, for an entry is written for a larger one only (Kafka's
        # TimeIndex.maybeAppend); offsets never fall.
        wrong[1:] |= (np.diff(self._timestamps) <= 0) | (np.diff(relative) < 0)
        self._is_sorted = not wrong.any()
        if not self._is_sorted:
            self._say(int(np.argmax(wrong)), "it does not lie above the one before it")

    def add(self, rows: Rows) -> None:
        """The next batches."""
        if not self._is_sorted or not rows.size:
            return
        # An entry has the largest timestamp from the segment's start to its offset: the running
        # maximum there must be that very number.
        largest = np.maximum.accumulate(rows["max_timestamp"])
        np.maximum(largest, self._largest, out=largest)
        bounds = [self._last_offset + 1, int(rows["last_offset"][-1]) + 1]
        first, stop = np.searchsorted(self._offsets, bounds)
        if first < stop:
            offsets, timestamps = self._offsets[first:stop], self._timestamps[first:stop]
            b = np.searchsorted(rows["last_offset"], offsets)
            # An offset between two batches: what is up to it ends with the one before.
            found = np.where(
                rows["base_offset"][b] <= offsets,
                largest[b],
                np.concatenate([[self._largest], largest[:-1]])[b],
            )
            for entry in np.flatnonzero(found != timestamps)[:1].tolist():
                self._say(int(first) + entry, f"the largest up to there is {found[entry]}")
        self._last_offset = int(rows["last_offset"][-1])
        self._largest = int(largest[-1])

    def end(self, *, is_whole: bool) -> None:
        """After the last batch."""
        beyond = self._offsets > self._last_offset
        if self._is_sorted and is_whole and beyond.any():
            self._say(int(np.argmax(beyond)), f"the log's last offset is {self._last_offset}")

    def _say(self, entry: int, text: str) -> None:
        self._found.add(
            "time-index-disagrees",
            f"entry {entry} is (timestamp {self._timestamps[entry]}, offset "
            f"{self._offsets[entry]}): {text}",
            path=self._path,
            position=12 * entry,
            offset=int(self._offsets[entry]),
        )
