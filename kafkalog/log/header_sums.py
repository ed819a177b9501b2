"""What the headers of some batches come to: sums, extremes and flags, counted in one pass by
`kernels.header_sums`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.constants import MAGIC_VALUE_V2, NO_TIMESTAMP
from kafkalog.kernels import header_sums as kernel

Rows = NDArray[np.void]
# The magics of each set of bits.
_MAGICS = [
    tuple(magic for magic in range(MAGIC_VALUE_V2 + 1) if bits >> magic & 1)
    for bits in range(1 << (MAGIC_VALUE_V2 + 1))
]
# How many parts of time slices are cut into.
_PARTS = 8


class HeaderSums(NamedTuple):
    """Of BATCH_ROW[b]. Timestamps are -1 where no batch has one: `smallest_timestamp_ms` as far as
    headers tell, which of a batch that is stamped with a delete horizon, or has log-append time, is
    its largest; `smallest_largest_ms`: the least of the batches' largest ones. `first_largest_ms`:
    of the first batch, as it stands; `largest_at`: the first batch with the largest. `attributes`:
    all of them, or'ed. `disorder`: the first batch that does not lie behind the one before it, or
    below the base; None without one. `codec_bytes`: by codec, of those that occur.
    """

    records: int
    size_in_bytes: int
    largest_batch_bytes: int
    last_offset: int
    smallest_timestamp_ms: int
    largest_timestamp_ms: int
    first_largest_ms: int
    smallest_largest_ms: int
    largest_at: int
    attributes: int
    magics: tuple[int, ...]
    has_producer_ids: bool
    transactional_bytes: int
    control_batches: int
    control_bytes: int
    disorder: int | None
    codec_bytes: dict[int, int]


def header_sums(rows: Rows, base_offset: int = 0) -> HeaderSums | None:
    """The sums; None of no batch. `base_offset`: of the segment, for `disorder`."""
    if not rows.size:
        return None
    sums = np.zeros(kernel.SUMS_SIZE, np.int64)
    known = kernel.header_sums(np.ascontiguousarray(rows), base_offset, sums)
    found = sums.tolist()
    has_smallest, has_largest = known & kernel.HAS_SMALLEST, known & kernel.HAS_LARGEST
    magics, disorder = found[kernel.MAGICS], found[kernel.DISORDER]
    return HeaderSums(
        records=found[kernel.RECORDS],
        size_in_bytes=found[kernel.BYTES],
        largest_batch_bytes=found[kernel.LARGEST_BATCH],
        last_offset=found[kernel.LAST_OFFSET],
        smallest_timestamp_ms=found[kernel.SMALLEST_TIMESTAMP] if has_smallest else NO_TIMESTAMP,
        largest_timestamp_ms=found[kernel.LARGEST_TIMESTAMP] if has_largest else NO_TIMESTAMP,
        first_largest_ms=found[kernel.FIRST_LARGEST],
        smallest_largest_ms=found[kernel.SMALLEST_LARGEST] if has_largest else NO_TIMESTAMP,
        largest_at=found[kernel.LARGEST_AT],
        attributes=found[kernel.ATTRIBUTES],
        magics=_MAGICS[magics & (len(_MAGICS) - 1)],
        has_producer_ids=found[kernel.PRODUCERS] > 0,
        transactional_bytes=found[kernel.TRANSACTIONAL_BYTES],
        control_batches=found[kernel.CONTROL_BATCHES],
        control_bytes=found[kernel.CONTROL_BYTES],
        disorder=None if disorder < 0 else disorder,
        codec_bytes={codec: size for codec, size in enumerate(found[kernel.CODEC_BYTES :]) if size},
    )


def time_slices(rows: Rows, sums: HeaderSums) -> tuple[tuple[int, int, int, int], ...]:
    """(from ms, to ms, bytes, records): the batches by equal parts of the time they span; those
    without a timestamp apart, in front. `sums`: of the same rows.
    """
    # Imported late: an audit alone asks for them, and each kernel that is loaded takes its time.
    from kafkalog.kernels import header_slices as kernel

    # Python's integers: timestamps are whatever a producer wrote, their distance may be 65 bits.
    first, last = sums.smallest_largest_ms, sums.largest_timestamp_ms
    width = (last - first) // _PARTS + 1
    slices = np.zeros(kernel.SLICES * kernel.SLICE_COLUMNS, np.int64)
    kernel.header_slices(np.ascontiguousarray(rows), float(first), float(width), slices)
    found = slices.tolist()
    return tuple(
        (found[place + 1], found[place + 2], found[place + 3], found[place + 4])
        for place in range(0, len(found), kernel.SLICE_COLUMNS)
        if found[place]
    )
