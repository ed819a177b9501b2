"""A small language for logs on disk: what a broker leaves behind after a clean stop, without a
broker.

    log = LogBuilder(log_dir, "orders-0")
    log.segment().batch(("k1", "v1"), ("k2", None)).batch(("k1", "v3"), codec=CompressionType.ZSTD)
    log.segment().batch(("k2", "v4"), producer_id=7).torn(20)
    path = log.write()

A record is a `Record` (its offset and timestamp are kept) or a tuple (key, value) or (key, value,
headers) of str, bytes or None; it gets the next offset and the timestamp START_MS + offset.
`segment` without a number rolls at the next offset; a higher number leaves a gap. Everything is
appended to the last segment, the active one.

`write` makes the partition directory (segments with their indexes by Kafka's per-batch rule,
snapshots at every roll and at the log end, leader epochs, partition.metadata) and enters the
partition in the log dir's own files.

Nothing of the package but `kafkalog.format` is used, so that its readers can be tested against it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalog.format import checkpoints, meta_properties, partition_metadata
from kafkalog.format.checkpoints import pack_leader_epoch_checkpoint
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.file_names import (
    LEADER_EPOCH_CHECKPOINT_FILE,
    PARTITION_METADATA_FILE,
    log_file_name,
    offset_index_file_name,
    producer_snapshot_file_name,
    time_index_file_name,
    transaction_index_file_name,
)
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.producer_snapshot import pack_producer_snapshot
from kafkalog.format.record import Header, Record
from kafkalog.format.record_batch import RecordBatchHeader, pack_batch, parse_header
from kafkalog.format.time_index import pack_time_index
from tests.support.packing import pack_marker_batch
from tests.support.producer_states import ProducerStates

START_MS = 1_700_000_000_000
INDEX_BYTES = 10 * 1024 * 1024
TOPIC_ID = "4L6g3nShT-eMCtK--X86sw"
META = meta_properties.MetaProperties(1, "5L6g3nShT-eMCtK--X86sw", 1, "QV6HkAN4wiUW_Jo7G4Y02Q")

Text = str | bytes | None
RecordSpec = Record | tuple[Text, Text] | tuple[Text, Text, tuple[Header, ...]]


@dataclass
class BuiltSegment:
    """One segment in memory: its bytes, and (position, header) of every batch."""

    base_offset: int
    log: bytearray = field(default_factory=bytearray)
    batches: list[tuple[int, RecordBatchHeader]] = field(default_factory=list)
    aborted: bytearray = field(default_factory=bytearray)
    modified_ms: int | None = None

    def packed_indexes(self, interval_bytes: int, *, closed: bool = True) -> tuple[bytes, bytes]:
        """Offset and time index as one pass over the batches writes them (Kafka 4.1+)."""
        offsets: list[int] = []
        positions: list[int] = []
        times: list[tuple[int, int]] = []
        largest = (-1, self.base_offset)
        bytes_since_entry = 0
        for position, header in self.batches:
            if header.max_timestamp > largest[0]:
                largest = header.max_timestamp, header.last_offset
            if bytes_since_entry > interval_bytes:
                offsets.append(header.last_offset)
                positions.append(position)
                self._try_time_entry(times, largest)
                bytes_since_entry = 0
            bytes_since_entry += header.size_in_bytes
        if closed:
            self._try_time_entry(times, largest)
        return (
            pack_offset_index(offsets, positions, self.base_offset),
            pack_time_index(
                [time for time, _ in times], [offset for _, offset in times], self.base_offset
            ),
        )

    @staticmethod
    def _try_time_entry(times: list[tuple[int, int]], entry: tuple[int, int]) -> None:
        if entry[0] > (times[-1][0] if times else -1):
            times.append(entry)


class LogBuilder:
    """Builds one partition; see the module's text."""

    def __init__(
        self,
        log_dir: Path,
        topic_partition: object = "orders-0",
        *,
        index_interval_bytes: int = 4096,
        topic_id: str = TOPIC_ID,
    ) -> None:
        self.log_dir = log_dir
        self.name = str(topic_partition)
        self.path = log_dir / self.name
        self.index_interval_bytes = index_interval_bytes
        self.topic_id = topic_id
        self.segments: list[BuiltSegment] = []
        self.records: list[Record] = []  # all data records of whole batches, in order
        self.next_offset = 0
        self.leader_epoch = 0
        self.leader_epochs: list[tuple[int, int]] = []
        self.snapshots: dict[int, bytes] = {}
        self.producers = ProducerStates()
        self._checkpoints: dict[str, int] = {}

    # -- what is in the log ----------------------------------------------------------------------

    def segment(
        self, base_offset: int | None = None, *, modified_ms: int | None = None
    ) -> LogBuilder:
        """Start a segment; the one before is closed. `modified_ms` becomes its files' mtime."""
        base_offset = self.next_offset if base_offset is None else base_offset
        if base_offset < self.next_offset:
            raise ValueError(f"segment {base_offset} is below the next offset {self.next_offset}")
        if self.segments:
            self._take_snapshot(base_offset)
        self.next_offset = base_offset
        self.segments.append(BuiltSegment(base_offset, modified_ms=modified_ms))
        return self

    def batch(self, *specs: RecordSpec, timestamp: int | None = None, **header: Any) -> LogBuilder:
        """Append a data batch. `timestamp` is for all records given as tuples; `header` are
        pack_batch's fields. With a producer id, epoch 0 and the producer's next sequence are the
        defaults.
        """
        records = self._records(specs, timestamp)
        header.setdefault("partition_leader_epoch", self.leader_epoch)
        header.setdefault("base_offset", self.next_offset)
        if header.get("producer_id", -1) >= 0:
            header.setdefault("producer_epoch", self.producers.epoch(header["producer_id"]))
            header.setdefault(
                "base_sequence",
                self.producers.next_sequence(header["producer_id"], header["producer_epoch"]),
            )
        self.append(pack_batch(records, **header))
        self.records += records
        return self

    def marker(
        self,
        control_type: ControlRecordType,
        producer_id: int,
        *,
        timestamp: int | None = None,
        coordinator_epoch: int = 0,
        producer_epoch: int | None = None,
    ) -> LogBuilder:
        """Append the control batch that ends the producer's transaction."""
        if producer_epoch is None:
            producer_epoch = self.producers.epoch(producer_id)
        return self.append(
            pack_marker_batch(
                control_type,
                self.next_offset,
                START_MS + self.next_offset if timestamp is None else timestamp,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                partition_leader_epoch=self.leader_epoch,
            )
        )

    def append(self, batch: bytes) -> LogBuilder:
        """Append a whole batch as it is; indexes, epochs and producer state follow its header."""
        segment = self._active()
        header = parse_header(batch)
        if header.base_offset < self.next_offset:
            raise ValueError(f"batch {header.base_offset} is below {self.next_offset}")
        segment.batches.append((len(segment.log), header))
        segment.log += batch
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not self.leader_epochs or epoch > self.leader_epochs[-1][0]):
            self.leader_epochs.append((epoch, header.base_offset))
        aborted = self.producers.update(header, batch)
        if aborted is not None:
            segment.aborted += struct.pack(">hqqqq", 0, *aborted)
        self.next_offset = header.next_offset
        return self

    def raw(self, data: bytes) -> LogBuilder:
        """Append bytes that nothing else takes notice of."""
        self._active().log += data
        return self

    def torn(self, bytes_count: int) -> LogBuilder:
        """Append the first bytes of a batch that a crash cut off."""
        whole = pack_batch([Record(self.next_offset, START_MS, b"torn", b"x" * bytes_count)])
        return self.raw(whole[:bytes_count])

    def epoch(self, leader_epoch: int) -> LogBuilder:
        """Batches from here on have this leader epoch."""
        self.leader_epoch = leader_epoch
        return self

    # -- what the log dir's checkpoints say ------------------------------------------------------

    def high_watermark(self, offset: int) -> LogBuilder:
        return self._checkpoint(checkpoints.HIGH_WATERMARK_FILE, offset)

    def recovery_point(self, offset: int) -> LogBuilder:
        return self._checkpoint(checkpoints.RECOVERY_POINT_FILE, offset)

    def log_start_offset(self, offset: int) -> LogBuilder:
        return self._checkpoint(checkpoints.LOG_START_OFFSET_FILE, offset)

    def cleaner_offset(self, offset: int) -> LogBuilder:
        return self._checkpoint(checkpoints.CLEANER_OFFSET_FILE, offset)

    # -- to disk ---------------------------------------------------------------------------------

    def write(self, *, clean_shutdown: bool = True) -> Path:
        """Write everything and return the partition directory.

        After an unclean stop the active segment's indexes are still preallocated and not closed,
        there is no snapshot at the log end, and the recovery point is the active segment's base
        offset.
        """
        self.path.mkdir(parents=True)
        active = self._active()
        if clean_shutdown:
            self._take_snapshot(self.next_offset)
        for segment in self.segments:
            self._write_segment(segment, is_open=segment is active and not clean_shutdown)
        for end_offset, snapshot in self.snapshots.items():
            (self.path / producer_snapshot_file_name(end_offset)).write_bytes(snapshot)
        (self.path / LEADER_EPOCH_CHECKPOINT_FILE).write_bytes(
            pack_leader_epoch_checkpoint(self.leader_epochs)
        )
        (self.path / PARTITION_METADATA_FILE).write_bytes(
            partition_metadata.pack_partition_metadata(self.topic_id)
        )
        entries = {
            checkpoints.RECOVERY_POINT_FILE: (
                self.next_offset if clean_shutdown else active.base_offset
            ),
            checkpoints.HIGH_WATERMARK_FILE: self.next_offset,
        }
        self._write_log_dir_files(entries | self._checkpoints, clean_shutdown=clean_shutdown)
        return self.path

    def _write_segment(self, segment: BuiltSegment, *, is_open: bool) -> None:
        base_offset = segment.base_offset
        offset_index, time_index = segment.packed_indexes(
            self.index_interval_bytes, closed=not is_open
        )
        contents = {
            log_file_name(base_offset): bytes(segment.log),
            offset_index_file_name(base_offset): offset_index,
            time_index_file_name(base_offset): time_index,
        }
        if segment.aborted:
            contents[transaction_index_file_name(base_offset)] = bytes(segment.aborted)
        for name, content in contents.items():
            path = self.path / name
            path.write_bytes(content)
            if is_open and path.suffix in (".index", ".timeindex"):
                entry_bytes = 8 if path.suffix == ".index" else 12
                os.truncate(path, INDEX_BYTES // entry_bytes * entry_bytes)  # sparse
            if segment.modified_ms is not None:
                os.utime(path, ns=(segment.modified_ms * 1_000_000,) * 2)

    def _write_log_dir_files(self, entries: Mapping[str, int], *, clean_shutdown: bool) -> None:
        topic, _, partition = self.name.rpartition("-")
        for name, offset in entries.items():
            path = self.log_dir / name
            known = checkpoints.parse_offset_checkpoint(path.read_bytes()) if path.exists() else {}
            known[topic, int(partition)] = offset
            path.write_bytes(checkpoints.pack_offset_checkpoint(known))
        meta = self.log_dir / meta_properties.META_PROPERTIES_FILE
        meta.write_bytes(meta_properties.pack_meta_properties(META))
        marker = self.log_dir / ".kafka_cleanshutdown"
        if clean_shutdown:
            marker.write_bytes(b'{"version":0,"brokerEpoch":1}')
        else:
            marker.unlink(missing_ok=True)

    def _records(self, specs: tuple[RecordSpec, ...], timestamp: int | None) -> list[Record]:
        records: list[Record] = []
        offset = self.next_offset
        for spec in specs:
            if isinstance(spec, Record):
                record = spec
            else:
                time = START_MS + offset if timestamp is None else timestamp
                key, value, *headers = spec
                record = Record(offset, time, _encoded(key), _encoded(value), *headers)
            records.append(record)
            offset = record.offset + 1
        return records

    def _active(self) -> BuiltSegment:
        if not self.segments:
            self.segment()
        return self.segments[-1]

    def _take_snapshot(self, end_offset: int) -> None:
        # As Kafka: only if the log has advanced since the last one, so never at offset 0.
        if end_offset > max(self.snapshots, default=self.segments[0].base_offset):
            self.snapshots[end_offset] = pack_producer_snapshot(self.producers.entries())

    def _checkpoint(self, name: str, offset: int) -> LogBuilder:
        self._checkpoints[name] = offset
        return self


def _encoded(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
