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
from pathlib import Path

from kafkalog.format.checkpoints import (
    HIGH_WATERMARK_FILE,
    RECOVERY_POINT_FILE,
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.constants import CompressionType
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
from kafkalog.format.time_index import pack_time_index
from tests.benchmarks.generated_batches import LogSpec, Window, batch_windows

INDEX_INTERVAL_BYTES = 4096


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

    def append(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """A batch of so many bytes, which are written with others."""
        if max_timestamp > self.largest[0]:
            self.largest = (max_timestamp, last_offset)
        if self.since_entry > INDEX_INTERVAL_BYTES:
            self.entries.append((last_offset, self.size))
            self._append_time()
            self.since_entry = 0
        self.since_entry += size
        self.size += size

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
    segment = _Segment(folder, 0)
    for window in batch_windows(spec):
        segment = _append_window(segment, window, spec.segment_bytes)
    segment.close()
    _Segment(folder, spec.records).close()
    _write_metadata(log_dir, folder, topic, partition, spec.records)
    return folder


def _append_window(segment: _Segment, window: Window, segment_bytes: int) -> _Segment:
    """The segment that is open behind it."""
    starts, view = window.starts.tolist(), memoryview(window.data)
    written = 0
    next_offset = int(window.first_offset)
    for start, end, last_offset, timestamp in zip(
        starts[:-1], starts[1:], window.last_offsets.tolist(), window.max_timestamps.tolist(),
        strict=True,
    ):  # fmt: skip
        if segment.size and segment.size + end - start > segment_bytes:
            segment.file.write(view[written:start])
            written = start
            segment.close()
            segment = _Segment(segment.folder, next_offset)
        segment.append(end - start, last_offset, timestamp)
        next_offset = last_offset + 1
    segment.file.write(view[written:])
    return segment


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
