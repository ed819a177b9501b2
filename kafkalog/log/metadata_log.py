"""Settings of a cluster out of `__cluster_metadata-0`: its newest whole snapshot, then the log.

Strategy, as a broker does when it starts: of the snapshots `<end offset>-<epoch>.checkpoint` take
the newest one that is whole (a header in front, a footer at the end, every batch sound), else an
older one, else begin at offset 0; then replay the log from there. A snapshot that is ahead of the
log, by epoch and then by offset, is all that counts: a broker would drop the log. A log that begins
behind the snapshot has lost what is in between.

Reading goes to the log's end. The high watermark of this log is on no disk (no checkpoint has it,
and `quorum-state` tells votes only), so records at the end that a quorum never agreed on would
count as well; with one controller, or after a clean stop, there are none.

Nothing here raises: what is wrong is a problem of the ClusterSettings, and whoever needs a setting
must refuse then.

Source: Kafka RecordsSnapshotReader, KafkaMetadataLog (recovery), MetadataLoader; KIP-630.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena, RecordAreas, iterate_record_areas
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.spans import decode_spans
from kafkalog.errors import CorruptRecordError, KafkaLogError, LogChangedError
from kafkalog.format.constants import CONTROL_FLAG_MASK
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.file_names import LogFileKind, parse_file_name
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.metadata_state import MetadataState
from kafkalog.log.segment_file import read_chunks, scan_headers
from kafkalog.log.topic_partition import CLUSTER_METADATA_TOPIC
from kafkalog.messages.cluster_metadata import decode_metadata_record

METADATA_DIR = f"{CLUSTER_METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True, order=True)
class _Snapshot:
    """Compared as Kafka does: the newest has the highest epoch, then the highest end offset."""

    epoch: int
    end_offset: int
    path: Path


@dataclass(frozen=True, slots=True)
class _Record:
    """A record where it lies; `control_type` is None for data."""

    offset: int
    position: int
    control_type: ControlRecordType | None
    value: bytes | None
    path: str


def read_cluster_settings(directory: Path) -> ClusterSettings:
    """What the metadata partition in `directory` says; problems are in the result.

    Beside a live broker files may go while they are read: looked at once more, there are others.
    """
    with suppress(FileNotFoundError, LogChangedError):
        return _read_or_say(directory)
    try:
        return _read_or_say(directory)
    except (FileNotFoundError, LogChangedError) as error:
        return _unreadable(directory, error)


def _read_or_say(directory: Path) -> ClusterSettings:
    try:
        return _read(directory)
    except (FileNotFoundError, LogChangedError):
        raise
    except (KafkaLogError, OSError) as error:
        return _unreadable(directory, error)


def _unreadable(directory: Path, error: Exception) -> ClusterSettings:
    return ClusterSettings(str(directory), "", 0, problems=(str(error),))


def _read(directory: Path) -> ClusterSettings:
    segments, snapshots = _files(directory)
    log_start = segments[0][0] if segments else 0
    log_end, last_epoch = _log_end(segments)
    state, snapshot, passed_over = _load_newest(snapshots, log_start)
    start = 0 if snapshot is None else snapshot.end_offset
    if snapshot is not None and (snapshot.epoch, start) > (last_epoch, log_end):
        end = start
        read_from = f"{snapshot.path.name}, which is ahead of the log"
    else:
        if log_start > start:
            raise CorruptRecordError(
                f"the log begins at offset {log_start}, and no whole snapshot reaches it"
                + "".join(f"; {why}" for why in passed_over),
                path=str(directory),
            )
        end = _replay(segments, start, state)
        source = "the log" if snapshot is None else f"{snapshot.path.name} and the log"
        read_from = f"{source} up to offset {end}"
    if state.has_open_transaction:
        read_from += ", without the transaction that is open there"
    if passed_over:
        read_from += f" (not whole: {'; '.join(passed_over)})"
    return ClusterSettings(
        path=str(directory),
        read_from=read_from,
        end_offset=end,
        topics=state.topics(),
        broker_configs=state.broker_configs(),
        feature_levels=dict(state.feature_levels),
        unread=dict(state.unread),
    )


def _files(directory: Path) -> tuple[list[tuple[int, Path]], list[_Snapshot]]:
    """((base offset, path) of the segments in order, the snapshots from the newest on)."""
    segments, snapshots = [], []
    for path in directory.iterdir():
        name = parse_file_name(path.name)
        if name is None or name.suffix:
            continue
        if name.kind == LogFileKind.LOG:
            segments.append((name.offset, path))
        elif name.kind == LogFileKind.METADATA_SNAPSHOT and name.epoch is not None:
            snapshots.append(_Snapshot(name.epoch, name.offset, path))
    return sorted(segments), sorted(snapshots, reverse=True)


def _log_end(segments: Sequence[tuple[int, Path]]) -> tuple[int, int]:
    """(log end offset, epoch of the last batch); (base offset, -1) of a log without batches."""
    for _, path in reversed(segments):
        rows = scan_headers(str(path)).rows
        if rows.size:
            return int(rows["last_offset"][-1]) + 1, int(rows["partition_leader_epoch"][-1])
    return (segments[-1][0] if segments else 0), -1


def _load_newest(
    snapshots: Sequence[_Snapshot], log_start: int
) -> tuple[MetadataState, _Snapshot | None, list[str]]:
    """The state of the newest whole snapshot, and why newer ones were passed over.

    One that ends below the log's start is of no use, and a broker deletes it.
    """
    passed_over = []
    for snapshot in snapshots:
        if snapshot.end_offset < log_start:
            continue
        state = MetadataState()
        try:
            _load_snapshot(snapshot, state)
        except KafkaLogError as error:
            passed_over.append(str(error))
            continue
        return state, snapshot, passed_over
    return MetadataState(), None, passed_over


def _load_snapshot(snapshot: _Snapshot, state: MetadataState) -> None:
    path = str(snapshot.path)
    first = last = None
    for record in _records(snapshot.path):
        first = record if first is None else first
        last = record
        _append(record, state)
    if first is None or first.control_type != ControlRecordType.SNAPSHOT_HEADER:
        raise CorruptRecordError("the snapshot does not begin with its header", path=path)
    if last is None or last.control_type != ControlRecordType.SNAPSHOT_FOOTER:
        raise CorruptRecordError("the snapshot does not end with its footer", path=path)
    if state.has_open_transaction:
        raise CorruptRecordError("the snapshot ends within a transaction", path=path)


def _replay(segments: Sequence[tuple[int, Path]], start: int, state: MetadataState) -> int:
    """Apply the records from offset `start` on; returns the log's end."""
    next_offset = None
    for number, (base_offset, path) in enumerate(segments):
        following = segments[number + 1 : number + 2]
        if following and following[0][0] <= start:
            continue
        next_offset = base_offset if next_offset is None else next_offset
        for record in _records(path, is_last=not following):
            # A Raft log has no gaps: whatever is missing may have changed a setting.
            if record.offset != next_offset:
                raise CorruptRecordError(
                    f"offset {record.offset} follows {next_offset - 1}",
                    path=record.path,
                    position=record.position,
                    offset=record.offset,
                )
            next_offset += 1
            if record.offset >= start:
                _append(record, state)
    return start if next_offset is None else max(start, next_offset)


def _append(record: _Record, state: MetadataState) -> None:
    if record.control_type is not None:
        return
    try:
        state.append(decode_metadata_record(record.value))
    except KafkaLogError as error:
        where = "" if error.position is None else f"byte {error.position} of the value: "
        raise type(error)(
            where + error.reason, path=record.path, position=record.position, offset=record.offset
        ) from None


def _records(path: Path, *, is_last: bool = False) -> Iterator[_Record]:
    """Every record of a file, its batches' checksums verified.

    Only the last segment of a log may end in the middle of a batch.
    """
    chunks = read_chunks(str(path))
    arena = Arena()
    for chunk in chunks:
        sound = verify_checksums(chunk.buf, chunk.position, chunk.rows)
        if not sound.all():
            batch = chunk.rows[int(np.argmin(sound))]
            raise CorruptRecordError(
                "the batch's CRC does not agree",
                path=str(path),
                position=int(batch["position"]),
                offset=int(batch["base_offset"]),
            )
        for part, areas in iterate_record_areas(
            chunk.buf, chunk.position, chunk.rows, arena, path=str(path)
        ):
            yield from _part_records(chunk.rows[part], areas, str(path))
    if chunks.trailing_bytes and not is_last:
        raise CorruptRecordError(
            f"{chunks.trailing_bytes} bytes after the last whole batch",
            path=str(path),
            position=chunks.valid_bytes,
        )


def _part_records(rows: NDArray[np.void], areas: RecordAreas, path: str) -> Iterator[_Record]:
    spans = decode_spans(areas, rows, path)
    positions = rows["position"].tolist()
    is_control = ((rows["attributes"] & CONTROL_FLAG_MASK) != 0).tolist()
    data = areas.buf.data
    for b, offset, key_start, key_length, value_start, value_length in zip(
        spans.batch_indexes.tolist(),
        spans.offsets.tolist(),
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
        yield _Record(offset, positions[b], control_type, value, path)
