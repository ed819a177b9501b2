"""Which logs nothing is wrong with, of those whose headers were just read: see `sound_facts`.

Everything here holds as long as the scan does: for the same directory, lines of checkpoints and
bounds of the log. What depends on settings and on the time `sound_logs` looks at, each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kafkalog.auditing.known_scan import KnownLog, KnownSegment
from kafkalog.auditing.sound_facts import SoundFacts, segment_path
from kafkalog.contents.header_contents import HeaderContents
from kafkalog.contents.segment_statistics import CODEC_NAMES
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.disk_traces import all_agree
from kafkalog.log.index_condition import INDEX_CONDITIONS, OffsetIndexEnd, time_index_state
from kafkalog.log.inventory import PartitionInventory, PartitionKind, SegmentInfo
from kafkalog.log.known_directory import known_directory
from kafkalog.log.log_numbers import NONE, LogNumbers, SegmentNumbers
from kafkalog.log.segment_span import span_of_facts


def sound_facts(
    partition: PartitionInventory,
    log: KnownLog,
    segments: Sequence[KnownSegment],
    expiration_ms: int,
    index_ends: Mapping[int, OffsetIndexEnd],
) -> SoundFacts | None:
    """The numbers of a log; None of one that is not of this kind. `index_ends`: of the offset
    indexes by base offset, of segments whose headers were walked over just now.
    """
    infos, headers = partition.segments, log.headers
    if headers is None or len(segments) != len(infos):
        return None
    if not (
        _is_sound_directory(partition)
        and _ends_as_all_say(partition, log)
        and _is_sound(log, headers)
        and all(map(_is_sound_segment, segments, infos))
        and not _has_gap(segments)
        and segments[-1].facts.next_offset == partition.log_end_offset
    ):
        return None
    found = SoundFacts(
        _log_numbers(partition, log, headers, expiration_ms),
        tuple(
            number
            for segment, info in zip(segments, infos, strict=True)
            for number in _numbers(segment, info, index_ends.get(info.base_offset))
        ),
        tuple(
            number
            for part in headers.slices
            for number in (
                part.from_ms, part.to_ms, part.closed_bytes, part.active_bytes, part.records,
            )
        ),
        tuple(producer.last_timestamp_ms for producer in log.facts.active_producers),
    )  # fmt: skip
    numbers = (*found.log, *found.segments, *found.slices, *found.producers)
    # An inode may have all 64 bits.
    return found if -MAX_INT64 <= min(numbers) and max(numbers) <= MAX_INT64 else None


def _is_sound_directory(partition: PartitionInventory) -> bool:
    return (
        partition.kind is PartitionKind.LIVE
        and partition.is_whole
        and not partition.has_remote_segments
        and known_directory(partition) is not None
        and all(
            info.path == segment_path(partition.path, info.base_offset)
            for info in partition.segments
        )
    )


def _ends_as_all_say(partition: PartitionInventory, log: KnownLog) -> bool:
    start, end = partition.segments[0].base_offset, partition.log_end_offset
    return partition.log_start_offset == start and all_agree(
        partition.checkpoints, log.files.epochs, partition.snapshot_offsets, start=start, end=end
    )


def _is_sound(log: KnownLog, headers: HeaderContents) -> bool:
    facts, files, sizes = log.facts, log.files, log.bytes_by_kind
    return not (
        facts.problems
        or facts.completed_transactions
        or facts.compaction_mark
        or any(p.current_txn_first_offset is not None for p in facts.active_producers)
        or files.unusable_indexes
        or files.epochs_problem
        or not files.is_mark_known
        or files.mark is not None
        or not log.indexes_end_in_log
        or log.leftovers
        or sizes["leftover"]
        or sizes["undo"]
        or headers.markers
        or headers.bare_markers
        or headers.horizons
        or headers.aborted_bytes
        or headers.open_bytes
        or headers.marker_bytes
    )


def _is_sound_segment(segment: KnownSegment, info: SegmentInfo) -> bool:
    facts, counts = segment.facts, segment.counts
    return (
        info.state == "live"
        and info.base_offset == facts.base_offset
        and info.identity.size == info.size_in_bytes
        and info.identity.mtime_ns // 1_000_000 == info.modification_time_ms
        and len(counts.bytes_by_codec) <= 1
        and counts.bytes_by_codec.keys() <= set(CODEC_NAMES)
        and not (
            info.txn_index_bytes
            or facts.corrupt is not None
            or facts.trailing_bytes
            or facts.unsupported_magic
            or facts.bad_control is not None
            or facts.has_transactional
            or facts.has_control
            or counts.transactional_bytes
            or counts.control_batches
            or counts.control_bytes
        )
    )


def _has_gap(segments: Sequence[KnownSegment]) -> bool:
    """Whether offsets may be missing behind the first base offset; `log.missing_between` says what
    a gap is.
    """
    spans = [span_of_facts(segment.facts) for segment in segments]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return True
    first = known[0]
    return (first.first_offset or 0) > first.base_offset or any(
        before.next_offset != span.base_offset or (span.first_offset or 0) > span.base_offset
        for before, span in pairwise(known)
    )


def _log_numbers(
    partition: PartitionInventory, log: KnownLog, headers: HeaderContents, expiration_ms: int
) -> LogNumbers:
    lines, sizes = partition.checkpoints, log.bytes_by_kind
    return LogNumbers(
        now_ms=log.now_ms,
        expiration_ms=expiration_ms,
        recovery_point=_or_none(lines.recovery_point),
        checkpointed_high_watermark=_or_none(lines.high_watermark),
        checkpointed_log_start=_or_none(lines.log_start),
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        newest_leader_epoch=max((epoch for epoch, _ in log.files.epochs), default=NONE),
        committed_bytes=headers.committed_bytes,
        oldest_timestamp_ms=headers.oldest_timestamp_ms,
        newest_timestamp_ms=headers.newest_timestamp_ms,
        log_bytes=sizes["log"],
        index_bytes=sizes["index"],
        snapshot_bytes=sizes["snapshot"],
        other_bytes=sizes["other"],
    )


def _or_none(number: int | None) -> int:
    return NONE if number is None else number


def _numbers(
    segment: KnownSegment, info: SegmentInfo, index_end: OffsetIndexEnd | None
) -> SegmentNumbers:
    facts, counts, files = segment.facts, segment.counts, segment.files
    offset_index, time_index = _index_conditions(info, facts.next_offset, index_end)
    name, codec_bytes = next(iter(counts.bytes_by_codec.items()), ("", 0))
    return SegmentNumbers(
        base_offset=facts.base_offset,
        next_offset=facts.next_offset,
        size_in_bytes=info.size_in_bytes,
        mtime_ns=info.identity.mtime_ns,
        inode=info.identity.inode,
        offset_index_bytes=info.offset_index_bytes,
        time_index_bytes=info.time_index_bytes,
        has_snapshot=int(info.has_snapshot),
        indexed_timestamp_ms=info.largest_timestamp_ms,
        valid_bytes=facts.valid_bytes,
        batches_count=facts.batches_count,
        records_count=facts.records_count,
        min_timestamp_ms=facts.min_timestamp_ms,
        max_timestamp_ms=facts.max_timestamp_ms,
        first_timestamp_ms=_or_none(facts.first_batch_max_timestamp_ms),
        largest_timestamp_ms=counts.largest_timestamp_ms,
        largest_timestamp_offset=counts.largest_timestamp_offset,
        largest_timestamp_position=counts.largest_timestamp_position,
        codec=CODEC_NAMES.index(name) if name else NONE,
        codec_bytes=codec_bytes,
        index_bytes=files.indexes,
        time_file_bytes=files.time_index,
        offset_index=offset_index,
        time_index=time_index,
    )


def _index_conditions(
    info: SegmentInfo, next_offset: int, end: OffsetIndexEnd | None
) -> tuple[int, int]:
    """Places in INDEX_CONDITIONS; NONE of a segment that was not walked over, or whose index cannot
    be read.
    """
    if end is None:
        return NONE, NONE
    offset_index = end.state(info.size_in_bytes)
    try:
        time_index = time_index_state(info.beside(".timeindex"), info.base_offset, next_offset)
    except (KafkaLogError, OSError):
        return NONE, NONE
    return (
        INDEX_CONDITIONS.index(offset_index.condition),
        INDEX_CONDITIONS.index(time_index.condition),
    )
