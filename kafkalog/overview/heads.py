"""The first batch of a partition's first and last segment, and the last entry of its time index:
which format, which codec, from when to when.

A few hundred bytes a partition, of the largest `MOST_PARTITIONS`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    LEGACY_RECORD_OVERHEAD_V0,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
    TimestampType,
)
from kafkalog.format.record_batch import parse_header
from kafkalog.format.time_index import TIME_INDEX_ENTRY_BYTES, entry_timestamp
from kafkalog.log.index_tail import read_index_tail
from kafkalog.overview.batches import read_bytes
from kafkalog.overview.disk import Partition

MOST_PARTITIONS = 1000
# offset, length, CRC, magic, attributes, and from magic 1 on a timestamp
_LEGACY = struct.Struct(">qiIbbq")


@dataclass(frozen=True, slots=True)
class Head:
    """Of a partition: magic and codecs of the batches looked at, the time of the first one and the
    largest that the last time index knows, in ms and -1 for none. problem: what the system said of
    a segment that cannot be read. damage: bytes of a first batch that are none; active_damage: the
    same of the last segment, which a crash may have left and a start then cuts off.
    """

    magics: frozenset[int] = frozenset()
    codecs: frozenset[str] = frozenset()
    oldest_ms: int = -1
    newest_ms: int = -1
    problem: str | None = None
    damage: str | None = None
    active_damage: str | None = None


def read_heads(partitions: Iterable[Partition]) -> Mapping[str, Head]:
    """By path, of the largest ones; what is no batch says nothing."""
    largest = sorted((p for p in partitions if p.log_bytes), key=lambda p: -p.log_bytes)
    return {partition.path: _head(partition) for partition in largest[:MOST_PARTITIONS]}


def _head(partition: Partition) -> Head:
    last = first = _first_batch(partition.log_path(partition.first_base))
    has_several = partition.last_base != partition.first_base
    if has_several and partition.last_bytes:
        last = _first_batch(partition.log_path(partition.last_base))
    newest_ms = max(last.newest_ms, _last_indexed_ms(partition))
    return Head(
        first.magics | last.magics,
        first.codecs | last.codecs,
        first.oldest_ms,
        max(newest_ms, first.newest_ms),
        first.problem or last.problem,
        first.damage if has_several else None,
        last.damage,
    )


def _first_batch(path: str) -> Head:
    """Of a segment's first batch; nothing of what is none."""
    data = b""
    try:
        data = read_bytes(path, RECORD_BATCH_OVERHEAD)
        if len(data) < _LEGACY.size:
            return Head()
        _, length, _, magic, attributes, time_ms = _LEGACY.unpack_from(data)
        if not any(data):  # a preallocated file
            return Head()
        if MAGIC_VALUE_V0 <= magic < MAGIC_VALUE_V2 and length >= LEGACY_RECORD_OVERHEAD_V0:
            time_ms = -1 if magic == MAGIC_VALUE_V0 else time_ms
            return Head(
                frozenset([magic]), _codec(attributes & COMPRESSION_CODEC_MASK), time_ms, time_ms
            )
        header = parse_header(data, path=path)
    except FileNotFoundError:  # of a broker that runs
        return Head()
    except OSError as error:
        return Head(problem=f"{path}: {error.strerror or error}")
    except KafkaLogError as error:
        # Fewer bytes than a header has are a torn tail, as a broker that runs leaves it.
        return Head(damage=str(error) if len(data) == RECORD_BATCH_OVERHEAD else None)
    # With a delete horizon the base timestamp is that; where brokers stamp, the producer's.
    is_base_another = (
        header.has_delete_horizon or header.timestamp_type == TimestampType.LOG_APPEND_TIME
    )
    oldest_ms = header.max_timestamp if is_base_another else header.base_timestamp
    codecs = _codec(header.codec) if header.records_count and not header.is_control else frozenset()
    return Head(frozenset([header.magic]), codecs, oldest_ms, header.max_timestamp)


def _codec(number: int) -> frozenset[str]:
    known = {int(codec): codec.name.lower() for codec in CompressionType}
    return frozenset([known.get(number, f"codec {number}")])


def _last_indexed_ms(partition: Partition) -> int:
    if not partition.has_time_index:
        return -1
    path = partition.log_path(partition.last_base).removesuffix(".log") + ".timeindex"
    try:
        return entry_timestamp(read_index_tail(path, TIME_INDEX_ENTRY_BYTES).last_entry)
    except OSError:
        return -1
