"""Record areas to spans: where key, value and headers of each record are, as arrays.

This is where a kernel's status becomes an error that names the file, the batch and the record.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.errors import CorruptRecordError
from kafkalog.kernels.record_spans import record_spans
from kafkalog.kernels.status import OK, STATUS_TEXT


class RecordSpans:
    """The records of some batches, in order: arrays of n elements.

    offsets, timestamps (ms) int64 · key_starts, value_starts int64, in the areas' buffer ·
    key_lengths, value_lengths int32, -1 null, 0 empty · header_starts int64, the first header
    behind the header count · header_counts int32 · batch_indexes int32, the record's batch in rows
    """

    __slots__ = (
        "_room",
        "batch_indexes",
        "header_counts",
        "header_starts",
        "key_lengths",
        "key_starts",
        "n",
        "offsets",
        "timestamps",
        "value_lengths",
        "value_starts",
    )

    def __init__(self, n: int, reuse: RecordSpans | None = None) -> None:
        """Room for n records, in the arrays of `reuse` if they are large enough."""
        self.n = n
        # Two blocks of memory for nine arrays: of a reader that goes on they are as large as its
        # largest chunk, and are not asked for again.
        room = None if reuse is None else reuse._room
        if room is None or room[0].shape[1] < n:
            room = np.empty((5, n), np.int64), np.empty((4, n), np.int32)
        self._room: tuple[NDArray[np.int64], NDArray[np.int32]] = room
        wide, narrow = room[0][:, :n], room[1][:, :n]
        self.offsets: NDArray[np.int64] = wide[0]
        self.timestamps: NDArray[np.int64] = wide[1]
        self.key_starts: NDArray[np.int64] = wide[2]
        self.value_starts: NDArray[np.int64] = wide[3]
        self.header_starts: NDArray[np.int64] = wide[4]
        self.key_lengths: NDArray[np.int32] = narrow[0]
        self.value_lengths: NDArray[np.int32] = narrow[1]
        self.header_counts: NDArray[np.int32] = narrow[2]
        self.batch_indexes: NDArray[np.int32] = narrow[3]


class WantedKeys:
    """Keys as the kernel compares records with them: one behind the other, in its order."""

    __slots__ = ("data", "edges")

    def __init__(self, keys: Iterable[bytes]) -> None:
        in_order = sorted(set(keys), key=lambda key: (len(key), key[::-1]))
        self.data: NDArray[np.uint8] = np.frombuffer(b"".join(in_order), np.uint8)
        self.edges: NDArray[np.int64] = np.cumsum([0, *map(len, in_order)], dtype=np.int64)


_NO_BYTES, _NO_EDGES = np.empty(0, np.uint8), np.empty(0, np.int64)


def decode_spans(
    areas: RecordAreas,
    rows: NDArray[np.void],
    path: str | None = None,
    reuse: RecordSpans | None = None,
    keys: WantedKeys | None = None,
) -> RecordSpans:
    """Find the spans of the records of `rows`, whose areas were opened by `open_record_areas`: of
    all, or of those with one of `keys`. The others are checked as well.

    `reuse` gives its arrays to the result; its own content is gone afterwards.

    Raises CorruptRecordError with path, file position and base offset of the batch that breaks the
    format; a reader may leave that batch out and decode the others.
    """
    counts = rows["records_count"]
    # `open_record_areas` has refused counts that the bytes cannot hold, so they may size arrays.
    spans = RecordSpans(int(counts.sum(dtype=np.int64)), reuse)
    walked, status, position, b, spans.n = record_spans(
        areas.buf,
        rows,
        areas.starts,
        areas.ends,
        _NO_BYTES if keys is None else keys.data,
        _NO_EDGES if keys is None else keys.edges,
        spans.offsets,
        spans.timestamps,
        spans.key_starts,
        spans.key_lengths,
        spans.value_starts,
        spans.value_lengths,
        spans.header_starts,
        spans.header_counts,
        spans.batch_indexes,
    )
    # The kernel says how far it came: from that the record and the byte within the batch are found.
    if status != OK:
        index = walked - int(counts[:b].sum(dtype=np.int64))
        at = position - int(areas.starts[b])
        raise CorruptRecordError(
            f"record {index} of {counts[b]}, byte {at} of the records: {STATUS_TEXT[status]}",
            path=path,
            position=int(rows["position"][b]),
            offset=int(rows["base_offset"][b]),
        )
    return spans
