"""What Kafka's loader makes of the files of a partition, in memory: the part that finishes and
undoes swaps, slow and obvious. `test_power_cuts.py` compares it with the loader itself.

Source: Kafka LogLoader.load, removeTempFilesAndCollectSwapFiles.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.support.kafka_python import CorruptRecordError, MemoryRecords

Files = dict[str, bytes]
_SEGMENT = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex)")


def loaded(files: Mapping[str, bytes]) -> Files:
    """The files of segments after a start."""
    left = {name: data for name, data in files.items() if re.match(r"\d{20}\.", name)}
    cleaned = [_offset(name) for name in left if name.endswith(".cleaned")]
    lowest = min(cleaned, default=2**63)
    for name in list(left):
        is_undone = name.endswith(".swap") and _offset(name) >= lowest
        if name.endswith((".cleaned", ".deleted")) or is_undone:
            del left[name]
    swaps = {name: data for name, data in left.items() if name.endswith(".swap")}
    logs = {_offset(name): data for name, data in swaps.items() if name.endswith(".log.swap")}
    start = min(logs, default=2**63)
    end = max((next_offset(data, base) for base, data in logs.items()), default=-1)
    left = {n: data for n, data in left.items() if n in swaps or not start <= _offset(n) < end}
    for name, data in swaps.items():
        del left[name]
        left[name.removesuffix(".swap")] = data
    bases = {name.split(".")[0] for name in left if name.endswith(".log")}
    return {
        name: data
        for name, data in left.items()
        if _SEGMENT.fullmatch(name) and name.split(".")[0] in bases
    }


def _offset(name: str) -> int:
    return int(name.split(".")[0])


@dataclass(frozen=True)
class Batch:
    """A batch's offsets, and key and value of each record of data."""

    base_offset: int
    last_offset: int
    records: tuple[tuple[bytes, bytes | None], ...]


@cache
def batches_of(log: bytes) -> tuple[Batch, ...]:
    """The whole batches of a segment, by another reader than ours."""
    found, records = [], MemoryRecords(log)
    try:
        while records.has_next():
            batch = records.next_batch()
            assert batch.validate_crc()
            last_offset = batch.base_offset + batch.last_offset_delta
            data = [] if batch.is_control_batch else [(each.key, each.value) for each in batch]
            found.append(Batch(batch.base_offset, last_offset, tuple(data)))
    except CorruptRecordError:
        pass  # torn: a loader cuts it off
    return tuple(found)


def next_offset(log: bytes, base_offset: int) -> int:
    """One past a segment's last offset."""
    batches = batches_of(log)
    return batches[-1].last_offset + 1 if batches else base_offset


def values_of(files: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """The last value of each key that has one; batches must follow one another."""
    values: dict[bytes, bytes] = {}
    previous = -1
    for name in sorted(name for name in files if name.endswith(".log")):
        for batch in batches_of(files[name]):
            assert batch.base_offset > previous, name
            previous = batch.last_offset
            for key, value in batch.records:
                values.pop(key, None)
                if value is not None:
                    values[key] = value
    return values
