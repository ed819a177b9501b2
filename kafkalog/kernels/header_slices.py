"""Bytes and records of some batches by the time of their newest record. `log.header_sums` asks."""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels.jit import F64, I64, I64_OUT, ROW_IN, I64Array, RowArray, helper, kernel

# Of a slice of time: whether there is one, from, to, bytes, records.
SLICES, SLICE_COLUMNS = 10, 5

_NONE = constants.NO_TIMESTAMP


@helper
def slice_headers(
    rows: RowArray,
    first: int,
    end: int,
    first_ms: float,
    width_ms: float,
    slices: I64Array,
    at: int,
) -> int:
    """The slices of rows[first:end] in slices[at:]; see `header_slices`."""
    count = 0
    for b in range(first, end):
        largest = I64(rows[b]["max_timestamp"])
        part = 0
        if largest != _NONE:
            # By doubles, whose rounding of far apart times may end one part too far.
            part = 1 + min(I64((float(largest) - first_ms) // width_ms), SLICES - 2)
        place = at + part * SLICE_COLUMNS
        if slices[place] == 0:
            slices[place] = 1
            slices[place + 1] = largest
            slices[place + 2] = largest
            count += 1
        slices[place + 1] = min(slices[place + 1], largest)
        slices[place + 2] = max(slices[place + 2], largest)
        slices[place + 3] += I64(rows[b]["size_in_bytes"])
        slices[place + 4] += max(I64(rows[b]["records_count"]), 0)
    return count


@kernel((ROW_IN, F64, F64, I64_OUT))
def header_slices(rows: RowArray, first_ms: float, width_ms: float, slices: I64Array) -> int:
    """The batches by equal parts of the time they span.

    in   rows BATCH_ROW[b]; first_ms: where the first part begins, not above any timestamp there is;
         width_ms: of each part, above an eighth of the span
    out  slices int64[SLICES * SLICE_COLUMNS], filled with zeros by the caller: first what has no
         timestamp, then the parts. Each 1 if a batch is in it, its first and last largest
         timestamp, bytes, records
    returns how many have a batch
    """
    found: int = slice_headers(rows, I64(0), I64(rows.size), first_ms, width_ms, slices, I64(0))
    return found
