"""The key of one record, for whoever is told of it: nothing else of records is kept."""

from __future__ import annotations

import numpy as np

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.index_lookup import batch_at
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.storage import open_file


def key_at(partition: PartitionInventory, offset: int) -> bytes | None:
    """The key of the record at an offset; None without a key, and where no such record is. OSError
    and KafkaLogError as from reading its batch.
    """
    below = [segment for segment in partition.segments if segment.base_offset <= offset]
    row = batch_at(below[-1], offset) if below else None
    if row is None or row["size_in_bytes"] > MAX_BATCH_BYTES:
        return None
    path, position = below[-1].path, int(row["position"])
    with open_file(path) as file:
        data = np.frombuffer(file.read_bytes(position, int(row["size_in_bytes"])), np.uint8)
    areas = open_record_areas(data, position, np.atleast_1d(row), Arena(), path=path)
    spans = decode_spans(areas, areas.rows, path)
    found = np.flatnonzero(spans.offsets == offset)
    if not found.size or spans.key_lengths[found[0]] < 0:
        return None
    start, length = int(spans.key_starts[found[0]]), int(spans.key_lengths[found[0]])
    key: bytes = areas.buf[start : start + length].tobytes()
    return key
