"""A log whose compaction goes through every case of the swap, and what must outlive it.

Islands of offsets lie further apart than one segment may span, so the segments that belong together
are the same in every round, however far the round before came:

    group       becomes
    0, 10            0 bytes: all their records are superseded
    20               itself, smaller: a single segment
    I, I+10, I+20    one segment; I+10 and I+20 lose all their batches
    I+30             itself, unchanged
    2I               itself, unchanged
    2I+40            active
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafkalog.format.constants import CompressionType
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import CompactionRun, Executor, apply_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.swap.local_files import LocalFiles
from tests.conftest import NOW_MS
from tests.support.log_builder import LogBuilder

TOPIC = "orders"
NAME = "orders-0"
ISLAND = 2**31 + 100
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "segment.index.bytes": "4800",
    "index.interval.bytes": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
}
CONFIG = LogConfig.from_overrides([f"{key}={value}" for key, value in SETTINGS.items()])
OLD_MS = NOW_MS - 1_000_000
State = dict[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class FaultLog:
    """The partition as written: its records' last value by key, and its end."""

    log_dir: Path
    last_values: State
    log_end_offset: int

    @property
    def path(self) -> Path:
        return self.log_dir / NAME


def write_fault_log(log_dir: Path) -> FaultLog:
    log = LogBuilder(log_dir, NAME, index_interval_bytes=100)
    log.segment(0, modified_ms=OLD_MS)
    log.batch(("a", "1"), ("b", "1"), ("c", None)).batch(("a", "2"), ("b", "2"))
    log.segment(10, modified_ms=OLD_MS + 1).batch(("c", "2"), ("a", "3"))
    log.segment(20, modified_ms=OLD_MS + 2)
    log.batch(("d", "1"), ("only-here", "x" * 50), ("gone", None), codec=CompressionType.ZSTD)
    log.batch(("a", "4"), ("kept", "1"))
    # A tombstone whose horizon has passed goes in this round; its value goes with it.
    log.batch(("dead", "1")).batch(("dead", None), delete_horizon_ms=NOW_MS - 1)
    log.segment(ISLAND, modified_ms=OLD_MS + 3)
    log.batch(("e", "1"), ("f", "1"), producer_id=7)
    log.batch(("f", "2"), producer_id=8, timestamp=NOW_MS - 1000)  # stays, without its record
    log.batch(("g", "1"), ("stays", "y"), ("a", "5"))
    log.segment(ISLAND + 10, modified_ms=OLD_MS + 4).batch(("e", "2"), ("g", "2"))
    log.segment(ISLAND + 20, modified_ms=OLD_MS + 5).batch(("e", "3"), ("g", "3"))
    log.segment(ISLAND + 30, modified_ms=OLD_MS + 6).batch(("single", "1"))
    log.segment(2 * ISLAND, modified_ms=OLD_MS + 7)
    log.batch(*((key, "last " + key) for key in "abcdefg"))
    log.segment(2 * ISLAND + 40).batch(("a", "active"), ("kept", "2"))
    log.write()
    last = {record.key: record.value for record in log.records if record.key is not None}
    return FaultLog(log_dir, last, log.next_offset)


def compact(
    log_dir: Path, files: LocalFiles | None = None, execute: Executor | None = None
) -> CompactionRun:
    """One run on the log dir, all of it through `files`."""
    request = CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=(TOPIC,))

    def one_by_one(plans, run: CleanRun):  # type: ignore[no-untyped-def]
        return (clean_partition(plan, run, files) for plan in plans)

    return apply_run(request, execute or one_by_one, files=files)


def contents(log_dir: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes, and its modification time in ms where it is a segment's that a
    round does not make anew. What is kept for undo is not counted.
    """
    found = {}
    for path in sorted(log_dir.rglob("*")):
        if path.is_file() and path.name != ".lock" and path.suffix != ".undo":
            is_segment = path.suffix in (".log", ".index", ".timeindex")
            time_ms = path.stat().st_mtime_ns // 1_000_000 if is_segment else 0
            found[str(path.relative_to(log_dir))] = path.read_bytes(), time_ms
    return found
