"""Which batches of a new segment get an entry in its offset and time index.

Per batch, in order: note a greater maximum timestamp; if more than index.interval.bytes (strictly)
came since the last entry, add (last offset -> position of the batch) and, if the maximum rose since
the last time entry, (maximum -> its offset); then count the batch's bytes. So the first batch never
gets an entry.

Source: Kafka LogSegment.append and recover since 4.1 (KAFKA-806).
"""

from __future__ import annotations

from kafkalog.kernels.jit import I64, I64_OUT, ROW_IN, I64Array, RowArray, kernel

# `state`, carried from chunk to chunk of one segment; `cleaning.segment_indexes` fills it.
BYTES_SINCE_ENTRY = 0
MAX_TIMESTAMP = 1
MAX_TIMESTAMP_OFFSET = 2
LAST_TIME_ENTRY = 3
STATE_SIZE = 4

_SINCE, _MAX, _MAX_OFFSET, _LAST = (
    BYTES_SINCE_ENTRY,
    MAX_TIMESTAMP,
    MAX_TIMESTAMP_OFFSET,
    LAST_TIME_ENTRY,
)


@kernel((ROW_IN, I64, I64_OUT, I64_OUT, I64_OUT, I64_OUT, I64_OUT))
def index_entries(
    rows: RowArray,
    interval_bytes: int,
    state: I64Array,
    offsets_out: I64Array,
    positions_out: I64Array,
    timestamps_out: I64Array,
    timestamp_offsets_out: I64Array,
) -> tuple[int, int]:
    """Entries for consecutive batches of one segment, with absolute offsets.

    in   rows BATCH_ROW[b], positions in the new file
    i/o  state int64[STATE_SIZE]
    out  offsets_out, positions_out int64[b]; timestamps_out, timestamp_offsets_out int64[b]
    returns (offset index entries, time index entries)
    """
    # The caller's arrays have a place for each batch, which is the most there can be.
    entries = 0
    time_entries = 0
    for b in range(rows.size):
        last_offset = rows[b]["last_offset"]
        # Strictly greater: of equal timestamps the first batch's offset stays, as in Kafka.
        if rows[b]["max_timestamp"] > state[_MAX]:
            state[_MAX] = rows[b]["max_timestamp"]
            state[_MAX_OFFSET] = last_offset
        if state[_SINCE] > interval_bytes:
            offsets_out[entries] = last_offset
            positions_out[entries] = rows[b]["position"]
            entries += 1
            # A time index holds rising timestamps only. Where none rose since the last entry it
            # gets none, though the offset index does.
            if state[_MAX] > state[_LAST]:
                timestamps_out[time_entries] = state[_MAX]
                timestamp_offsets_out[time_entries] = state[_MAX_OFFSET]
                time_entries += 1
                state[_LAST] = state[_MAX]
            state[_SINCE] = 0
        # Counted behind the check: the bytes of a batch count for the entries of later ones.
        state[_SINCE] += rows[b]["size_in_bytes"]
    return entries, time_entries
