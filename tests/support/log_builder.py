"""A small language for logs on disk, written with the plain-Python codec and with what Kafka puts
beside a segment.

    log = LogBuilder(tmp_path, "orders", 0)
    log.segment(0).batch(("k1", "v1"), ("k2", None), timestamp=NOW_MS).batch(("k3", "v3"), codec=4)
    log.segment().batch(("k1", "v4")).torn(7)
    log.checkpoints(high_watermark=log.next_offset)
    log.write()

A record is a (key, value) pair of str, bytes or None, or a `format.record.Record` with its own
offset, timestamp and headers. Offsets go on by themselves, timestamps are the batch's. `write`
makes `.log`, `.index`, `.timeindex` (by the append rule of Kafka 4.1+), leaves the indexes of the
last segment preallocated-free, and adds `partition.metadata`, `leader-epoch-checkpoint`, the log
dir's `meta.properties` and the checkpoint files. Several builders share a log dir.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    pack_leader_epoch_checkpoint,
    pack_offset_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.control_record import ControlRecordType, pack_marker_batch
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    log_file_name,
    offset_index_file_name,
    producer_snapshot_file_name,
    time_index_file_name,
)
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.partition_metadata import (
    META_PROPERTIES_FILE,
    MetaProperties,
    pack_meta_properties,
    pack_partition_metadata,
)
from kafkalog.format.producer_snapshot import ProducerEntry, pack_producer_snapshot
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from kafkalog.format.time_index import pack_time_index

NOW_MS = 1_750_000_000_000
INDEX_INTERVAL_BYTES = 4096
TOPIC_ID = "5yZ0C9BoQFCOVFnr7tZIYg"
DIRECTORY_ID = "Wk3qBKk1SDqFqbFZkqN0Jw"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"

Text = str | bytes | None
RecordLike = Record | tuple[Text, Text]


@dataclass
class SegmentBuilder:
    """One segment; every method returns the segment, so that calls chain."""

    base_offset: int
    next_offset: int
    batches: list[bytes] = field(default_factory=list)
    tail: bytes = b""
    suffix: str = ""
    next_timestamp: int = NOW_MS

    def batch(
        self, *records: RecordLike, timestamp: int | None = None, **fields: Any
    ) -> SegmentBuilder:
        """Append a batch; `fields` are those of `pack_batch` (codec, producer_id, last_offset
        …)."""
        ts = self.next_timestamp if timestamp is None else timestamp
        first = fields.get("base_offset", self.next_offset)
        made = [self._record(r, first + i, ts) for i, r in enumerate(records)]
        if not made:
            fields.setdefault("base_offset", first)
        return self.raw(pack_batch(made, **fields))

    def marker(
        self, control_type: ControlRecordType, producer_id: int, producer_epoch: int = 0
    ) -> SegmentBuilder:
        """Append the batch that ends a transaction."""
        return self.raw(
            pack_marker_batch(
                control_type,
                self.next_offset,
                self.next_timestamp,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            )
        )

    def raw(self, batch: bytes) -> SegmentBuilder:
        """Append a batch as it is."""
        self.batches.append(batch)
        self.next_offset = parse_header(batch).next_offset
        return self

    def gap(self, offsets: int) -> SegmentBuilder:
        """Leave offsets out, as compaction does."""
        self.next_offset += offsets
        return self

    def torn(self, length: int) -> SegmentBuilder:
        """End the file inside a batch, after `length` of its bytes."""
        whole = pack_batch([Record(self.next_offset, self.next_timestamp, b"torn", b"x" * 64)])
        self.tail += whole[:length]
        return self

    def trailing(self, data: bytes) -> SegmentBuilder:
        """Any bytes behind the last batch."""
        self.tail += data
        return self

    @property
    def data(self) -> bytes:
        return b"".join(self.batches) + self.tail

    def write(self, folder: Path) -> Path:
        path = folder / log_file_name(self.base_offset, self.suffix)
        path.write_bytes(self.data)
        if not self.suffix:
            offset_index, time_index = self.indexes()
            (folder / offset_index_file_name(self.base_offset)).write_bytes(offset_index)
            (folder / time_index_file_name(self.base_offset)).write_bytes(time_index)
        return path

    def indexes(self) -> tuple[bytes, bytes]:
        """Bytes of `.index` and `.timeindex` as one writer without restarts leaves them."""
        offsets: list[int] = []
        positions: list[int] = []
        times: list[tuple[int, int]] = []
        largest, largest_offset, position, since_entry = -1, self.base_offset, 0, 0
        for batch in self.batches:
            header = parse_header(batch)
            if header.max_timestamp > largest:
                largest, largest_offset = header.max_timestamp, header.last_offset
            if since_entry > INDEX_INTERVAL_BYTES:
                offsets.append(header.last_offset)
                positions.append(position)
                _append_time(times, largest, largest_offset)
                since_entry = 0
            since_entry += len(batch)
            position += len(batch)
        _append_time(times, largest, largest_offset)
        return (
            pack_offset_index(offsets, positions, self.base_offset),
            pack_time_index([t for t, _ in times], [o for _, o in times], self.base_offset),
        )

    @staticmethod
    def _record(record: RecordLike, offset: int, timestamp: int) -> Record:
        if isinstance(record, Record):
            return record
        key, value = record
        return Record(offset, timestamp, _bytes(key), _bytes(value))


class LogBuilder:
    """One partition directory below a log dir."""

    def __init__(
        self, log_dir: Path, topic: str = "orders", partition: int = 0, *, dir_suffix: str = ""
    ) -> None:
        self.log_dir = log_dir
        self.topic = topic
        self.partition = partition
        self.path = log_dir / f"{topic}-{partition}{dir_suffix}"
        self.segments: list[SegmentBuilder] = []
        self._snapshots: dict[int, bytes] = {}
        self._offsets: dict[str, int] = {}

    @property
    def next_offset(self) -> int:
        return self.segments[-1].next_offset if self.segments else 0

    def segment(self, base_offset: int | None = None, *, suffix: str = "") -> SegmentBuilder:
        """A new segment, by default at the log's end; `suffix` is `.cleaned`, `.swap` or
        `.deleted`."""
        base = self.next_offset if base_offset is None else base_offset
        segment = SegmentBuilder(base, base, suffix=suffix)
        self.segments.append(segment)
        return segment

    def snapshot(self, end_offset: int, entries: Sequence[ProducerEntry] = ()) -> Self:
        """A producer snapshot with the state below `end_offset`."""
        self._snapshots[end_offset] = pack_producer_snapshot(entries)
        return self

    def checkpoints(
        self,
        *,
        high_watermark: int | None = None,
        recovery_point: int | None = None,
        log_start: int | None = None,
        cleaner: int | None = None,
    ) -> Self:
        """This partition's lines in the log dir's checkpoint files; None leaves a line out."""
        lines = {
            HIGH_WATERMARK_FILE: high_watermark,
            RECOVERY_POINT_FILE: recovery_point,
            LOG_START_OFFSET_FILE: log_start,
            CLEANER_OFFSET_FILE: cleaner,
        }
        self._offsets |= {name: offset for name, offset in lines.items() if offset is not None}
        return self

    def write(self) -> Path:
        """Write everything; returns the partition directory."""
        self.path.mkdir(parents=True, exist_ok=True)
        for segment in self.segments:
            segment.write(self.path)
        for end_offset, data in self._snapshots.items():
            (self.path / producer_snapshot_file_name(end_offset)).write_bytes(data)
        (self.path / PARTITION_METADATA_FILE).write_bytes(pack_partition_metadata(TOPIC_ID))
        first = self.segments[0].base_offset if self.segments else 0
        (self.path / LEADER_EPOCH_CHECKPOINT_FILE).write_bytes(
            pack_leader_epoch_checkpoint([(0, first)])
        )
        meta = MetaProperties(1, CLUSTER_ID, 1, DIRECTORY_ID)
        (self.log_dir / META_PROPERTIES_FILE).write_bytes(pack_meta_properties(meta))
        for name, offset in self._offsets.items():
            self._write_checkpoint(self.log_dir / name, offset)
        return self.path

    def _write_checkpoint(self, path: Path, offset: int) -> None:
        """Add or replace this partition's line."""
        entries = parse_offset_checkpoint(path.read_bytes(), str(path)) if path.exists() else {}
        path.write_bytes(pack_offset_checkpoint({**entries, (self.topic, self.partition): offset}))


def _append_time(times: list[tuple[int, int]], timestamp: int, offset: int) -> None:
    """A time index entry rises, or is not written."""
    if timestamp > (times[-1][0] if times else -1):
        times.append((timestamp, offset))


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
