"""A partition that grows on the disk as under a broker: appended to, rolled, compacted and cut by
retention, with a diary of what was written and what went when.

    log = GrowingLog(log_dir, "orders-0", random.Random(1))
    log.append(); log.roll(); log.compact(); log.retain(retention_bytes)

Compaction and retention are kafkalog's own, with `--apply`, as an operator runs them.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import kafkalog
from kafkalog.cli.main import main
from kafkalog.format import checkpoints
from kafkalog.format.file_names import (
    log_file_name,
    offset_index_file_name,
    producer_snapshot_file_name,
    time_index_file_name,
)
from kafkalog.format.producer_snapshot import pack_producer_snapshot
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from tests.support.log_builder import BuiltSegment, LogBuilder

KEYS = 200
_INDEX_INTERVAL = 4096


class GrowingLog:
    """One partition; see the module's text."""

    def __init__(self, log_dir: Path, name: str, numbers: random.Random) -> None:
        builder = LogBuilder(log_dir, name).segment()
        self.path = builder.write()
        self.log_dir = log_dir
        self.next_offset = 0
        # offset → when the command began that removed it, and the next one, to which what the first
        # kept for its undo is lost
        self.removed: dict[int, float] = {}
        self.forgotten: dict[int, float] = {}
        self._numbers = numbers
        self._name = name
        self._active = builder.segments[0]
        self._alive: set[int] = set()
        self._kept: set[int] = set()

    def append(self) -> None:
        """A batch of some records; now and then a reader finds only half of it for a moment."""
        now_ms = int(time.time() * 1000)
        count = self._numbers.randrange(1, 60)
        first = self.next_offset
        records = [
            Record(offset, now_ms, b"k%d" % self._numbers.randrange(KEYS), b"%d " % offset * 20)
            for offset in range(first, first + count)
        ]
        batch = pack_batch(records)
        cut = self._numbers.choice((0, 0, 30, len(batch) // 2))
        with (self.path / log_file_name(self._active.base_offset)).open("ab") as file:
            for part in (batch[:cut], batch[cut:]):
                file.write(part)
                file.flush()
                if 0 < cut == len(part):
                    time.sleep(0.05)
        self._active.batches.append((len(self._active.log), parse_header(batch)))
        self._active.log += batch
        self.next_offset = first + count
        self._alive.update(range(first, first + count))

    def roll(self) -> None:
        """Close the active segment; what is in it may be compacted from now on."""
        base = self._active.base_offset
        if base == self.next_offset:
            return
        offsets, times = self._active.packed_indexes(_INDEX_INTERVAL)
        (self.path / offset_index_file_name(base)).write_bytes(offsets)
        (self.path / time_index_file_name(base)).write_bytes(times)
        snapshot = self.path / producer_snapshot_file_name(self.next_offset)
        snapshot.write_bytes(pack_producer_snapshot([]))
        self._active = BuiltSegment(self.next_offset)
        (self.path / log_file_name(self.next_offset)).touch()
        for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
            self._checkpoint(name)

    def compact(self, run_dir: Path) -> None:
        """`kafkalog compact --apply`, and what it removed into the diary."""
        self._apply(run_dir, "compact", "min.cleanable.dirty.ratio=0", "cleanup.policy=compact")

    def retain(self, run_dir: Path, retention_bytes: int) -> None:
        """`kafkalog retain --apply`, and what it removed into the diary."""
        size = f"retention.bytes={retention_bytes}"
        self._apply(run_dir, "retain", size, "cleanup.policy=compact,delete")

    def on_disk(self) -> set[int]:
        """The offsets of the records that are there now."""
        batches = kafkalog.read_records(self.path, columns=["offset"])
        return {offset for batch in batches for offset in batch.column("offset").to_pylist()}

    def _apply(self, run_dir: Path, verb: str, *settings: str) -> None:
        began = time.time()
        self.forgotten.update(dict.fromkeys(self._kept, began))
        topic = self._name.rpartition("-")[0]
        words = [verb, "--log-dir", str(self.path), "--topic", topic, "--apply"]
        words += [word for setting in settings for word in ("--config", setting)]
        code = main([*words, "--run-dir", str(run_dir)])
        assert code == 0, f"{verb}: exit code {code}"
        alive = self.on_disk()
        self._kept = self._alive - alive
        self.removed.update(dict.fromkeys(self._kept, began))
        self._alive = alive

    def _checkpoint(self, name: str) -> None:
        path = self.log_dir / name
        known = checkpoints.parse_offset_checkpoint(path.read_bytes())
        topic, _, partition = self._name.rpartition("-")
        known[topic, int(partition)] = self.next_offset
        beside = path.with_suffix(".tmp")
        beside.write_bytes(checkpoints.pack_offset_checkpoint(known))
        beside.rename(path)
