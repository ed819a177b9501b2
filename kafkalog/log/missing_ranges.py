"""Which offsets of a partition are not here though its log once had them: THE place that says so.

Three places of a log can be missing as whole segments or files, and each has its witnesses: in
front of the first segment (`missing_in_front`), between two (`missing_between`), at the end
(`missing_at_the_end`). What each of them proves, and what not, is said there.

A partition directory that was named by its `.log` files is not judged. Beside a live broker things
change while they are looked at: what looks missing is looked at once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kafkalog.errors import LogChangedError
from kafkalog.format.checkpoints import EpochEntry
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.disk_traces import DiskTraces, read_traces
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.missing_at_the_end import missing_at_the_end
from kafkalog.log.missing_between import missing_between
from kafkalog.log.missing_in_front import missing_in_front
from kafkalog.log.missing_range import MissingRange
from kafkalog.log.remote_segments import REMOTE
from kafkalog.log.segment_span import SpanOf, segment_span

# How often a segment may go while it is looked at.
_TRIES = 3


def missing_ranges(
    partition: PartitionInventory,
    start_offset: int = 0,
    end_offset: int = MAX_INT64,
    *,
    span_of: SpanOf = segment_span,
    reads_indexes: bool = True,
    epochs: Sequence[EpochEntry] | None = None,
) -> list[MissingRange]:
    """What is missing of the offsets from `start_offset` to `end_offset` (excluded), in order.

    A few KiB of each segment in that range are read, and the small files of the partition; with
    `span_of` of a caller who knows the segments none, unless something is missing, and without
    `reads_indexes` those of the last segment are not asked; `epochs`: as for `read_traces`. OSError
    or LogChangedError if a segment cannot be read.
    """
    bounds = start_offset, end_offset
    # Witnesses before what they speak of: what a live broker appends between the two reads makes
    # the log longer than they say, never shorter.
    traces = None
    if partition.is_whole:
        traces = read_traces(partition, reads_indexes=reads_indexes, epochs=epochs)
    for _ in range(_TRIES):
        try:
            return _missing_now(partition, bounds, span_of, traces)
        except (FileNotFoundError, LogChangedError):
            # Retention or a swap took a segment meanwhile.
            partition, span_of, traces = reopened(partition), segment_span, None
    return _missing_now(partition, bounds, span_of, traces)


def _missing_now(
    partition: PartitionInventory,
    bounds: tuple[int, int],
    span_of: SpanOf,
    known: DiskTraces | None,
) -> list[MissingRange]:
    if not partition.is_whole:
        return []
    traces = known or read_traces(partition)
    found = list(_judged(partition, traces, traces, bounds, span_of))
    if not found:
        return []
    # Something seems to be missing. Looked at once more: a file that was seen before it was
    # renamed, or after it was deleted, is not a loss.
    again = reopened(partition)
    # The log's end after what speaks of it, its start before: neither seems to have moved back.
    return list(_judged(again, read_traces(again), traces, bounds, segment_span))


def reopened(partition: PartitionInventory) -> PartitionInventory:
    """The partition as it is now, with the remote segments it had; one without a broker's directory
    as it was."""
    if partition.is_remote_alone:
        return partition
    found = reopen_partition(partition.path)
    if found is None:
        return partition
    remote = [segment for segment in partition.segments if segment.state == REMOTE]
    if not remote:
        return found
    return replace(
        found,
        segments=(*remote, *found.segments),
        log_start_offset=partition.log_start_offset,
        has_remote_segments=True,
    )


def _judged(
    partition: PartitionInventory,
    now: DiskTraces,
    before: DiskTraces,
    bounds: tuple[int, int],
    span_of: SpanOf,
) -> Iterator[MissingRange]:
    yield from _within(missing_in_front(partition, now), *bounds)
    start = max(bounds[0], partition.log_start_offset)
    yield from _within(missing_between(partition, (start, bounds[1]), span_of), start, bounds[1])
    yield from _within(missing_at_the_end(partition, before, span_of), start, bounds[1])


def _within(
    ranges: Iterable[MissingRange], start_offset: int, end_offset: int
) -> Iterator[MissingRange]:
    for found in ranges:
        if max(found.start_offset, start_offset) < min(found.end_offset, end_offset):
            yield found
