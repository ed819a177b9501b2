"""From which offset to which one a segment goes, by its first and its last batch headers.

Of a segment of any size a few KiB are read: the first header, and the headers behind the last entry
of its offset index. Where that entry leads to no batch that fits it, or something cannot be walked
over, all headers are, and behind damage those from the next batch on whose checksum is right: what
is read past damage is here.

Source: Kafka LogSegment.readNextOffset.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.batches.batch_table import is_legacy_wrapper
from kafkalog.errors import CorruptIndexError
from kafkalog.format.constants import MAGIC_VALUE_V2, MAX_INT32, RECORD_BATCH_OVERHEAD
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.next_batch import Bounds, find_next_batch, work_for
from kafkalog.log.segment_file import HeaderScan, scan_headers

# Up to this size all headers are read at once.
_SMALL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """`first_offset`: of the first batch, None without one, or where only the content of a legacy
    wrapper tells it. `next_offset`: one past the last batch, the base offset without one.
    """

    base_offset: int
    first_offset: int | None
    next_offset: int


def segment_span(segment: SegmentInfo) -> SegmentSpan:
    """The offsets of one segment. OSError or LogChangedError if it cannot be read."""
    first, scan = None, None
    if segment.offset_index_bytes and segment.size_in_bytes > _SMALL_BYTES:
        first = scan_headers(
            segment.path, end=segment.size_in_bytes,
            window_bytes=RECORD_BATCH_OVERHEAD, most_rows=1,
        )  # fmt: skip
        scan = _from_last_index_entry(segment)
    if scan is None:
        first = scan = scan_headers(segment.path)
    next_offset = _next_offset(scan, segment.base_offset)
    if _has_damage(scan):
        next_offset = end_behind_damage(segment, scan, next_offset)
    return SegmentSpan(segment.base_offset, _first_offset(first), next_offset)


def _from_last_index_entry(segment: SegmentInfo) -> HeaderScan | None:
    """None if it does not lead to batches that fit it and reach to the end of the file."""
    tail = read_index_tail(segment.beside(".index"), OFFSET_INDEX_ENTRY_BYTES)
    try:
        index = parse_offset_index(tail.last_entry, segment.base_offset)
    except CorruptIndexError:
        return None
    if not len(index) or int(index.positions[-1]) >= segment.size_in_bytes:
        return None
    scan = scan_headers(segment.path, int(index.positions[-1]))
    # An index kept beside another log points anywhere: an entry holds an offset at or past the
    # base of the batch at its position.
    fits = (
        scan.rows.size and segment.base_offset <= scan.rows["base_offset"][0] <= index.last_offset
    )
    return scan if fits and scan.error is None and not scan.trailing_bytes else None


def _first_offset(scan: HeaderScan | None) -> int | None:
    if scan is None or not scan.rows.size:
        return None
    first = scan.rows[0]
    is_known = first["magic"] >= MAGIC_VALUE_V2 or not is_legacy_wrapper(scan.rows[:1])[0]
    return int(first["base_offset"]) if is_known else None


def _next_offset(scan: HeaderScan, least: int) -> int:
    return max(least, int(scan.rows["last_offset"].max()) + 1) if scan.rows.size else least


def end_behind_damage(segment: SegmentInfo, scan: HeaderScan, next_offset: int) -> int:
    """One past the last batch with a right checksum that can be found behind what nothing leads
    over.
    """
    work = work_for(segment.size_in_bytes)
    while _has_damage(scan):
        bounds = Bounds(
            scan.valid_bytes + 1, segment.size_in_bytes, next_offset - 1,
            segment.base_offset + MAX_INT32 + 1,
        )  # fmt: skip
        position, work = find_next_batch(segment.path, bounds, work)
        if position is None:
            break
        scan = scan_headers(segment.path, position)
        next_offset = _next_offset(scan, next_offset)
    return next_offset


def _has_damage(scan: HeaderScan) -> bool:
    """Whether there may be batches behind the end of the walk; behind a preallocated file's are
    zeros.
    """
    return scan.error is not None or (scan.trailing_bytes > 0 and scan.status != ZERO_TAIL)
