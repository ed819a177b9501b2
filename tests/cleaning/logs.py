"""Random logs for the cleaner: a few segments of a few batches over a few keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kafkalog.format.constants import TimestampType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.reference.batches import parse_batches

NOW_MS = START_MS + 10_000_000
Batch = tuple[RecordBatchHeader, list[Record]]

_KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"\xff" * 30])
_VALUES = st.none() | st.binary(max_size=6)
_HEADERS = st.just(()) | st.just(((b"h", None), (b"\xc3\xa9", b"x")))
_TIMES = st.integers(-1, 3) | st.integers(START_MS, NOW_MS)


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """One batch; `gap` offsets are left out in front of it, `tail` are claimed behind it."""

    records: list[tuple[bytes | None, bytes | None, Any, int]]
    gap: int
    tail: int
    header: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogSpec:
    """Segments of batches, the last one active; the cleaner's offset, None for no checkpoint."""

    segments: list[list[BatchSpec]]
    cleaner_offset: int | None

    def build(self, log_dir: Path) -> LogBuilder:
        log = LogBuilder(log_dir, index_interval_bytes=100)
        for number, batches in enumerate(self.segments):
            log.segment(log.next_offset + (number > 0) * 2, modified_ms=START_MS + number)
            for spec in batches:
                base = log.next_offset + spec.gap
                records = [
                    Record(base + i, time, key, value, headers)
                    for i, (key, value, headers, time) in enumerate(spec.records)
                ]
                last = base + len(records) - 1 + spec.tail
                header = dict(spec.header)
                if header.get("timestamp_type") == TimestampType.LOG_APPEND_TIME:
                    header["max_timestamp"] = START_MS + base
                log.batch(*records, base_offset=base, last_offset=last, **header)
        if self.cleaner_offset is not None:
            log.cleaner_offset(min(self.cleaner_offset, log.next_offset))
        return log


@st.composite
def batch_specs(draw: st.DrawFn, keyless: bool) -> BatchSpec:
    keys = st.none() | _KEYS if keyless else _KEYS
    records = draw(st.lists(st.tuples(keys, _VALUES, _HEADERS, _TIMES), min_size=1, max_size=4))
    header: dict[str, Any] = {"codec": draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4]))}
    header["partition_leader_epoch"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        header["producer_id"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        header["delete_horizon_ms"] = NOW_MS + draw(st.integers(-1, 1))
    if draw(st.integers(0, 3)) == 0:
        header["timestamp_type"] = TimestampType.LOG_APPEND_TIME
    return BatchSpec(records, draw(st.integers(0, 2)), draw(st.integers(0, 2)), header)


@st.composite
def log_specs(draw: st.DrawFn, *, keyless: bool = False) -> LogSpec:
    batches = st.lists(batch_specs(keyless), max_size=4)
    segments = draw(st.lists(batches, min_size=1, max_size=4))
    active = draw(st.lists(batch_specs(keyless), max_size=2))
    return LogSpec([*segments, active], draw(st.none() | st.integers(0, 30)))


def read_segment(log_file: Path) -> list[Batch]:
    """A `.log` file through the plain codec."""
    return [(header, records) for _, header, records in parse_batches(log_file.read_bytes())]


def read_partition(partition_dir: Path) -> list[Batch]:
    """All segments, in order."""
    return [batch for path in sorted(partition_dir.glob("*.log")) for batch in read_segment(path)]
