"""Whether a segment ends before the next one's base offset, or begins above its own.

Between two segments of a log that was never compacted every offset has its batch. Where compaction
may have been (`compaction_signs`) a gap can be right, unless an index is there without its `.log`,
or has entries behind its segment's end: the cleaner makes indexes anew.

Source: Kafka LogLoader, Cleaner.cleanSegments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kafkalog.format.file_names import offset_index_file_name
from kafkalog.log.compaction_signs import batches_sign, compaction_sign, has_cleaner_checkpoint
from kafkalog.log.disk_traces import index_witnesses
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.missing_range import (
    MissingCause,
    MissingPlace,
    MissingRange,
    agreed_end,
    behind_bad_batches,
    orphan_offsets,
)
from kafkalog.log.remote_segments import REMOTE, span_by_manifest
from kafkalog.log.segment_span import SegmentSpan, SpanOf


@dataclass(frozen=True, slots=True)
class _Gap:
    """No batch from `start` to `end` (excluded), between `before` (None: in front of all that was
    looked at) and the segment `behind`.
    """

    before: SegmentSpan | None
    behind: SegmentInfo
    start: int
    end: int

    def __str__(self) -> str:
        base = self.behind.base_offset
        text = "" if self.before is None else f"a segment ends at {self.start}, "
        text += f"the next one begins at {base}" if text else f"a segment begins at {base}"
        return text if self.end == base else f"{text}, its first batch at {self.end}"


def _gaps(
    segments: Sequence[SegmentInfo], bounds: tuple[int, int], span_of: SpanOf
) -> Iterator[_Gap]:
    """At the borders of the segments that touch the wanted offsets."""
    before: SegmentSpan | None = None
    for segment, following in zip_longest(segments, segments[1:]):
        # The next one begins at or below what is asked for: all of this one lies in front of it.
        if following is not None and following.base_offset <= bounds[0]:
            continue
        span = None
        end = segment.base_offset
        if end < bounds[1]:
            span = span_by_manifest(segment, bounds) or span_of(segment)
            if not span.is_damaged:
                end = max(end, span.first_offset or 0)
        start = segment.base_offset if before is None else before.next_offset
        if start < end:
            yield _Gap(before, segment, start, end)
        if span is None:
            return
        before = span


def missing_between(
    partition: PartitionInventory, bounds: tuple[int, int], span_of: SpanOf
) -> Iterator[MissingRange]:
    """At the borders of the segments that hold the offsets `bounds` (the last excluded)."""
    gaps = list(_gaps(partition.segments, bounds, span_of))
    if not gaps:
        return
    # Compaction leaves gaps as well. So a gap proves a loss only where the log was never compacted,
    # or where an index shows that the records were there after its last round.
    sign, cause = compaction_sign(partition), MissingCause.CLEANING
    if sign is None:
        sign = batches_sign(partition)
        cause = MissingCause.COMPACTION
    elif not has_cleaner_checkpoint(partition):
        cause = MissingCause.COMPACTION
    cleaned_to = partition.checkpoints.cleaner or 0
    for gap in gaps:
        # The end of the segment in front is not known: its batches may have had these offsets.
        if gap.before is not None and (gap.before.is_damaged or gap.before.has_tail):
            yield behind_bad_batches(gap.before, gap.end, MissingPlace.MIDDLE, partition)
            continue
        proof = "" if sign is None else _proof_in_indexes(partition, gap)
        is_proven = sign is None or bool(proof)
        if not is_proven and gap.end <= cleaned_to:
            continue  # as the cleaner leaves it
        why = proof if is_proven else f"not proven: {sign}"
        yield MissingRange(
            MissingPlace.MIDDLE, gap.start, gap.end, MissingCause.LOST if is_proven else cause,
            f"{gap}; {why}" if why else str(gap), gap.behind.path,
        )  # fmt: skip


def _proof_in_indexes(partition: PartitionInventory, gap: _Gap) -> str:
    """What shows that the offsets of a gap were not taken by compaction; empty where nothing
    does.
    """
    for base in orphan_offsets(partition):
        if gap.start <= base < gap.end:
            return f"{offset_index_file_name(base)} has no .log"
    if gap.before is None or gap.behind.state == REMOTE:
        return ""
    known = index_witnesses(partition.path, gap.before.base_offset)
    # Offsets of the next segment no index of this one ever had.
    within = [w for w in known if gap.start < w.end_offset <= gap.behind.base_offset]
    agreed = agreed_end(within)
    return "" if agreed is None else f"an index of the segment before goes to {agreed}"
