"""Keys of the changelogs of Kafka Streams' stores, with the windows that are in them.

    key-value   key
    window      key, start of the window i64, sequence number i32
    session     key, end of the session i64, start i64

All big endian, times in milliseconds. The sequence number tells records of one key and time apart,
in the stores of a join; elsewhere it is 0. The end of a time window is not kept: its size is in the
application only. Values are without the timestamp (8 bytes) that a store keeps in front of them: a
changelog has it as the record's.

Which of these a store is stands nowhere on the disk. So it is told by the form of its keys: times
that lie near the records' own in all of them.

Source: Kafka WindowKeySchema, SessionKeySchema, ChangeLoggingTimestampedKeyValueBytesStore.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkalog.columns.arrow_arrays import binary_array, binary_spans

KEY_VALUE, WINDOW, SESSION = "key-value", "window", "session"
# Behind the key.
_SUFFIX = {KEY_VALUE: 0, WINDOW: 12, SESSION: 16}
# How far a window may lie from the record that changed it.
_NEAR_MS = 366 * 24 * 3600 * 1000

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """Columns of n keys. is_whole: false for a key too short for its store; null in all others
    then."""

    key: pa.Array
    window_start_ms: pa.Array
    window_end_ms: pa.Array
    sequence: pa.Array
    is_whole: Mask


def store_type_of(keys: pa.Array, timestamps_ms: Int64s) -> str | None:
    """What the store is that all of these keys of its changelog fit, and the times of their
    records (-1: none); None without a key."""
    buf, starts, lengths = binary_spans(keys)
    there = lengths >= 0
    if not there.any():
        return None
    ends, lengths = (starts + lengths)[there], lengths[there]
    near = timestamps_ms[there]

    def fits(at: Int64s) -> Mask:
        is_near: Mask = (at >= 0) & (near >= 0) & (np.abs(at - near) <= _NEAR_MS)
        return is_near

    if (lengths >= _SUFFIX[SESSION]).all():
        end, start = _numbers(buf, ends - 16, ">i8"), _numbers(buf, ends - 8, ">i8")
        if (fits(start) & fits(end) & (start <= end)).all():
            return SESSION
    if (lengths >= _SUFFIX[WINDOW]).all():
        start, sequence = _numbers(buf, ends - 12, ">i8"), _numbers(buf, ends - 4, ">i4")
        if (fits(start) & (sequence >= 0)).all():
            return WINDOW
    return KEY_VALUE


def split_keys(keys: pa.Array, store_type: str | None) -> StoreKeys:
    """The parts of keys of such a store; of one that is not known the keys as they are."""
    n = len(keys)
    suffix = _SUFFIX[store_type or KEY_VALUE]
    nothing = pa.nulls(n, pa.int64()), pa.nulls(n, pa.int64()), pa.nulls(n, pa.int32())
    if not suffix:
        return StoreKeys(keys, *nothing, np.ones(n, np.bool_))
    buf, starts, lengths = binary_spans(keys)
    has_window = lengths >= suffix
    ends = np.where(has_window, starts + lengths, suffix)
    if not has_window.any():
        return StoreKeys(pa.nulls(n, pa.binary()), *nothing, lengths < 0)
    inner = np.where(has_window, lengths - suffix, -1).astype(np.int32)

    def numbers(before_end: int, kind: str) -> pa.Array:
        return pa.array(_numbers(buf, ends - before_end, kind), mask=~has_window)

    times = (
        (numbers(8, ">i8"), numbers(16, ">i8"), nothing[2])
        if store_type == SESSION
        else (numbers(12, ">i8"), nothing[1], numbers(4, ">i4"))
    )
    is_whole = has_window | (lengths < 0)
    return StoreKeys(binary_array(buf, starts, inner), *times, is_whole)


def _numbers(buf: npt.NDArray[np.uint8], at: Int64s, kind: str) -> npt.NDArray[np.signedinteger]:
    """Big-endian numbers at these places, in the machine's order."""
    wide = np.dtype(kind)
    places = at[:, np.newaxis] + np.arange(wide.itemsize)
    found = np.ascontiguousarray(buf[places]).view(wide)[:, 0]
    return found.astype(wide.newbyteorder("="))
