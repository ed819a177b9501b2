"""The numbers of logs that nothing is wrong with: what fields they have, and columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# In place of what is not there.
NONE = -1
DIGEST_BYTES = 32

I64s = NDArray[np.int64]


class LogNumbers(NamedTuple):
    """Of a whole log; NONE for a line of a checkpoint, or leader epochs, that are not there."""

    now_ms: int
    expiration_ms: int
    recovery_point: int
    checkpointed_high_watermark: int
    checkpointed_log_start: int
    log_start_offset: int
    log_end_offset: int
    newest_leader_epoch: int
    committed_bytes: int
    oldest_timestamp_ms: int
    newest_timestamp_ms: int
    log_bytes: int
    index_bytes: int
    snapshot_bytes: int
    other_bytes: int


class SegmentNumbers(NamedTuple):
    """Of a segment, as SegmentInfo, SegmentFacts and SegmentStatistics have them. `codec`: its
    place in CODEC_NAMES, NONE without batches; `time_file_bytes`: of the time index with its zeros;
    `offset_index`, `time_index`: places in INDEX_CONDITIONS, NONE where that was not seen.
    """

    base_offset: int
    next_offset: int
    size_in_bytes: int
    mtime_ns: int
    inode: int
    offset_index_bytes: int
    time_index_bytes: int
    has_snapshot: int
    indexed_timestamp_ms: int
    valid_bytes: int
    batches_count: int
    records_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    first_timestamp_ms: int
    largest_timestamp_ms: int
    largest_timestamp_offset: int
    largest_timestamp_position: int
    codec: int
    codec_bytes: int
    index_bytes: int
    time_file_bytes: int
    offset_index: int
    time_index: int


class SliceNumbers(NamedTuple):
    """The fields of a TimeSlice."""

    from_ms: int
    to_ms: int
    closed_bytes: int
    active_bytes: int
    records: int


TABLES: dict[str, tuple[str, ...]] = {
    "log": LogNumbers._fields,
    "segment": SegmentNumbers._fields,
    "slice": SliceNumbers._fields,
    "producer": ("last_timestamp_ms",),
    "snapshot": ("offset",),
}
# Of each log one row of the first table, and so many as are counted of the others.
COUNTED = tuple(TABLES)[1:]


class LogColumns(NamedTuple):
    """Of l logs: logs int64[l, LogNumbers], segments int64[s, SegmentNumbers], slices
    int64[t, SliceNumbers]; producers int64[p, 1]: when each that a broker knows wrote last;
    snapshots int64[n, 1]: offsets of producer snapshots; of each of the last four how many belong
    to each log, int64[l].
    """

    logs: I64s
    segments: I64s
    slices: I64s
    producers: I64s
    snapshots: I64s
    segment_counts: I64s
    slice_counts: I64s
    producer_counts: I64s
    snapshot_counts: I64s


class NamedLogs(NamedTuple):
    """Logs with what they are called: of each the path of its directory, its topic id, empty
    without one, and its digest in hexadecimal.
    """

    paths: Sequence[str]
    topic_ids: Sequence[str]
    digests: Sequence[str]
    columns: LogColumns


def packed_logs(logs: Sequence[NamedLogs]) -> dict[str, NDArray[np.generic]]:
    """The columns of all of them, by the names that `kept_logs` has."""
    digests = b"".join(bytes.fromhex(digest) for some in logs for digest in some.digests)
    arrays: dict[str, NDArray[np.generic]] = {"digests": np.frombuffer(digests, np.uint8)}
    for name, texts in (
        ("paths", [path for some in logs for path in some.paths]),
        ("topic_ids", [topic_id for some in logs for topic_id in some.topic_ids]),
    ):
        data = [text.encode() for text in texts]
        arrays[name] = np.frombuffer(b"".join(data), np.uint8)
        arrays[f"{name}.ends"] = _narrow([np.cumsum([len(text) for text in data], dtype=np.int64)])
    for number, (table, fields) in enumerate(TABLES.items()):
        for place, field in enumerate(fields):
            arrays[f"{table}.{field}"] = _narrow([some.columns[number][:, place] for some in logs])
    for number, name in enumerate(COUNTED, len(TABLES)):
        arrays[f"counts.{name}"] = _narrow([some.columns[number] for some in logs])
    return arrays


def _narrow(parts: Sequence[I64s]) -> NDArray[np.generic]:
    """The numbers one part behind the other, in the fewest bytes."""
    whole = [part for part in parts if part.size]
    if not whole:
        return np.empty(0, np.int8)
    least, most = min(int(p.min()) for p in whole), max(int(p.max()) for p in whole)
    kind = np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most))
    return np.concatenate(whole).astype(kind if kind.kind in "iu" else np.int64)
