"""A read by keys leaves out what cannot hold them, by filters that earlier reads kept.

Ranges of a segment of which there is no filter are read as a whole, and give one. It is kept if all
of the range was read, sound and with its checksums; of an active segment, and of remote storage,
nothing is kept. What is left out is not looked at, so damage that came after the filter was made
shows only where a key may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches import batch_table
from kafkalog.batches.record_areas import RecordAreas
from kafkalog.batches.spans import RecordSpans
from kafkalog.reading.header_filter import wanted_runs
from kafkalog.reading.key_filter import KeyFilter, KeyFilterBuilder, Mask, Rows, wanted_table
from kafkalog.reading.key_filter_files import KeyFilterFiles, SegmentFile
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.splits import ScanSplit
from kafkalog.remote.stores import is_remote

# Blocks up to this between those that are looked into are read with them, and not decompressed: a
# part of its own costs as much as half a MiB that is read and summed up.
_NEAR_BYTES = 256 * 1024

# Filters, each with which of its blocks can hold a wanted key.
Filters: TypeAlias = list[tuple[KeyFilter, Mask]]


class Making:
    """A filter that is being made of a part, while it is read."""

    def __init__(self, part: ScanSplit, wanted: Mask) -> None:
        self.segment = SegmentFile.of(part.path)
        self._part = part
        self._wanted = wanted
        self._builder = KeyFilterBuilder()

    def add_batches(self, rows: Rows) -> None:
        """All batches of a chunk, before the records of any of them."""
        part, has_none = self._part, batch_table.is_control(rows)
        # Of batches outside of the wanted offsets no checksum was looked at: the bit that makes one
        # of control may be damage.
        if part.start_offset is not None:
            has_none &= rows["base_offset"] >= part.start_offset
        if part.end_offset is not None:
            has_none &= rows["last_offset"] < part.end_offset
        self._builder.add_batches(rows, has_none)

    def add_records(self, areas: RecordAreas, spans: RecordSpans) -> RecordAreas:
        """All records of some batches; the areas of those that can hold a wanted key."""
        self._builder.add_records(areas.buf, areas.rows, spans)
        chosen = self._builder.can_hold(self._wanted)
        if chosen.all():
            return areas
        return replace(
            areas, starts=areas.starts[chosen], ends=areas.ends[chosen], rows=areas.rows[chosen]
        )

    def made(self) -> KeyFilter | None:
        """When the whole part was read: its filter, if batches fill it."""
        return self._builder.filter_of(self._part.start, self._part.end)


class Part(NamedTuple):
    """Bytes of a split that are read, and the last offset before them. making: collects the filter
    of a part that has none."""

    split: ScanSplit
    previous_offset: int
    making: Making | None = None


class KeySearch:
    """The search of one request, split by split."""

    def __init__(self, request: ReadRequest, directory: str) -> None:
        self._files = KeyFilterFiles(directory)
        self._wanted = wanted_table(request.row_filter.keys or ())
        self._makes = request.verify_checksums and request.mode == ReadMode.FAILFAST
        self._known: tuple[NDArray[np.int64], NDArray[np.int64], Mask] | None = None

    @classmethod
    def of(cls, request: ReadRequest) -> KeySearch | None:
        """None where no keys are asked for, or filters are not kept. Keys of control records are
        in no filter."""
        directory = request.key_filter_dir
        if directory is None or request.row_filter.keys is None or request.include_control:
            return None
        return cls(request, directory)

    def parts(self, split: ScanSplit, filters: Filters) -> Iterator[Part]:
        """What is to be read of a split, in order: runs of blocks that can hold a key, and what no
        filter is about."""
        at, previous_offset = split.start, split.segment_base_offset - 1
        for one, can_hold in filters:
            if one.start > at:
                yield self._unknown(replace(split, start=at, end=one.start), previous_offset)
            yield from _runs(one, can_hold, split, previous_offset)
            at, previous_offset = min(one.end, split.end), int(one.last_offsets[-1])
        if at < split.end:
            yield self._unknown(replace(split, start=at), previous_offset)

    def filters(self, split: ScanSplit) -> Filters:
        """Those of the split with what their blocks can hold, which `can_hold` goes by from now
        on."""
        self._known = None
        if is_remote(split.path) or split.is_active:
            return []
        known = self._files.filters(split.path, split.start, split.end)
        found = [(one, one.can_hold(self._wanted)) for one in known]
        if found:
            self._known = (
                np.concatenate([one.positions[:-1] for one in known]),
                np.concatenate([one.positions[1:] for one in known]),
                np.concatenate([can_hold for _, can_hold in found]),
            )
        return found

    def can_hold(self, rows: Rows) -> Mask:
        """bool[b]: the batches of the split that can hold a wanted key, as far as is known."""
        if self._known is None:
            return np.ones(len(rows), np.bool_)
        starts, ends, can_hold = self._known
        positions = rows["position"]
        at = np.maximum(np.searchsorted(starts, positions, side="right") - 1, 0)
        found: Mask = can_hold[at] | (positions < starts[at]) | (positions >= ends[at])
        return found

    def keep(self, path: str, making: Making) -> None:
        """The filter of a part that was read to its end."""
        made = making.made()
        if made is not None:
            self._files.keep(path, made, making.segment)

    def _unknown(self, part: ScanSplit, previous_offset: int) -> Part:
        is_kept = self._makes and not is_remote(part.path) and not part.is_active
        return Part(part, previous_offset, Making(part, self._wanted) if is_kept else None)


def _runs(one: KeyFilter, can_hold: Mask, split: ScanSplit, previous_offset: int) -> Iterator[Part]:
    """The blocks of a filter that can hold a wanted key, as far as they are the split's."""
    # A split of another size may begin or end within a block.
    starts = np.clip(one.positions[:-1], split.start, split.end)
    ends = np.clip(one.positions[1:], split.start, split.end)
    for first, stop in wanted_runs(can_hold & (starts < ends), starts, ends, _NEAR_BYTES):
        before = int(one.last_offsets[first - 1]) if first else previous_offset
        yield Part(replace(split, start=int(starts[first]), end=int(ends[stop - 1])), before)
