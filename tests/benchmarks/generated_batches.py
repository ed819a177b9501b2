"""Batches of generated records, many at a time: one kernel for the records, numpy for the headers.

A window is as many batches as make a few MiB. Its keys and values are drawn at once; records are
written where they stay, behind room for each batch's header, and the checksums are the library's,
called without Python between.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

from kafkalog.format.compression import compress
from kafkalog.format.constants import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, CompressionType
from kafkalog.format.record_batch import CRC_START, HEADER
from kafkalog.native.checksums import crc32c_of_ranges

FIRST_TIMESTAMP_MS = 1_690_000_000_000
_WORDS = b'"status":"active","amount":"currency","country":"order","customer":"address",'
_POOL_BYTES = 1 << 20
_WINDOW_BYTES = 4 << 20
# Of a record beyond key and value: length, attributes, deltas, lengths, headers count.
_MOST_RECORD_OVERHEAD = 40


@dataclass(frozen=True, slots=True)
class LogSpec:
    """What to write; sizes in bytes."""

    records: int
    keys: int
    key_bytes: int = 16
    value_bytes: int = 100
    batch_bytes: int = 16 * 1024
    segment_bytes: int = 256 * 1024 * 1024
    records_per_ms: int = 1000
    tombstones: float = 0.0
    codec: int = CompressionType.NONE
    seed: int = 1
    distinct: bool = False  # every key once before any comes again


@dataclass(frozen=True, slots=True)
class Window:
    """Batches one behind the other: their bytes, where each begins, and the end of the last one;
    the first offset of all; the last offset of each, and the time of that.
    """

    first_offset: int
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    max_timestamps: NDArray[np.int64]


def timestamps(offsets: NDArray[np.int64], spec: LogSpec) -> NDArray[np.int64]:
    """Of the records at these offsets."""
    return FIRST_TIMESTAMP_MS + offsets // spec.records_per_ms


def records_per_batch(spec: LogSpec) -> int:
    """As many as a batch of that size has, before it is compressed."""
    record_bytes = spec.key_bytes + spec.value_bytes + 10
    return max(1, -(-(spec.batch_bytes - RECORD_BATCH_OVERHEAD) // record_bytes))


def batch_windows(spec: LogSpec) -> Iterator[Window]:
    """All batches of the log; each window's bytes are overwritten by the next one's."""
    rng = np.random.default_rng(spec.seed)
    pool = _value_pool(rng, spec.value_bytes)
    per_batch = records_per_batch(spec)
    room = RECORD_BATCH_OVERHEAD + per_batch * (
        spec.key_bytes + spec.value_bytes + _MOST_RECORD_OVERHEAD
    )
    batches = max(1, min(_WINDOW_BYTES // room, -(-spec.records // per_batch)))
    out = np.empty(batches * room, np.uint8)
    numbers = (spec.key_bytes, spec.value_bytes, spec.records_per_ms)
    with ThreadPoolExecutor(2) as threads:
        for first in range(0, spec.records, batches * per_batch):
            count = min(batches * per_batch, spec.records - first)
            keys = rng.integers(0, spec.keys, count)
            if spec.distinct:
                # Scattered, and each once: the multiplier has no factor in common with a round
                # number.
                keys = np.arange(first, first + count) * 1_000_000_007 % spec.keys
            values_at = rng.integers(0, _POOL_BYTES, count)
            if spec.tombstones:
                values_at[rng.random(count) < spec.tombstones] = -1
            firsts = np.arange(first, first + count, per_batch)
            starts = np.empty(firsts.size + 1, np.int64)
            _fill_batches(out, starts, keys, values_at, pool, numbers, first, per_batch)
            data = out[: starts[-1]]
            if spec.codec != CompressionType.NONE:
                data, starts = _compressed(data, starts, spec.codec, threads)
            counts = np.minimum(per_batch, first + count - firsts)
            _write_headers(data, starts, firsts, counts, spec)
            last = firsts + counts - 1
            yield Window(first, data, starts, last, timestamps(last, spec))


@njit(inline="always")
def _varint_size(value):  # type: ignore[no-untyped-def]
    u = numba.uint64((value << 1) ^ (value >> 63))
    size = 1
    while u >= 128:
        u >>= numba.uint64(7)
        size += 1
    return size


@njit(inline="always")
def _put_varint(out, pos, value):  # type: ignore[no-untyped-def]
    u = numba.uint64((value << 1) ^ (value >> 63))
    while u >= 128:
        out[pos] = numba.uint8((u & 127) | 128)
        u >>= numba.uint64(7)
        pos += 1
    out[pos] = numba.uint8(u)
    return pos + 1


@njit(cache=True)
def _fill_batches(  # type: ignore[no-untyped-def]
    out, starts_out, keys, values_at, pool, numbers, first_offset, per_batch
):
    """Records into out, behind room for each batch's header: keys[i] is the key's number,
    values_at[i] the value's place in pool, -1 a tombstone."""
    key_bytes, value_bytes, per_ms = numbers
    pos = 0
    batch = 0
    base_ms = 0
    for i in range(keys.size):
        delta = i % per_batch
        if delta == 0:
            starts_out[batch] = pos
            batch += 1
            pos += RECORD_BATCH_OVERHEAD
            base_ms = (first_offset + i) // per_ms
        milliseconds = (first_offset + i) // per_ms - base_ms
        length = value_bytes if values_at[i] >= 0 else -1
        body = 2 + _varint_size(milliseconds) + _varint_size(delta) + _varint_size(key_bytes)
        body += key_bytes + _varint_size(length) + max(length, 0)
        pos = _put_varint(out, pos, body)
        out[pos] = 0
        pos = _put_varint(out, pos + 1, milliseconds)
        pos = _put_varint(out, pos, delta)
        pos = _put_varint(out, pos, key_bytes)
        key, last = numba.uint64(keys[i]), numba.uint64(pos + key_bytes - 1)
        for k in range(numba.uint64(key_bytes - 1)):
            out[last - k] = numba.uint8(numba.uint64(48) + key % numba.uint64(10))
            key //= numba.uint64(10)
        out[pos] = 107
        pos = _put_varint(out, pos + key_bytes, length)
        # Unsigned: an index that cannot count from the end lets the loop be one of vectors.
        at, place = numba.uint64(pos), numba.uint64(values_at[i])
        for k in range(numba.uint64(max(length, 0))):
            out[at + k] = pool[place + k]
        pos += max(length, 0)
        out[pos] = 0
        pos += 1
    starts_out[batch] = pos


def _value_pool(rng: np.random.Generator, value_bytes: int) -> NDArray[np.uint8]:
    """Bytes that any value is cut from: runs of noise and of words."""
    pool = np.resize(np.frombuffer(_WORDS, np.uint8), _POOL_BYTES + value_bytes).copy()
    noise = rng.integers(48, 112, pool.size, dtype=np.uint8)
    is_noise = np.arange(pool.size) % 100 < 40
    pool[is_noise] = noise[is_noise]
    return pool


def _compressed(
    data: NDArray[np.uint8], starts: NDArray[np.int64], codec: int, threads: ThreadPoolExecutor
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The same batches with their records compressed. Codecs let other threads run."""
    view = memoryview(data)
    ends = starts.tolist()
    records = [bytes(view[start + RECORD_BATCH_OVERHEAD : end]) for start, end in pairwise(ends)]
    payloads = list(threads.map(partial(compress, codec), records))
    sizes = [RECORD_BATCH_OVERHEAD + len(payload) for payload in payloads]
    room = bytes(RECORD_BATCH_OVERHEAD)
    joined = bytearray().join(part for payload in payloads for part in (room, payload))
    return np.frombuffer(joined, np.uint8), np.cumsum([0, *sizes], dtype=np.int64)


def _write_headers(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    spec: LogSpec,
) -> None:
    """Headers and checksums in front of the records."""
    headers = np.zeros(firsts.size, HEADER)
    headers["base_offset"] = firsts
    headers["batch_length"] = np.diff(starts) - LOG_OVERHEAD
    headers["magic"] = 2
    headers["attributes"] = spec.codec
    headers["last_offset_delta"] = counts - 1
    headers["base_timestamp"] = timestamps(firsts, spec)
    headers["max_timestamp"] = timestamps(firsts + counts - 1, spec)
    for name in ("producer_id", "producer_epoch", "base_sequence"):
        headers[name] = -1
    headers["records_count"] = counts
    places = starts[:-1, None] + np.arange(RECORD_BATCH_OVERHEAD)
    data[places] = headers.view(np.uint8).reshape(firsts.size, -1)
    headers["crc"] = crc32c_of_ranges(data, starts[:-1] + CRC_START, starts[1:])
    data[places] = headers.view(np.uint8).reshape(firsts.size, -1)
