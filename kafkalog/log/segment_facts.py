"""What the batch headers of a segment tell, and of a whole partition: the facts a plan needs beside
stat.

Headers only: no CRC is checked and nothing is decompressed but the one legacy wrapper at which open
transactions may begin, so this is quick enough to run before every plan. Of control batches the
record is looked at as well, some 17 bytes that were read anyhow: a broker may not be able to go on
with one. How many messages a legacy wrapper holds headers do not tell, so none of them is counted.
What is found wrong here (a batch that breaks the framing, offsets that do not increase) is a fact
with its position, never an error: the plan refuses the partition and goes on with others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import KafkaLogError, LogChangedError, UnsupportedMagicError
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    CONTROL_FLAG_MASK,
    MAGIC_VALUE_V2,
    MAX_BATCH_BYTES,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG_MASK,
)
from kafkalog.format.legacy_record import parse_legacy_entry
from kafkalog.log.header_facts import PartitionFacts, SegmentFacts
from kafkalog.log.header_sums import HeaderSums, header_sums
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.producer_state import ProducerState, restore_producer_state
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.log.segment_headers import HeaderScan, iterate_headers
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.storage import open_file

Rows = NDArray[np.void]

__all__ = ["PartitionFacts", "SegmentFacts", "scan_partition_facts", "scan_segment_facts"]


def scan_segment_facts(segment: SegmentInfo) -> SegmentFacts:
    """The facts of one segment. OSError if it cannot be read; damage is in the facts."""
    facts: SegmentFacts | None = None
    for scan in iterate_headers(segment.path, judges_control=True):
        facts = with_tail(_next_facts(facts, segment.base_offset, scan), segment, scan)
    assert facts is not None, "there is one scan at least"  # noqa: S101
    return facts


def scan_partition_facts(
    partition: PartitionInventory,
    *,
    now_ms: int,
    expiration_ms: int,
    see: Callable[[SegmentInfo, HeaderScan, HeaderSums | None], None] | None = None,
    known: Mapping[int, SegmentFacts] | None = None,
) -> PartitionFacts:
    """The facts of every live segment and the producer state at the log's end, in one pass.

    `expiration_ms` is producer.id.expiration.ms. `see` is shown every scan and its sums. `known`:
    facts by base offset of segments that are as an earlier pass found them: of these only those are
    read that have producers and lie behind the snapshot. OSError if a file cannot be read.
    """
    state = restore_producer_state(partition, now_ms=now_ms, expiration_ms=expiration_ms)
    open_since = [p.current_txn_first_offset for p in state.active_producers()]
    log_start = partition.log_start_offset
    # The first batches at the log start and at each open transaction: where the last stable offset
    # may lie. Of a legacy wrapper only its content tells the first offset.
    wanted = [log_start, *(max(first, log_start) for first in open_since if first is not None)]
    still_there: dict[int, tuple[str, np.void] | str] = {}
    segments, buffers = [], ChunkBuffers()
    for segment in partition.segments:
        facts = None if known is None else known.get(segment.base_offset)
        # Known from an earlier pass, and nothing in it is news about producers: it is not read.
        if facts is not None and not _is_replayed(facts, segment, state):
            state.next_offset = max(state.next_offset, facts.next_offset)
            _find_segment(segment.path, facts, wanted, still_there)
            segments.append(facts)
            continue
        facts = None
        for scan in iterate_headers(segment.path, judges_control=True, buffers=buffers):
            sums = header_sums(scan.rows, segment.base_offset)
            facts = with_tail(_next_facts(facts, segment.base_offset, scan, sums), segment, scan)
            if see is not None:
                see(segment, scan, sums)
            _find_batches(segment.path, scan.rows, wanted, still_there)
            if facts.next_offset > state.next_offset or segment.is_active:
                if sums is not None and sums.has_producer_ids:
                    state.apply(scan.rows)
                state.next_offset = max(state.next_offset, _end_of(scan.rows))
                if scan.error is not None:
                    state.problems.append(f"cannot be rebuilt: {scan.error}")
        assert facts is not None, "there is one scan at least"  # noqa: S101
        segments.append(facts)
    has_transactions = bool(state.completed_transactions) or len(wanted) > 1
    return PartitionFacts(
        tuple(segments),
        state.active_producers(),
        tuple(state.completed_transactions),
        tuple(
            (offset, _base_offset(*(_batch_at(found, offset) if isinstance(found, str) else found)))
            for offset, found in still_there.items()
        )
        if has_transactions
        else (),
        tuple(state.problems),
    )


def _end_of(rows: Rows) -> int:
    """One past the last of these batches."""
    return int(rows["last_offset"][-1]) + 1 if rows.size else 0


def _is_replayed(facts: SegmentFacts, segment: SegmentInfo, state: ProducerState) -> bool:
    """Whether a segment's batches change what is known of producers."""
    is_behind = facts.next_offset > state.next_offset or segment.is_active
    return is_behind and facts.has_producer_ids


def _find_segment(
    path: str,
    facts: SegmentFacts,
    offsets: list[int],
    found: dict[int, tuple[str, np.void] | str],
) -> None:
    """As `_find_batches`, where the segment's headers are not at hand: its path."""
    for offset in offsets:
        if offset not in found and facts.last_offset is not None and offset <= facts.last_offset:
            found[offset] = path


def _batch_at(path: str, offset: int) -> tuple[str, np.void]:
    """The first batch of a segment at or behind an offset that it reaches to."""
    found: dict[int, tuple[str, np.void] | str] = {}
    for scan in iterate_headers(path):
        _find_batches(path, scan.rows, [offset], found)
    batch = found.get(offset)
    if not isinstance(batch, tuple):
        raise LogChangedError(f"has no offset {offset} any more", path=path)
    return batch


def _find_batches(
    path: str, rows: Rows, offsets: list[int], found: dict[int, tuple[str, np.void] | str]
) -> None:
    """For each of these offsets that has none yet: the first batch at or behind it."""
    if not rows.size:
        return
    # Last offsets rise, so the first batch that reaches an offset is found by bisection; compaction
    # may have taken the batch that had it, then the next one stands for it.
    last_offset = int(rows["last_offset"][-1])
    for offset in offsets:
        if offset not in found and offset <= last_offset:
            b = int(np.searchsorted(rows["last_offset"], offset))
            found[offset] = path, rows[b]


def _base_offset(path: str, row: np.void) -> int:
    """The first offset of a batch; of a legacy wrapper only its content tells.

    OSError or a KafkaLogError if it cannot be read.
    """
    if row["magic"] >= MAGIC_VALUE_V2 or not row["attributes"] & COMPRESSION_CODEC_MASK:
        return int(row["base_offset"])
    with open_file(path) as file:
        size = min(int(row["size_in_bytes"]), MAX_BATCH_BYTES)
        entry = file.read_bytes(int(row["position"]), size)
    try:
        _, records = parse_legacy_entry(entry, path=path)
    except KafkaLogError as error:
        error.position = int(row["position"])
        raise
    return records[0].offset if records else int(row["base_offset"])


def segment_facts(
    base_offset: int, scan: HeaderScan, sums: HeaderSums | None = None
) -> SegmentFacts:
    """The facts of a segment whose headers were scanned from its first byte. `sums`: of the scan,
    of a caller who has them.
    """
    rows = scan.rows
    sums = sums or header_sums(rows, base_offset)
    corrupt, corrupt_position = None, None
    if sums is not None and sums.disorder is not None:
        batch = rows[sums.disorder]
        corrupt = (
            f"batch of offsets {batch['base_offset']} to {batch['last_offset']} is out of order"
        )
        corrupt_position = int(batch["position"])
    elif scan.error is not None:
        corrupt, corrupt_position = scan.error.reason, scan.valid_bytes
    control = scan.control_problem
    return SegmentFacts(
        base_offset=base_offset,
        **_counted(rows, sums),
        valid_bytes=scan.valid_bytes,
        trailing_bytes=scan.trailing_bytes,
        unsupported_magic=isinstance(scan.error, UnsupportedMagicError),
        corrupt=corrupt,
        corrupt_position=corrupt_position,
        bad_control=None if control is None else control.error.reason,
        bad_control_position=None if control is None else control.error.position,
        bad_control_stops_cleaner=control is not None and control.stops_cleaner,
    )


def _counted(rows: Rows, sums: HeaderSums | None) -> dict[str, Any]:
    """The facts that batches alone tell."""
    if sums is None:
        return {
            "batches_count": 0, "records_count": 0, "first_offset": None, "last_offset": None,
            "min_timestamp_ms": NO_TIMESTAMP, "max_timestamp_ms": NO_TIMESTAMP,
            "first_batch_max_timestamp_ms": None, "has_transactional": False, "has_control": False,
            "has_producer_ids": False, "magics": (), "codecs": (), "largest_batch_bytes": 0,
        }  # fmt: skip
    return {
        "batches_count": rows.size,
        "records_count": sums.records,
        "first_offset": int(rows["base_offset"][0]),
        "last_offset": sums.last_offset,
        "min_timestamp_ms": sums.smallest_timestamp_ms,
        # Batches without a timestamp (-1: magic 0, and empty ones) say nothing of the time.
        "max_timestamp_ms": sums.largest_timestamp_ms,
        "first_batch_max_timestamp_ms": sums.first_largest_ms,
        "has_transactional": bool(sums.attributes & TRANSACTIONAL_FLAG_MASK),
        "has_control": bool(sums.attributes & CONTROL_FLAG_MASK),
        "has_producer_ids": sums.has_producer_ids,
        "magics": sums.magics,
        "codecs": tuple(sums.codec_bytes),
        "largest_batch_bytes": sums.largest_batch_bytes,
    }


def with_tail(facts: SegmentFacts, segment: SegmentInfo, scan: HeaderScan) -> SegmentFacts:
    """The same with what is wrong with the active segment's tail: a torn one is how a log ends only
    if no sound batch lies behind it. Of other segments `trailing_bytes` says all.
    """
    if facts.corrupt is not None or not (segment.is_active and scan.trailing_bytes):
        return facts
    end = scan.valid_bytes + scan.trailing_bytes
    tail = Tail(scan.valid_bytes, end, scan.status, facts.next_offset - 1)
    error = tail_error(segment.path, tail, SegmentEnds.of(segment))
    if error is None:
        return facts
    return replace(facts, corrupt=error.reason, corrupt_position=scan.valid_bytes)


def _next_facts(
    before: SegmentFacts | None,
    base_offset: int,
    scan: HeaderScan,
    sums: HeaderSums | None = None,
) -> SegmentFacts:
    """The facts of what was scanned before and of this scan, which goes on behind it."""
    if before is None:
        return segment_facts(base_offset, scan, sums)
    # A large segment comes in several scans: sums add up, extremes are compared, and of errors the
    # first one counts.
    facts = segment_facts(before.next_offset, scan)
    smallest = [t for t in (before.min_timestamp_ms, facts.min_timestamp_ms) if t != NO_TIMESTAMP]
    corrupt = before.corrupt if before.corrupt is not None else facts.corrupt
    control = before if before.bad_control is not None else facts
    return replace(
        before,
        batches_count=before.batches_count + facts.batches_count,
        records_count=before.records_count + facts.records_count,
        last_offset=before.last_offset if facts.last_offset is None else facts.last_offset,
        min_timestamp_ms=min(smallest, default=NO_TIMESTAMP),
        max_timestamp_ms=max(before.max_timestamp_ms, facts.max_timestamp_ms),
        has_transactional=before.has_transactional or facts.has_transactional,
        has_control=before.has_control or facts.has_control,
        has_producer_ids=before.has_producer_ids or facts.has_producer_ids,
        magics=tuple(sorted({*before.magics, *facts.magics})),
        codecs=tuple(sorted({*before.codecs, *facts.codecs})),
        largest_batch_bytes=max(before.largest_batch_bytes, facts.largest_batch_bytes),
        valid_bytes=facts.valid_bytes,
        trailing_bytes=facts.trailing_bytes,
        unsupported_magic=facts.unsupported_magic,
        corrupt=corrupt,
        corrupt_position=(
            before.corrupt_position if before.corrupt is not None else facts.corrupt_position
        ),
        bad_control=control.bad_control,
        bad_control_position=control.bad_control_position,
        bad_control_stops_cleaner=control.bad_control_stops_cleaner,
    )
