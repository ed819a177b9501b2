"""What kernels take, from what tests have; and their answers as records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.spans import WantedKeys
from kafkalog.format.constants import TIMESTAMP_TYPE_MASK
from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels.header_spans import header_spans
from kafkalog.kernels.record_spans import record_spans
from kafkalog.kernels.status import OK, STATUS_TEXT, is_corrupt


def read_only(data: bytes) -> NDArray[np.uint8]:
    """A read-only array over bytes, as Arrow gives them."""
    return np.frombuffer(data, np.uint8)


def batch_row(
    records_count: int,
    base_offset: int = 0,
    base_timestamp: int = 0,
    log_append_timestamp: int | None = None,
) -> NDArray[np.void]:
    """One decoded header."""
    row = np.zeros(1, BATCH_ROW)
    row["magic"] = 2
    row["records_count"] = records_count
    row["base_offset"] = base_offset
    row["base_timestamp"] = base_timestamp
    if log_append_timestamp is not None:
        row["attributes"] = TIMESTAMP_TYPE_MASK
        row["max_timestamp"] = log_append_timestamp
    return row


class Columns:
    """Output arrays of `record_spans`, filled with a value that no test expects."""

    def __init__(self, n: int) -> None:
        self.wide = [np.full(n, -77, np.int64) for _ in range(5)]
        self.narrow = [np.full(n, -77, np.int32) for _ in range(4)]
        self.offsets, self.timestamps, self.key_starts, self.value_starts, self.header_starts = (
            self.wide
        )
        self.key_lengths, self.value_lengths, self.header_counts, self.batch_indexes = self.narrow

    def first(self, n: int) -> Columns:
        """Those of the first n records."""
        columns = Columns(n)
        for mine, theirs in zip(
            columns.wide + columns.narrow, self.wide + self.narrow, strict=True
        ):
            mine[:] = theirs[:n]
        return columns

    def run(
        self,
        buf: NDArray[np.uint8],
        rows: NDArray[np.void],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        keys: WantedKeys | None = None,
    ) -> tuple[int, int, int, int]:
        """(records written, status, position, batch)."""
        # Timestamps wrap around as Java's do; interpreted numpy would warn.
        with np.errstate(over="ignore"):
            walked, status, position, b, written = record_spans(
                buf,
                rows,
                starts,
                ends,
                np.empty(0, np.uint8) if keys is None else keys.data,
                np.empty(0, np.int64) if keys is None else keys.edges,
                self.offsets,
                self.timestamps,
                self.key_starts,
                self.key_lengths,
                self.value_starts,
                self.value_lengths,
                self.header_starts,
                self.header_counts,
                self.batch_indexes,
            )
        assert written == walked or (keys is not None and written < walked)
        return written, status, position, b


def decode(
    payload: bytes,
    records_count: int,
    base_offset: int = 0,
    base_timestamp: int = 0,
    log_append_timestamp: int | None = None,
) -> tuple[list[Record], int]:
    """The records of one area as `record_spans` and `header_spans` see them, and the status."""
    # Bytes around the area: a read past its ends would find plausible ones.
    buf = read_only(b"\x02" * 40 + payload + b"\x02" * 40)
    start, end = np.array([40], np.int64), np.array([40 + len(payload)], np.int64)
    columns = Columns(records_count)
    rows = batch_row(records_count, base_offset, base_timestamp, log_append_timestamp)
    done, status, position, b = columns.run(buf, rows, start, end)
    if status != OK:
        assert is_corrupt(status)
        assert status in STATUS_TEXT
        assert 0 <= done <= records_count
        assert start[0] <= position <= end[0]
        assert b == 0
        return [], status
    assert done == records_count
    return to_records(buf, columns), status


def to_records(buf: NDArray[np.uint8], columns: Columns) -> list[Record]:
    """The records that spans stand for."""
    headers = header_lists(buf, columns.header_starts, columns.header_counts)
    data = buf.tobytes()

    def span(start: int, length: int) -> bytes | None:
        return None if length < 0 else data[start : start + length]

    return [
        Record(
            int(columns.offsets[r]),
            int(columns.timestamps[r]),
            span(columns.key_starts[r], columns.key_lengths[r]),
            span(columns.value_starts[r], columns.value_lengths[r]),
            headers[r],
        )
        for r in range(columns.offsets.size)
    ]


def header_lists(
    buf: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int32]
) -> list[tuple[tuple[bytes, bytes | None], ...]]:
    """The headers of each record, through the kernel."""
    n = int(counts.sum())
    offsets = np.zeros(counts.size + 1, np.int32)
    key_starts, value_starts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    key_lengths, value_lengths = np.zeros(n, np.int32), np.zeros(n, np.int32)
    answer = header_spans(
        buf, starts, counts, offsets, key_starts, key_lengths, value_starts, value_lengths
    )
    assert answer == (n, OK, 0, 0)
    data = buf.tobytes()
    pairs: list[tuple[bytes, bytes | None]] = [
        (
            data[key_starts[h] : key_starts[h] + key_lengths[h]],
            None
            if value_lengths[h] < 0
            else data[value_starts[h] : value_starts[h] + value_lengths[h]],
        )
        for h in range(n)
    ]
    return [tuple(pairs[offsets[r] : offsets[r + 1]]) for r in range(counts.size)]
