"""Writes large logs, byte-valid with checksums, as fast as the disk takes them.

    python -m tests.benchmarks.generate DIR --records 8000000 --keys 2000000

A partition directory as a broker leaves it after a roll: full segments, their indexes by the append
rule of Kafka 4.1+, an empty active segment, no producers, checkpoints at the log's end. Same
arguments, same bytes.

Keys are `k` and digits, drawn evenly; values are 40 % noise and 60 % words, as records of a
business topic compress.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import compress
from kafkalog.format.constants import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, CompressionType
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    log_file_name,
    offset_index_file_name,
    time_index_file_name,
)
from kafkalog.format.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    pack_meta_properties,
)
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.partition_metadata import pack_partition_metadata
from kafkalog.format.record_batch import CRC_START, HEADER
from kafkalog.format.time_index import pack_time_index

FIRST_TIMESTAMP_MS = 1_690_000_000_000
INDEX_INTERVAL_BYTES = 4096
_WORDS = b'"status":"active","amount":"currency","country":"order","customer":"address",'
_POOL_BYTES = 1 << 20


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
def _fill_batch(out, keys, values_at, pool, spec, first_offset):  # type: ignore[no-untyped-def]
    """Records into out: keys[i] is the key's number, values_at[i] the value's place in pool, -1 a
    tombstone."""
    key_bytes, value_bytes, per_ms, scratch_at = spec
    pos = 0
    for i in range(keys.size):
        p = scratch_at
        out[p] = 0
        p = _put_varint(out, p + 1, (first_offset + i) // per_ms - first_offset // per_ms)
        p = _put_varint(out, p, i)
        p = _put_varint(out, p, key_bytes)
        key = keys[i]
        for j in range(key_bytes - 1, 0, -1):
            out[p + j] = 48 + key % 10
            key //= 10
        out[p] = 107
        p += key_bytes
        if values_at[i] < 0:
            p = _put_varint(out, p, -1)
        else:
            p = _put_varint(out, p, value_bytes)
            out[p : p + value_bytes] = pool[values_at[i] : values_at[i] + value_bytes]
            p += value_bytes
        out[p] = 0
        p += 1
        pos = _put_varint(out, pos, p - scratch_at)
        out[pos : pos + p - scratch_at] = out[scratch_at:p]
        pos += p - scratch_at
    return pos


class _Segment:
    """The open segment and what its indexes will say."""

    def __init__(self, folder: Path, base_offset: int) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.file = (folder / log_file_name(base_offset)).open("wb")
        self.size = 0
        self.since_entry = 0
        self.largest = (-1, base_offset)
        self.entries: list[tuple[int, int]] = []
        self.times: list[tuple[int, int]] = []

    def append(self, batch: bytearray, last_offset: int, max_timestamp: int) -> None:
        if max_timestamp > self.largest[0]:
            self.largest = (max_timestamp, last_offset)
        if self.since_entry > INDEX_INTERVAL_BYTES:
            self.entries.append((last_offset, self.size))
            self._append_time()
            self.since_entry = 0
        self.file.write(batch)
        self.since_entry += len(batch)
        self.size += len(batch)

    def close(self) -> None:
        self.file.close()
        self._append_time()
        base = self.base_offset
        offsets, positions = [o for o, _ in self.entries], [p for _, p in self.entries]
        (self.folder / offset_index_file_name(base)).write_bytes(
            pack_offset_index(offsets, positions, base)
        )
        times, at = [t for t, _ in self.times], [o for _, o in self.times]
        (self.folder / time_index_file_name(base)).write_bytes(pack_time_index(times, at, base))

    def _append_time(self) -> None:
        if self.largest[0] > (self.times[-1][0] if self.times else -1):
            self.times.append(self.largest)


def write_log(log_dir: Path, topic: str, spec: LogSpec, partition: int = 0) -> Path:
    """Write one partition below `log_dir`; returns its directory."""
    folder = log_dir / f"{topic}-{partition}"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(spec.seed)
    pool = _value_pool(rng, spec.value_bytes)
    record_bytes = spec.key_bytes + spec.value_bytes + 10
    per_batch = max(1, -(-(spec.batch_bytes - RECORD_BATCH_OVERHEAD) // record_bytes))
    room = (per_batch + 1) * (record_bytes + 40)
    out = np.empty(2 * room, np.uint8)
    numbers = (spec.key_bytes, spec.value_bytes, spec.records_per_ms, room)
    segment = _Segment(folder, 0)
    for first in range(0, spec.records, per_batch):
        count = min(per_batch, spec.records - first)
        keys = rng.integers(0, spec.keys, count)
        if spec.distinct:
            # Scattered, and each once: the multiplier has no factor in common with a round number.
            keys = np.arange(first, first + count) * 1_000_000_007 % spec.keys
        values_at = rng.integers(0, _POOL_BYTES, count)
        if spec.tombstones:
            values_at[rng.random(count) < spec.tombstones] = -1
        size = _fill_batch(out, keys, values_at, pool, numbers, first)
        batch = _frame(out[:size], first, count, spec)
        if segment.size and segment.size + len(batch) > spec.segment_bytes:
            segment.close()
            segment = _Segment(folder, first)
        segment.append(batch, first + count - 1, _timestamp(first + count - 1, spec))
    segment.close()
    _Segment(folder, spec.records).close()
    _write_metadata(log_dir, folder, topic, partition, spec.records)
    return folder


def _value_pool(rng: np.random.Generator, value_bytes: int) -> NDArray[np.uint8]:
    """Bytes that any value is cut from: runs of noise and of words."""
    pool = np.resize(np.frombuffer(_WORDS, np.uint8), _POOL_BYTES + value_bytes).copy()
    noise = rng.integers(48, 112, pool.size, dtype=np.uint8)
    is_noise = np.arange(pool.size) % 100 < 40
    pool[is_noise] = noise[is_noise]
    return pool


def _timestamp(offset: int, spec: LogSpec) -> int:
    return FIRST_TIMESTAMP_MS + offset // spec.records_per_ms


def _frame(records: NDArray[np.uint8], first: int, count: int, spec: LogSpec) -> bytearray:
    """Header and checksum around records."""
    payload = records.tobytes()
    if spec.codec != CompressionType.NONE:
        payload = compress(spec.codec, payload)
    header = np.zeros(1, HEADER)
    header["base_offset"] = first
    header["batch_length"] = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(payload)
    header["magic"] = 2
    header["attributes"] = spec.codec
    header["last_offset_delta"] = count - 1
    header["base_timestamp"] = _timestamp(first, spec)
    header["max_timestamp"] = _timestamp(first + count - 1, spec)
    header["producer_id"] = header["producer_epoch"] = header["base_sequence"] = -1
    header["records_count"] = count
    batch = bytearray(header.tobytes() + payload)
    header["crc"] = crc32c(memoryview(batch)[CRC_START:])
    batch[:RECORD_BATCH_OVERHEAD] = header.tobytes()
    return batch


def _write_metadata(log_dir: Path, folder: Path, topic: str, partition: int, end: int) -> None:
    (folder / PARTITION_METADATA_FILE).write_bytes(
        pack_partition_metadata("5yZ0C9BoQFCOVFnr7tZIYg")
    )
    (folder / LEADER_EPOCH_CHECKPOINT_FILE).write_bytes(pack_leader_epoch_checkpoint([(0, 0)]))
    meta = MetaProperties(1, "MkU3OEVBNTcwNTJENDM2Qk", 1, "Wk3qBKk1SDqFqbFZkqN0Jw")
    (log_dir / META_PROPERTIES_FILE).write_bytes(pack_meta_properties(meta))
    for name in (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE):
        path = log_dir / name
        known = parse_offset_checkpoint(path.read_bytes()) if path.exists() else {}
        path.write_bytes(pack_offset_checkpoint({**known, (topic, partition): end}))


def main() -> None:
    """Write a log as the arguments say; prints what it is as a JSON line."""
    parser = argparse.ArgumentParser(description="Write a large log.")
    parser.add_argument("log_dir", type=Path)
    parser.add_argument("--topic", default="bench")
    parser.add_argument("--partition", type=int, default=0)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--key-bytes", type=int, default=16)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--batch-bytes", type=int, default=16 * 1024)
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--segment-bytes", type=int, default=256 * 1024 * 1024)
    parser.add_argument("--tombstones", type=float, default=0.0)
    parser.add_argument(
        "--codec", choices=[c.name.lower() for c in CompressionType], default="none"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    spec = LogSpec(
        records=args.records,
        keys=args.keys,
        key_bytes=args.key_bytes,
        value_bytes=args.value_bytes,
        segment_bytes=args.segment_bytes,
        batch_bytes=args.batch_bytes,
        distinct=args.distinct,
        tombstones=args.tombstones,
        codec=CompressionType[args.codec.upper()],
        seed=args.seed,
    )
    folder = write_log(args.log_dir, args.topic, spec, args.partition)
    size = sum(path.stat().st_size for path in folder.glob("*.log"))
    summary = {"path": str(folder), "records": spec.records, "bytes": size}
    print(json.dumps(summary))  # noqa: T201 - a command's result


if __name__ == "__main__":
    main()
