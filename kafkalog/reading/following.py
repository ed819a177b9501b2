"""A log that grows while it is read: offsets up to which it reaches now, and what lies between two
of them.

Offsets are {topic: {partition: next offset}}, as JSON has them and a stream's checkpoint keeps
them. The active segment is read up to its last whole batch. Between the plan of a read and the read
segments roll, are deleted by retention or swapped by compaction. An open file keeps its content, so
a read that has begun ends. Before a row of the segment was given out the file of the plan is looked
for under the name it was set aside by: a broker keeps `.deleted` files for file.delete.delay.ms,
our own runs what they can undo. Where it is gone the directory is looked at again for the same
offsets. What is missing of them then is lost, whether retention took it or anybody else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from kafkalog.errors import InvalidConfigError, LogChangedError, OffsetOutOfRangeError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.reading.at_rest import partition_at_rest, partitions_at_rest
from kafkalog.reading.data_loss import check_loss, wanted_start
from kafkalog.reading.lookups import high_watermark, last_stable_offset
from kafkalog.reading.offset_ranges import offset_range
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import (
    HIGH_WATERMARK,
    LATEST,
    LATEST_OFFSET,
    PartitionSelection,
)
from kafkalog.reading.split_plan import plan_reading
from kafkalog.reading.splits import ScanSplit, SplitNeeds, SplitSizes, pack_splits
from kafkalog.reading.stream_offsets import Offsets, as_numbers, as_offsets, limited_ends
from kafkalog.reading.view_reader import ScanNeeds, ScanTask

# How often a segment may be gone again when it is looked for anew.
_TRIES = 10


def first_offsets(paths: Sequence[str], selection: PartitionSelection) -> Offsets:
    """Where a new stream begins: what the selection says, of each partition that is there.

    OffsetOutOfRangeError where that is the earliest offset, and what the log began with is lost.
    """
    begins = {}
    for partition in _partitions(paths, selection):
        start = _first(selection, partition)
        check_loss(partition, selection, wanted_start(selection, partition, start), start)
        begins[partition.topic_partition] = start
    return as_offsets(begins)


def end_offsets(paths: Sequence[str], selection: PartitionSelection) -> Offsets:
    """How far each partition reaches now."""
    return as_offsets(
        {p.topic_partition: _end(selection, p) for p in _partitions(paths, selection)}
    )


def latest_offsets(
    paths: Sequence[str],
    selection: PartitionSelection,
    start: Offsets,
    *,
    up_to: Offsets | None = None,
    max_offsets: int | None = None,
) -> Offsets:
    """Where a batch that begins at `start` ends: where the logs end now, at most at `up_to` (and
    without partitions that are not in it), and at most `max_offsets` offsets above `start` in all,
    shared in proportion to what each partition has.

    A partition that is not in `start` begins where the selection says; one that is gone stays where
    it was. OffsetOutOfRangeError for a log that ends below `start`, unless `fail_on_data_loss` is
    off.
    """
    begins = as_numbers(start)
    ends = dict(begins)
    bounds = None if up_to is None else as_numbers(up_to)
    for partition in _partitions(paths, selection):
        name = partition.topic_partition
        if bounds is not None and name not in bounds:
            continue
        if name not in begins:
            begins[name] = _start(selection, partition)
        end = _end(selection, partition)
        if end < begins[name]:
            _refuse_loss(selection, partition, begins[name])
        # What arrived since the trigger began waits for the next one.
        end = end if bounds is None else min(end, bounds[name])
        # A log that was cut below where the stream stands: never backwards, or records would come
        # twice.
        ends[name] = max(end, begins[name])
    return as_offsets(ends if max_offsets is None else limited_ends(begins, ends, max_offsets))


def plan_between(
    paths: Sequence[str],
    selection: PartitionSelection,
    start: Offsets,
    end: Offsets,
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    """Tasks for the records from `start` (included) to `end` (excluded), a segment a split.

    OffsetOutOfRangeError where the log begins above `start`: they were deleted before they were
    read, or the whole partition is gone; with `fail_on_data_loss` off what is there is read.
    """
    for tries in reversed(range(_TRIES)):
        try:
            return _planned(paths, selection, as_numbers(start), as_numbers(end), needs)
        except (LogChangedError, FileNotFoundError):  # after it was listed, before it was planned
            if not tries:
                raise
    raise AssertionError("the last try returns or raises")


def _planned(
    paths: Sequence[str],
    selection: PartitionSelection,
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    needs: ScanNeeds,
) -> list[ScanTask[ScanSplit]]:
    # What moved in this batch has to be there; a partition in which nothing is to be read may be
    # gone.
    needed = {
        name
        for name, offset in ends.items()
        if offset > begins.get(name, 0) and selection.accepts(name)
    }
    splits: list[ScanSplit] = []
    partitions = _partitions(paths, selection, needed)
    _refuse_absence(selection, needed - {p.topic_partition for p in partitions}, begins)
    for partition in partitions:
        name = partition.topic_partition
        if name not in ends:
            continue
        first = begins.get(name, partition.log_start_offset)
        if first >= ends[name]:
            continue
        # Retention was quicker than the stream.
        if first < partition.log_start_offset:
            _refuse_loss(selection, partition, first)
        is_to_the_end = ends[name] >= partition.log_end_offset
        check_loss(partition, selection, first, MAX_INT64 if is_to_the_end else ends[name])
        splits += _plan(partition, selection, first, ends[name], needs)
    return [ScanTask("records", pack) for pack in pack_splits(splits)]


def read_following(
    task: ScanTask[ScanSplit], request: ReadRequest, selection: PartitionSelection
) -> Iterator[pa.RecordBatch]:
    """The records of a task of `plan_between`; LogChangedError if the log does not come to rest,
    OffsetOutOfRangeError for what was lost since the plan was made.
    """
    needs = ScanNeeds(row_filter=request.row_filter)
    counts = ReadCounts()
    # A stack: what a split becomes is read in its place, so that offsets still rise.
    waiting = [(split, _TRIES) for split in reversed(task.pieces)]
    while waiting:
        split, tries = waiting.pop()
        try:
            # Only before the first row a split can be replaced by another one: once it is given out
            # the file is open, and its content stays whatever is renamed.
            first = next(batches := read_record_splits((split,), request, counts), None)
        except (LogChangedError, FileNotFoundError):
            if not tries:
                raise
            again = _again(split, selection, needs)
            waiting += [(found, tries - 1) for found in reversed(again)]
            continue
        if first is not None:
            yield first
            yield from batches


def _again(split: ScanSplit, selection: PartitionSelection, needs: ScanNeeds) -> list[ScanSplit]:
    """What to read for a split whose file is not there."""
    aside = _set_aside(split)
    if aside is not None:
        return [aside]
    try:
        return _anew(split, selection, needs)
    except (LogChangedError, FileNotFoundError):  # after it was listed, before it was planned
        return [split]


def _set_aside(split: ScanSplit) -> ScanSplit | None:
    """The split in the file of its plan, whatever that is called now; None where it is gone, or
    where it has the name of the plan. The bytes that an index gave may be the index of what came
    instead: offsets decide."""
    path = Path(split.path)
    try:
        with os.scandir(path.parent) as entries:
            # By inode: a rename keeps it, and a hard link of ours has the same one.
            names = [e.name for e in entries if e.inode() == split.inode and e.name != path.name]
    except OSError:
        return None
    if not names:
        return None
    return replace(split, path=str(path.with_name(names[0])), start=0, end=split.size)


def _anew(split: ScanSplit, selection: PartitionSelection, needs: ScanNeeds) -> list[ScanSplit]:
    """Where the offsets of a split are now; of those that are gone OffsetOutOfRangeError, or with
    `fail_on_data_loss` off nothing.
    """
    start = split.start_offset or 0
    end = MAX_INT64 if split.end_offset is None else split.end_offset
    partition = partition_at_rest(str(Path(split.path).parent))
    if partition is None:
        name = TopicPartition(split.topic, split.partition)
        _refuse_absence(selection, {name}, {name: start})
        return []
    if start < partition.log_start_offset:
        _refuse_loss(selection, partition, start)
    check_loss(partition, selection, start, end)
    return list(_plan(partition, selection, start, end, needs))


def _plan(
    partition: PartitionInventory,
    selection: PartitionSelection,
    start: int,
    end: int,
    needs: ScanNeeds,
) -> Iterator[ScanSplit]:
    """A split a segment, each with the offsets that are its own."""
    name = partition.topic_partition
    exact = replace(
        selection,
        starting_offsets={name: start},
        ending_offsets={name: end},
        starting_timestamp=None,
        ending_timestamp=None,
        fail_on_data_loss=False,
        reports_loss=False,
    )
    bases = [segment.base_offset for segment in partition.segments]
    split_needs = SplitNeeds(row_filter=needs.row_filter, with_transactions=needs.with_transactions)
    plan = plan_reading([partition], exact, SplitSizes(split_bytes=MAX_INT64), split_needs)
    for split in plan.splits:
        later = [base for base in bases if base > split.segment_base_offset]
        # Where segments overlap, as after a compaction that is under way, each offset is read from
        # one file.
        following = min([end, *later])
        yield replace(
            split,
            start_offset=max(start, split.segment_base_offset, split.start_offset or 0),
            end_offset=following if split.end_offset is None else min(split.end_offset, following),
        )


def _partitions(
    paths: Sequence[str],
    selection: PartitionSelection,
    needed: Collection[TopicPartition] = (),
) -> list[PartitionInventory]:
    """The live directories; InvalidConfigError where two of them hold the same partition, whose
    offsets a stream could not tell apart."""
    found = partitions_at_rest(paths, selection, needed)
    names = [partition.topic_partition for partition in found]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InvalidConfigError(f"a stream reads one replica; there are two of {', '.join(twice)}")
    return found


def _first(selection: PartitionSelection, partition: PartitionInventory) -> int:
    """Where a new stream begins in a partition that is there; InvalidConfigError for one that the
    starting offsets leave out, as Spark's Kafka source."""
    offsets = selection.starting_offsets
    is_latest = (
        offsets == LATEST
        if isinstance(offsets, str)
        else offsets.get(partition.topic_partition) == LATEST_OFFSET
    )
    if is_latest and selection.starting_timestamp is None:
        return _end(selection, partition)
    start, _ = offset_range(replace(selection, read_committed=False), partition)
    return partition.log_start_offset if start is None else start


def _start(selection: PartitionSelection, partition: PartitionInventory) -> int:
    """Where a batch begins in a partition that the stream has not met yet: one that came later is
    read from its earliest offset."""
    offsets = selection.starting_offsets
    if selection.starting_timestamp is None and (
        offsets == LATEST
        if isinstance(offsets, str)
        else offsets.get(partition.topic_partition, LATEST_OFFSET) == LATEST_OFFSET
    ):
        return partition.log_start_offset
    start, _ = offset_range(replace(selection, read_committed=False), partition)
    return partition.log_start_offset if start is None else start


def _end(selection: PartitionSelection, partition: PartitionInventory) -> int:
    if selection.read_committed:
        return last_stable_offset(partition, bears_damage=not selection.refuses_loss)
    if selection.ending_offsets == HIGH_WATERMARK:
        return high_watermark(partition)
    return partition.log_end_offset


def _refuse_loss(selection: PartitionSelection, partition: PartitionInventory, offset: int) -> None:
    if selection.fail_on_data_loss:
        raise OffsetOutOfRangeError(
            f"the stream stands at an offset the log does not have: it has "
            f"{partition.log_start_offset} to {partition.log_end_offset}; failOnDataLoss=false goes"
            " on with what is there",
            path=partition.path,
            offset=offset,
        )


def _refuse_absence(
    selection: PartitionSelection,
    absent: Collection[TopicPartition],
    begins: Mapping[TopicPartition, int],
) -> None:
    if absent and selection.fail_on_data_loss:
        name = min(absent)
        raise OffsetOutOfRangeError(
            f"the stream stands in partition {name}, which is not there any more;"
            " failOnDataLoss=false goes on without it",
            offset=begins.get(name, 0),
        )
