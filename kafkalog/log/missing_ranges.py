"""Which offsets of a partition are not here though its log once had them: THE place that says so.

Three places of a log can be missing as whole segments or files, and each has its witnesses:

 in front   the log starts below its first segment: by log-start-offset-checkpoint, by the leader
            epochs, by indexes without their `.log`
 between    a segment ends before the next one's base offset, or begins above its own
 at the end something knows offsets past the last batch: recovery point, high watermark, cleaner
            checkpoint, leader epochs, a producer snapshot, entries of indexes

What each of them proves, and what not:

* A broker writes its line of log-start-offset-checkpoint once a minute and when it stops in order.
  A crash behind DeleteRecords and retention leaves an older one, so without a stop in order the
  line alone proves nothing. Leader epochs are cut as soon as the start moves: those that begin
  below the first segment prove it, those that begin with it or above contradict the line. Segments
  that still lie there as `.deleted` were taken by retention a moment ago.
* Between two segments of a log that was never compacted every offset has its batch. Where
  compaction may have been (`compaction_signs`) a gap can be right, unless an index is there without
  its `.log`, or has entries behind its segment's end: the cleaner makes indexes anew.
* Recovery point, high watermark and the others are never above the log's end on a disk that is
  whole: a broker lowers them when it cuts the log. After a crash the log may have been cut to less
  than what they say; those offsets are not here either. A file that contradicts the rest (see
  `disk_traces`) needs a second one that agrees.

A partition directory that was named by its `.log` files is not judged. Beside a live broker things
change while they are looked at: what looks missing is looked at once more.

Source: Kafka LogManager, LogLoader, UnifiedLog.maybeIncrementLogStartOffset, LeaderEpochFileCache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest

from kafkalog.errors import LogChangedError
from kafkalog.format.checkpoints import LOG_START_OFFSET_FILE
from kafkalog.format.constants import MAX_INT64
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    log_file_name,
    offset_index_file_name,
)
from kafkalog.log.compaction_signs import batches_sign, cleaner_would_tell, compaction_sign
from kafkalog.log.disk_traces import DiskTraces, Witness, index_witnesses, read_traces
from kafkalog.log.inventory import PartitionInventory, PartitionKind, SegmentInfo
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.log_dir import reopen_partition
from kafkalog.log.own_cluster import is_tiered
from kafkalog.log.segment_span import SegmentSpan, segment_span

REMOTE = "remote"
# How often a segment may go while it is looked at.
_TRIES = 3


class MissingPlace(StrEnum):
    """Where in the log."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


class MissingCause(StrEnum):
    """What became of the offsets, as far as the disk tells.

    lost      proven, see the head of the module
    remote    proven to be not here; the cluster says that the topic is tiered
    cleaning  of a compacted topic, where the cleaner has not said that it came so far: a loss, or a
              round that was interrupted
    compaction  of a log that is compacted, or looks so, and nothing tells how far
    stale     a log start that can be older than what retention took
    doubtful  one file alone speaks of them, and others contradict it
    damage    they may be in batches that cannot be walked over
    """

    LOST = "lost"
    REMOTE = "remote"
    CLEANING = "cleaning"
    COMPACTION = "compaction"
    STALE = "stale"
    DOUBTFUL = "doubtful"
    DAMAGE = "damage"


@dataclass(frozen=True, slots=True)
class MissingRange(JsonFacts):
    """No file here has the offsets from `start_offset` to `end_offset` (excluded). `evidence` says
    how that is known, or why it proves nothing; `path` is the file behind the gap, the last segment
    or the partition's directory, `position` where that segment ends.
    """

    place: MissingPlace
    start_offset: int
    end_offset: int
    cause: MissingCause
    evidence: str
    path: str
    position: int | None = None

    @property
    def is_proven(self) -> bool:
        """Whether the log had these offsets, and they are not here."""
        return self.cause in (MissingCause.LOST, MissingCause.REMOTE)

    def __str__(self) -> str:
        return f"offsets {self.start_offset} to {self.end_offset - 1} are not here: {self.evidence}"


def missing_ranges(
    partition: PartitionInventory, start_offset: int = 0, end_offset: int = MAX_INT64
) -> list[MissingRange]:
    """What is missing of the offsets from `start_offset` to `end_offset` (excluded), in order.

    A few KiB of each segment in that range are read, and the small files of the partition. OSError
    or LogChangedError if a segment cannot be read.
    """
    bounds = start_offset, end_offset
    for _ in range(_TRIES):
        try:
            return _missing_now(partition, bounds)
        except (FileNotFoundError, LogChangedError):
            # Retention or a swap took a segment meanwhile.
            partition = reopened(partition)
    return _missing_now(partition, bounds)


def _missing_now(partition: PartitionInventory, bounds: tuple[int, int]) -> list[MissingRange]:
    if not partition.is_whole:
        return []
    traces = read_traces(partition)
    found = list(_judged(partition, traces, traces, bounds))
    if not found:
        return []
    again = reopened(partition)
    # The log's end after what speaks of it, its start before: neither seems to have moved back.
    return list(_judged(again, read_traces(again), traces, bounds))


def reopened(partition: PartitionInventory) -> PartitionInventory:
    """The partition as it is now, with the remote segments it had."""
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
) -> Iterator[MissingRange]:
    yield from _within(_in_front(partition, now), *bounds)
    start = max(bounds[0], partition.log_start_offset)
    yield from _within(_between(partition, (start, bounds[1])), start, bounds[1])
    yield from _within(_at_the_end(partition, before), start, bounds[1])


def _within(
    ranges: Iterable[MissingRange], start_offset: int, end_offset: int
) -> Iterator[MissingRange]:
    for found in ranges:
        if max(found.start_offset, start_offset) < min(found.end_offset, end_offset):
            yield found


# -- in front --------------------------------------------------------------------------------------


def _in_front(partition: PartitionInventory, traces: DiskTraces) -> Iterator[MissingRange]:
    if not partition.segments or partition.kind is not PartitionKind.LIVE:
        return
    first = partition.segments[0]
    line, epochs = traces.log_start, traces.first_epoch_offset
    orphan = min(_orphans(partition), default=None)
    if line is not None and line < first.base_offset:
        start, known = line, f"{LOG_START_OFFSET_FILE} says {line}"
    elif line is None and epochs is not None and epochs < first.base_offset:
        start, known = epochs, f"{LEADER_EPOCH_CHECKPOINT_FILE} begins at {epochs}"
    elif orphan is not None and orphan < first.base_offset and orphan >= (line or 0):
        start, known = orphan, f"{offset_index_file_name(orphan)} has no .log"
    else:
        return
    begins = f"{known}, the first segment begins at {first.base_offset}"
    has_orphan = orphan is not None and start <= orphan < first.base_offset
    doubt = _doubt_of_start(partition, traces, first.base_offset, has_orphan=has_orphan)
    cause = MissingCause.STALE if doubt else MissingCause.LOST
    if doubt:
        begins += f"; not proven: {doubt}"
    elif first.state != REMOTE and is_tiered(partition):
        cause = MissingCause.REMOTE
        begins += "; the topic is tiered: remoteDir (remote_dirs) reads them"
    elif first.state != REMOTE and partition.has_remote_segments:
        begins += "; of a tiered topic they are in remote storage (remoteDir)"
    yield MissingRange(MissingPlace.START, start, first.base_offset, cause, begins, partition.path)


def _doubt_of_start(
    partition: PartitionInventory, traces: DiskTraces, first_base: int, *, has_orphan: bool
) -> str:
    """Why offsets in front of the first segment need not have been lost; empty if they were.
    `has_orphan`: an index there outlived its `.log`, which retention takes together.
    """
    going = [s.base_offset for s in partition.other_segments if s.base_offset < first_base]
    if going:
        return f"{log_file_name(max(going))} waits for its deletion"
    epochs = traces.first_epoch_offset
    if epochs is not None:
        return "" if epochs < first_base else f"the leader epochs begin at {epochs}"
    if not traces.is_clean_stop and not has_orphan:
        return "the broker did not stop in order, and a log start can be older than retention"
    return ""


def _orphans(partition: PartitionInventory) -> list[int]:
    """Base offsets of indexes without a `.log` of any state."""
    others = {segment.base_offset for segment in partition.other_segments}
    return [base for base in partition.orphan_indexes if base not in others]


# -- between ---------------------------------------------------------------------------------------


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


def _gaps(segments: Sequence[SegmentInfo], bounds: tuple[int, int]) -> Iterator[_Gap]:
    """At the borders of the segments that touch the wanted offsets."""
    before: SegmentSpan | None = None
    for segment, following in zip_longest(segments, segments[1:]):
        if following is not None and following.base_offset <= bounds[0]:
            continue
        span = None
        end = segment.base_offset
        if end < bounds[1]:
            span = segment_span(segment)
            if not span.is_damaged:
                end = max(end, span.first_offset or 0)
        start = segment.base_offset if before is None else before.next_offset
        if start < end:
            yield _Gap(before, segment, start, end)
        if span is None:
            return
        before = span


def _between(partition: PartitionInventory, bounds: tuple[int, int]) -> Iterator[MissingRange]:
    gaps = list(_gaps(partition.segments, bounds))
    if not gaps:
        return
    sign, cause = compaction_sign(partition), MissingCause.CLEANING
    if sign is None:
        sign = batches_sign(partition)
        cause = MissingCause.COMPACTION
    elif not cleaner_would_tell(partition):
        cause = MissingCause.COMPACTION
    cleaned_to = partition.checkpoints.cleaner or 0
    for gap in gaps:
        if gap.before is not None and (gap.before.is_damaged or gap.before.has_tail):
            yield _behind_bad_batches(gap.before, gap.end, MissingPlace.MIDDLE, partition)
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
    for base in _orphans(partition):
        if gap.start <= base < gap.end:
            return f"{offset_index_file_name(base)} has no .log"
    if gap.before is None or gap.behind.state == REMOTE:
        return ""
    known = index_witnesses(partition.path, gap.before.base_offset)
    # Offsets of the next segment no index of this one ever had.
    within = [w for w in known if gap.start < w.end_offset <= gap.behind.base_offset]
    agreed = _agreed_end(within)
    return "" if agreed is None else f"an index of the segment before goes to {agreed}"


# -- at the end ------------------------------------------------------------------------------------


def _at_the_end(partition: PartitionInventory, traces: DiskTraces) -> Iterator[MissingRange]:
    end = max(partition.log_end_offset, partition.log_start_offset)
    beyond = [witness for witness in traces.ends if witness.end_offset > end]
    span = segment_span(partition.segments[-1]) if beyond and partition.segments else None
    if span is not None:
        # The inventory's end is where a broker's is; past damage there may be more.
        end = max(end, span.next_offset)
        beyond = [witness for witness in beyond if witness.end_offset > end]
    agreed = _agreed_end(beyond)
    if agreed is None and all(witness.is_entry for witness in beyond):
        return  # nothing, or one entry of an index that does not fit its log
    if span is not None and span.is_damaged:
        ends_at = agreed or max(witness.end_offset for witness in beyond)
        yield _behind_bad_batches(span, ends_at, MissingPlace.END, partition)
        return
    ends = "there is no segment" if span is None else f"the log ends at {end}"
    said = ", ".join(dict.fromkeys(str(witness) for witness in beyond))
    doubt = "; not proven: nothing else knows of them" if agreed is None else ""
    yield MissingRange(
        MissingPlace.END, end, agreed or max(w.end_offset for w in beyond),
        MissingCause.DOUBTFUL if agreed is None else MissingCause.LOST,
        f"{ends}, {said}{doubt}",
        partition.path if span is None else partition.segments[-1].path,
        None if span is None else span.end_position,
    )  # fmt: skip


def _behind_bad_batches(
    span: SegmentSpan, end: int, place: MissingPlace, partition: PartitionInventory
) -> MissingRange:
    """A segment whose batches break the format, or that ends inside of one: who reads it says so,
    and what else there is.
    """
    path = next(s.path for s in partition.segments if s.base_offset == span.base_offset)
    evidence = "not proven: the segment in front of them is damaged there"
    return MissingRange(
        place, span.next_offset, end, MissingCause.DAMAGE, evidence, path, span.end_position
    )


def _agreed_end(witnesses: Sequence[Witness]) -> int | None:
    """Up to where a strong witness knows the log, or else two others; None if none do."""
    strong = [witness.end_offset for witness in witnesses if witness.is_strong]
    if strong:
        return max(strong)
    return sorted(witness.end_offset for witness in witnesses)[-2] if len(witnesses) > 1 else None
