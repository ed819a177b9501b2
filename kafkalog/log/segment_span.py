"""From which offset to which one a segment goes, by its first and its last batch headers.

Of a segment of any size a few KiB are read: the first header, and the headers behind the last entry
of its offset index. Where that entry leads to no batch that fits it, or something cannot be walked
over, all headers are, and behind damage those from the next batch on whose checksum is right: what
is read past damage is here.

Source: Kafka LogSegment.readNextOffset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkalog.batches.batch_table import is_legacy_wrapper
from kafkalog.errors import CorruptIndexError
from kafkalog.format.constants import MAGIC_VALUE_V2, MAX_INT32, RECORD_BATCH_OVERHEAD
from kafkalog.format.offset_index import OFFSET_INDEX_ENTRY_BYTES, parse_offset_index
from kafkalog.kernels.status import ZERO_TAIL
from kafkalog.log.header_facts import SegmentFacts
from kafkalog.log.index_tail import read_index_tail
from kafkalog.log.inventory import SegmentInfo
from kafkalog.log.next_batch import Bounds, find_next_batch, work_for
from kafkalog.log.segment_headers import HeaderScan, scan_headers

# Up to this size all headers are read at once.
_SMALL_BYTES = 16 * 1024
# Behind the last entry of an index mostly lie 4 KiB (index.interval.bytes).
_WINDOW_BYTES = 4 * 1024 + RECORD_BATCH_OVERHEAD


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """`first_offset`: of the first batch, None without one, or where only the content of a legacy
    wrapper tells it. `next_offset`: one past the last batch, the base offset without one.
    `end_position`: where the last batch ends. `is_damaged`: bytes there, or batches before, break
    the format. `has_tail`: bytes are left behind the last batch, too few for another or zeros.
    """

    base_offset: int
    first_offset: int | None
    next_offset: int
    end_position: int = 0
    is_damaged: bool = False
    has_tail: bool = False


SpanOf = Callable[[SegmentInfo], SegmentSpan]


def segment_span(segment: SegmentInfo) -> SegmentSpan:
    """The offsets of one segment. OSError or LogChangedError if it cannot be read."""
    first, scan = None, None
    # Both ends of the file alone: the first header, and the headers behind the last index entry,
    # which is a few KiB of a segment of any size.
    if segment.offset_index_bytes and segment.size_in_bytes > _SMALL_BYTES:
        first = scan_headers(
            segment.path, end=segment.size_in_bytes,
            window_bytes=RECORD_BATCH_OVERHEAD, most_rows=1,
        )  # fmt: skip
        scan = _from_last_index_entry(segment)
    if scan is None:
        first = scan = scan_headers(segment.path)
    next_offset = _next_offset(scan, segment.base_offset)
    is_damaged = not _is_in_order(scan, segment.base_offset)
    first_offset = _first_offset(first)
    if first_offset is not None and first_offset != segment.base_offset and not is_damaged:
        # A gap in front of the first batch, or damage to its offset: the second one tells.
        begin = scan_headers(segment.path, window_bytes=_WINDOW_BYTES, most_rows=2)
        is_damaged = not _is_in_order(begin, segment.base_offset)
    if _has_more(scan):
        next_offset, scan = end_behind_damage(segment, scan, next_offset)
        is_damaged |= scan.error is not None
    return SegmentSpan(
        segment.base_offset,
        first_offset,
        next_offset,
        scan.valid_bytes,
        is_damaged,
        scan.trailing_bytes > 0,
    )


def span_of_facts(facts: SegmentFacts) -> SegmentSpan | None:
    """The same from a walk over all headers; None where it did not come to the file's end, and
    more may lie behind.
    """
    if facts.corrupt is not None or facts.trailing_bytes:
        return None
    is_known = not any(facts.codecs) or min(facts.magics) >= MAGIC_VALUE_V2
    return SegmentSpan(
        facts.base_offset,
        facts.first_offset if is_known else None,
        facts.next_offset,
        facts.valid_bytes,
    )


def _from_last_index_entry(segment: SegmentInfo) -> HeaderScan | None:
    """None if it does not lead to batches that fit it and reach to the end of the file."""
    tail = read_index_tail(segment.beside(".index"), OFFSET_INDEX_ENTRY_BYTES)
    try:
        index = parse_offset_index(tail.last_entry, segment.base_offset)
    except CorruptIndexError:
        return None
    if not len(index) or int(index.positions[-1]) >= segment.size_in_bytes:
        return None
    scan = scan_headers(segment.path, int(index.positions[-1]), window_bytes=_WINDOW_BYTES)
    # An index kept beside another log points anywhere: an entry holds an offset at or past the
    # base of the batch at its position, and in the log.
    fits = (
        scan.rows.size
        and segment.base_offset <= scan.rows["base_offset"][0] <= index.last_offset
        and index.last_offset <= scan.rows["last_offset"].max()
    )
    return scan if fits and scan.error is None and not scan.trailing_bytes else None


def _first_offset(scan: HeaderScan | None) -> int | None:
    if scan is None or not scan.rows.size:
        return None
    first = scan.rows[0]
    is_known = first["magic"] >= MAGIC_VALUE_V2 or not is_legacy_wrapper(scan.rows[:1])[0]
    return int(first["base_offset"]) if is_known else None


def _is_in_order(scan: HeaderScan, base_offset: int) -> bool:
    """Whether each batch lies behind the one before it. No checksum covers a base offset."""
    rows = scan.rows
    if not rows.size:
        return True
    is_behind = rows["base_offset"][1:] > rows["last_offset"][:-1]
    is_whole = rows["last_offset"] >= rows["base_offset"]
    end_offset = base_offset + MAX_INT32
    is_within = base_offset <= rows["base_offset"][0] and rows["last_offset"][-1] <= end_offset
    return bool(is_behind.all() and is_whole.all() and is_within)


def _next_offset(scan: HeaderScan, least: int) -> int:
    return max(least, int(scan.rows["last_offset"].max()) + 1) if scan.rows.size else least


def end_behind_damage(
    segment: SegmentInfo, scan: HeaderScan, next_offset: int
) -> tuple[int, HeaderScan]:
    """(one past the last batch with a right checksum that can be found behind what nothing leads
    over, the walk that ended there).
    """
    # One budget for all searches of the segment, so that made-up bytes cannot cost more than a few
    # reads of it.
    work = work_for(segment.size_in_bytes)
    while _has_more(scan):
        bounds = Bounds(
            scan.valid_bytes + 1, segment.size_in_bytes, next_offset - 1,
            segment.base_offset + MAX_INT32 + 1,
        )  # fmt: skip
        position, work = find_next_batch(segment.path, bounds, work)
        if position is None:
            break
        scan = scan_headers(segment.path, position)
        next_offset = _next_offset(scan, next_offset)
    return next_offset, scan


def _has_more(scan: HeaderScan) -> bool:
    """Whether there may be batches behind the end of the walk; behind a preallocated file's are
    zeros.
    """
    return scan.error is not None or (scan.trailing_bytes > 0 and scan.status != ZERO_TAIL)
