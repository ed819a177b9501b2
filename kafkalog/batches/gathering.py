"""Spans to flat columns: bytes one behind the other, and the headers of records as lists.

The seam between the kernels and the floor above: a status becomes an error here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.errors import CorruptRecordError, RecordTooLargeError
from kafkalog.format.constants import MAX_INT32
from kafkalog.kernels.gather import gather, measure
from kafkalog.kernels.header_spans import header_spans
from kafkalog.kernels.status import OK, STATUS_TEXT


@dataclass(frozen=True, slots=True)
class HeaderSpans:
    """The headers of r records: list_offsets int32[r + 1] into the spans of all h headers.

    key_starts, value_starts int64[h]; key_lengths, value_lengths int32[h], a value's -1 is null.
    """

    list_offsets: NDArray[np.int32]
    key_starts: NDArray[np.int64]
    key_lengths: NDArray[np.int32]
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int32]


def measure_spans(lengths: NDArray[np.int32]) -> tuple[int, int]:
    """(bytes of all spans, nulls among them).

    RecordTooLargeError past 2 GiB, more than one column of int32 offsets can hold.
    """
    total, nulls = measure(lengths)
    if total > MAX_INT32:
        raise RecordTooLargeError(f"{total} bytes in one column, the limit is {MAX_INT32}")
    return int(total), int(nulls)


def gather_spans(
    buf: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    values_out: NDArray[np.uint8],
    offsets_out: NDArray[np.int32],
    validity_out: NDArray[np.uint8],
) -> None:
    """Copy spans of `buf` one behind the other, in Arrow's layout; see `kernels.gather`.

    The outputs are the caller's, as large as `measure_spans` says.
    """
    _, status, _, _ = gather(buf, starts, lengths, values_out, offsets_out, validity_out)
    if status != OK:
        # The spans come from `decode_spans`, which has checked them: only a bug of ours gets here.
        raise AssertionError(f"gather: {STATUS_TEXT[status]}")


def decode_header_spans(
    buf: NDArray[np.uint8],
    header_starts: NDArray[np.int64],
    header_counts: NDArray[np.int32],
    path: str | None = None,
) -> HeaderSpans:
    """The headers of records whose spans `decode_spans` has found."""
    # The counts were checked against the bytes when the records were walked, so this is no claim.
    n = int(header_counts.sum(dtype=np.int64))
    spans = HeaderSpans(
        np.empty(len(header_counts) + 1, np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
    )
    _, status, position, _ = header_spans(
        buf,
        header_starts,
        header_counts,
        spans.list_offsets,
        spans.key_starts,
        spans.key_lengths,
        spans.value_starts,
        spans.value_lengths,
    )
    if status != OK:
        raise CorruptRecordError(f"headers at byte {position}: {STATUS_TEXT[status]}", path=path)
    return spans
