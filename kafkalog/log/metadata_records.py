"""Records of `__cluster_metadata-0` where they lie: its segments, and the snapshots beside them.

 00000000000000000000.log                    segments, batches of data and of control records
 00000000000000000080-0000000003.checkpoint  a snapshot: the state before offset 80, written in
                                             epoch 3; header first, footer last, offsets from 0 on
 00000000000000000000-0000000000.checkpoint  what a quorum with a dynamic configuration begins with

A metadata log is small: a broker keeps all it tells in memory, and so may who reads this.

Source: Kafka Snapshots, RecordsSnapshotReader, KafkaRaftLog; KIP-630, KIP-853.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.record_areas import RecordAreas, iterate_record_areas
from kafkalog.batches.spans import decode_spans
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.constants import (
    CONTROL_FLAG_MASK,
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_RECORD_OVERHEAD_V0,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
)
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.file_names import LogFileKind, parse_file_name
from kafkalog.log.listing import entries_in, path_text
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.segment_tail import SegmentEnds, Tail, tail_error
from kafkalog.log.storage import open_file

__all__ = ["BOOTSTRAP_FILE", "METADATA_DIR"]

Segments = Sequence[tuple[int, Path]]


@dataclass(frozen=True, slots=True, order=True)
class MetadataSnapshot:
    """Compared as Kafka does: the newest has the highest epoch, then the highest end offset."""

    epoch: int
    end_offset: int
    path: Path


@dataclass(frozen=True, slots=True)
class MetadataLogRecord:
    """A record where it lies; `control_type` is None for data. epoch: of its batch's leader."""

    offset: int
    position: int
    timestamp_ms: int
    epoch: int
    control_type: ControlRecordType | None
    value: bytes | None
    path: str


def metadata_files(directory: Path) -> tuple[list[tuple[int, Path]], list[MetadataSnapshot]]:
    """((base offset, path) of the segments in order, the snapshots from the newest on)."""
    segments, snapshots = [], []
    for entry in entries_in(directory):
        name, path = parse_file_name(entry.name), directory / entry.name
        if name is None or name.suffix:
            continue
        if name.kind == LogFileKind.LOG:
            segments.append((name.offset, path))
        elif name.kind == LogFileKind.METADATA_SNAPSHOT and name.epoch is not None:
            snapshots.append(MetadataSnapshot(name.epoch, name.offset, path))
    return sorted(segments), sorted(snapshots, reverse=True)


def metadata_log_end(segments: Segments) -> tuple[int, int]:
    """(log end offset, epoch of the last batch); (base offset, -1) of a log without batches."""
    for _, path in reversed(segments):
        rows = scan_headers(path_text(path)).rows
        if rows.size:
            return int(rows["last_offset"][-1]) + 1, int(rows["partition_leader_epoch"][-1])
    return (segments[-1][0] if segments else 0), -1


def has_metadata_records(directory: Path) -> bool:
    """Whether a metadata directory has more than what a new quorum begins with: a controller has
    run there, or what it left cannot be read.
    """
    try:
        segments, snapshots = metadata_files(directory)
        return metadata_log_end(segments)[0] > 0 or any(s.end_offset > 0 for s in snapshots)
    except FileNotFoundError:
        return False
    except (KafkaLogError, OSError):
        return True


def read_metadata_records(segments: Segments, start: int) -> Iterator[MetadataLogRecord]:
    """The records from offset `start` on, control records too. Of what is in front of it only where
    batches end is looked at.

    CorruptRecordError for a batch that is not sound, and where an offset is missing: a Raft log has
    no gaps, so whatever is missing may have changed anything.
    """
    next_offset: int | None = None
    for number, (base_offset, path) in enumerate(segments):
        following = segments[number + 1 : number + 2]
        if following and following[0][0] <= start:
            continue
        for record in _records(path, start, is_last=not following):
            # The first record that is seen may lie in the middle of the batch that holds `start`.
            if next_offset is None:
                next_offset = base_offset if base_offset >= start else min(record.offset, start)
            if record.offset != next_offset:
                raise CorruptRecordError(
                    f"offset {record.offset} follows {next_offset - 1}",
                    path=record.path,
                    position=record.position,
                    offset=record.offset,
                )
            next_offset += 1
            if record.offset >= start:
                yield record


def read_snapshot_records(path: Path, *, as_started: bool = False) -> list[MetadataLogRecord]:
    """All records of a snapshot, header and footer too.

    CorruptRecordError for one that is not whole: a batch that is not sound, no header in front, no
    footer at the end. as_started: a broker's start reads up to the last whole batch, and does not
    miss the footer (RecordsSnapshotReader).
    """
    records = list(_records(path, is_last=as_started, is_snapshot=True))
    kinds = [record.control_type for record in records]
    if not kinds or kinds[0] != ControlRecordType.SNAPSHOT_HEADER:
        raise CorruptRecordError(
            "the snapshot does not begin with its header", path=path_text(path)
        )
    if kinds[-1] != ControlRecordType.SNAPSHOT_FOOTER and not as_started:
        reason = "the snapshot does not end with its footer"
        raise CorruptRecordError(reason, path=path_text(path))
    return records


def _records(
    path: Path, start: int = 0, *, is_last: bool = False, is_snapshot: bool = False
) -> Iterator[MetadataLogRecord]:
    """Every record of a file, from the batch with offset `start` on, up to the first batch whose
    checksum does not agree.

    Only the last segment of a log may end in the middle of a batch, and a snapshot that is read as
    a start does; the latter not in anything else.
    """
    next_offset = 0
    chunks = read_chunks(path_text(path))
    arena = Arena()
    for chunk in chunks:
        next_offset = int(chunk.rows["last_offset"][-1]) + 1
        wanted = chunk.rows[chunk.rows["last_offset"] >= start]
        sound = verify_checksums(chunk.buf, chunk.position, wanted)
        # All in front of the first wrong checksum is handed out, then the error raised: what counts
        # is known up to a place that the error names.
        rows = wanted if sound.all() else wanted[: int(np.argmin(sound))]
        for part, areas in iterate_record_areas(
            chunk.buf, chunk.position, rows, arena, path=path_text(path)
        ):
            yield from _part_records(rows[part], areas, path_text(path))
        if rows.size < wanted.size:
            batch = wanted[rows.size]
            raise CorruptRecordError(
                "the batch's CRC does not agree",
                path=path_text(path),
                position=int(batch["position"]),
                offset=int(batch["base_offset"]),
            )
    is_end = is_last and not (is_snapshot and not _is_batch_begun(path, chunks.valid_bytes))
    if chunks.trailing_bytes and not is_end:
        raise CorruptRecordError(
            f"{chunks.trailing_bytes} bytes after the last whole batch",
            path=path_text(path),
            position=chunks.valid_bytes,
        )
    # A torn tail is how a log ends after a crash, unless a sound batch lies behind it.
    end = chunks.valid_bytes + chunks.trailing_bytes
    tail = Tail(chunks.valid_bytes, end, chunks.status, next_offset - 1)
    error = tail_error(path_text(path), tail, SegmentEnds(next_offset, None, is_last=True))
    if error is not None:
        raise error


def _is_batch_begun(path: Path, position: int) -> bool:
    """Whether the rest of a file begins as a batch does (Kafka ByteBufferLogInputStream)."""
    with open_file(path_text(path)) as file:
        head = file.read_bytes(position, HEADER_SIZE_UP_TO_MAGIC)
    length = int.from_bytes(head[8:LOG_OVERHEAD], signed=True)
    return len(head) < LOG_OVERHEAD or (
        length >= LEGACY_RECORD_OVERHEAD_V0
        and (len(head) < HEADER_SIZE_UP_TO_MAGIC or head[16] <= MAGIC_VALUE_V2)
    )


def _part_records(
    rows: NDArray[np.void], areas: RecordAreas, path: str
) -> Iterator[MetadataLogRecord]:
    spans = decode_spans(areas, rows, path)
    positions = rows["position"].tolist()
    epochs = rows["partition_leader_epoch"].tolist()
    is_control = ((rows["attributes"] & CONTROL_FLAG_MASK) != 0).tolist()
    data = areas.buf.data
    for b, offset, timestamp, key_start, key_length, value_start, value_length in zip(
        spans.batch_indexes.tolist(),
        spans.offsets.tolist(),
        spans.timestamps.tolist(),
        spans.key_starts.tolist(),
        spans.key_lengths.tolist(),
        spans.value_starts.tolist(),
        spans.value_lengths.tolist(),
        strict=True,
    ):
        control_type = None
        if is_control[b]:
            key = None if key_length < 0 else bytes(data[key_start : key_start + key_length])
            control_type = parse_control_type(key, path=path, position=positions[b], offset=offset)
        value = None if value_length < 0 else bytes(data[value_start : value_start + value_length])
        yield MetadataLogRecord(
            offset, positions[b], timestamp, epochs[b], control_type, value, path
        )
