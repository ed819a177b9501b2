"""All batches of a segment by the plain codec, slow and obvious."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafkalog.format.buffers import BytesLike, as_view
from kafkalog.format.constants import HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader, parse_batch


def parse_batches(
    data: BytesLike, *, path: str | None = None
) -> Iterator[tuple[int, RecordBatchHeader, list[Record]]]:
    """(position, header, records) of every whole batch of a segment.

    Ends without an error at a torn tail, which is what Kafka does: fewer than 18 bytes left, or a
    batch that the bytes end in.
    """
    view = as_view(data)
    position = 0
    while position + HEADER_SIZE_UP_TO_MAGIC < len(view):
        (batch_length,) = struct.unpack_from(">i", view, position + 8)
        if batch_length > len(view) - position - LOG_OVERHEAD:
            return
        header, records = parse_batch(view, position, path=path)
        yield position, header, records
        position += header.size_in_bytes
