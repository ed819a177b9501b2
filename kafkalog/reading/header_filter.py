"""Which batches may hold wanted rows, as their headers tell; and which records are wanted.

Each batch a header rules out is neither summed up nor decompressed, and each record that its spans
rule out is not copied. Keys are compared where they lie, by `batches.spans`.

Source of the columns: `columns.batches` shows header fields raw, `columns.records` has null for
their sentinel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches import batch_table
from kafkalog.batches.spans import RecordSpans
from kafkalog.reading.conditions import RowFilter
from kafkalog.reading.splits import ScanSplit

Rows = NDArray[np.void]
Mask = NDArray[np.bool_]

# Unwanted bytes up to this between wanted ones are read with them: cheaper than a read more.
_NEAR_BYTES = 32 * 1024


def _raw(field: str) -> Callable[[Rows], NDArray[Any]]:
    return lambda rows: rows[field]


# Columns of view `records` that a whole batch shares.
SHARED_BY_BATCH: dict[str, Callable[[Rows], NDArray[Any]]] = {
    "leaderEpoch": _raw("partition_leader_epoch"),
    "producerId": _raw("producer_id"),
    "producerEpoch": _raw("producer_epoch"),
    "isTransactional": batch_table.is_transactional,
    "isControl": batch_table.is_control,
}

# Columns of view `batches`.
OF_BATCH: dict[str, Callable[[Rows], NDArray[Any]]] = {
    **SHARED_BY_BATCH,
    "baseOffset": _raw("base_offset"),
    "lastOffset": _raw("last_offset"),
    "recordsCount": _raw("records_count"),
    "baseTimestampMs": _raw("base_timestamp"),
    "maxTimestampMs": _raw("max_timestamp"),
    "sizeInBytes": _raw("size_in_bytes"),
    "position": _raw("position"),
    "baseSequence": _raw("base_sequence"),
    "magic": _raw("magic"),
}


def asks_headers(row_filter: RowFilter) -> bool:
    """Whether headers can rule batches out by anything but their place in the log."""
    if row_filter.timestamps is not None or row_filter.offsets is not None:
        return True
    return any(column in OF_BATCH for column in row_filter.numbers)


def wanted_batches(
    rows: Rows, split: ScanSplit, row_filter: RowFilter, *, include_control: bool, of_records: bool
) -> Mask:
    """bool[b]: the batches that may hold a wanted record (`of_records`), or are wanted rows of view
    `batches`. Control batches only on request."""
    # Every line below takes batches out, and only where none of their records can be wanted: what a
    # header does not tell lets the batch stay.
    is_wrapper = batch_table.is_legacy_wrapper(rows)
    wanted = np.ones(len(rows), np.bool_)
    last_offsets = rows["last_offset"]
    is_bounded = split.start_offset is not None or row_filter.offsets is not None
    if of_records and len(rows) and is_bounded:
        last_offsets = _reach(rows, split)
    if split.start_offset is not None:
        wanted &= last_offsets >= split.start_offset
    if split.end_offset is not None:
        # Where a legacy wrapper begins only its content tells.
        wanted &= (rows["base_offset"] < split.end_offset) | is_wrapper
    if not include_control:
        wanted &= ~batch_table.is_control(rows)
    if split.transactions.leave_aborted_out:
        wanted &= ~split.transactions.is_left_out(rows)
    columns = SHARED_BY_BATCH if of_records else OF_BATCH
    for column, condition in row_filter.numbers.items():
        if column in columns:
            wanted &= condition.mask(columns[column](rows))
    if of_records and (offsets := row_filter.offsets) is not None:
        wanted &= offsets.mask_of_ranges(rows["base_offset"], last_offsets) | is_wrapper
    if of_records and (timestamps := row_filter.timestamps) is not None:
        # How far below its largest timestamp a batch's records reach no header tells.
        wanted &= (rows["max_timestamp"] >= timestamps.low) | is_wrapper
    return wanted


def wanted_runs(
    wanted: Mask,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    near_bytes: int = _NEAR_BYTES,
) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of what is wanted and lies together, or nearly so: batches, or
    blocks of some."""
    chosen = np.flatnonzero(wanted)
    if not chosen.size:
        return
    # A read of its own costs more than some bytes that nobody wants: runs that lie near each other
    # are one.
    gaps = starts[chosen[1:]] - ends[chosen[:-1]]
    breaks = np.flatnonzero(gaps > near_bytes) + 1
    for run in np.split(chosen, breaks):
        yield int(run[0]), int(run[-1]) + 1


def _reach(rows: Rows, split: ScanSplit) -> NDArray[np.int64]:
    """int64[b]: up to which offset each batch may go: to the next one where offsets are missing in
    between. What a header that nobody summed up says of its end may be damage.
    """
    # The last offset is under no checksum that was looked at yet. Between two batches everything
    # may have belonged to the first: too large a reach costs a look, too small a one a record.
    next_bases = np.append(rows["base_offset"][1:], rows["last_offset"][-1:] + 1)
    is_end = int(rows["position"][-1]) + int(rows["size_in_bytes"][-1]) == split.size
    if is_end and split.segment_end_offset is not None:
        next_bases[-1] = split.segment_end_offset
    reach: NDArray[np.int64] = np.maximum(rows["last_offset"], next_bases - 1)
    return reach


def wanted_records(
    spans: RecordSpans, split: ScanSplit, row_filter: RowFilter
) -> NDArray[np.int64] | None:
    """Indexes of the wanted ones of the decoded records, whose keys are wanted; None for all."""
    offsets = spans.offsets[: spans.n]
    if not len(offsets):
        return None
    masks: list[Mask] = []
    low = -1 if split.start_offset is None else split.start_offset
    high = np.iinfo(np.int64).max if split.end_offset is None else split.end_offset
    # Of most batches all records are wanted, which two comparisons find out.
    if int(offsets.min()) < low or int(offsets.max()) >= high:
        masks.append((offsets >= low) & (offsets < high))
    if (condition := row_filter.offsets) is not None:
        masks.append(condition.mask(offsets))
    if (met := row_filter.timestamp_mask(spans.timestamps[: spans.n])) is not None:
        masks.append(met)
    return np.flatnonzero(np.logical_and.reduce(masks)) if masks else None
