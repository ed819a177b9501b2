"""Settings of a cluster out of `__cluster_metadata-0`: its newest whole snapshot, then the log.

Strategy, as a broker does when it starts: of the snapshots `<end offset>-<epoch>.checkpoint` take
the newest one that is whole (a header in front, a footer at the end, every batch sound), else an
older one, else begin at offset 0; then replay the log from there. A snapshot that is ahead of the
log, by epoch and then by offset, is all that counts: a broker would drop the log. A log that begins
behind the snapshot has lost what is in between: nothing behind the snapshot is applied then, and
the gap is a problem. Where a record cannot be read, or contradicts the ones before, the state in
front of it is what counts.

Reading goes to the log's end. The high watermark of this log is on no disk (no checkpoint has it,
and `quorum-state` tells votes only), so records at the end that a quorum never agreed on would
count as well; with one controller, or after a clean stop, there are none.

Nothing here raises: what is wrong is a problem of the ClusterSettings, which tell the state at
their end offset all the same. Whoever changes a log must refuse then.

Source: Kafka RecordsSnapshotReader, KafkaMetadataLog (recovery), MetadataLoader; KIP-630.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kafkalog.errors import CorruptRecordError, KafkaLogError, LogChangedError
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.listing import path_text
from kafkalog.log.metadata_records import (
    METADATA_DIR,
    MetadataLogRecord,
    MetadataSnapshot,
    Segments,
    metadata_files,
    metadata_log_end,
    read_metadata_records,
    read_snapshot_records,
)
from kafkalog.log.metadata_state import SETTINGS_RECORDS, MetadataState

__all__ = ["METADATA_DIR", "read_cluster_settings"]


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
    return ClusterSettings(path_text(directory), "", 0, problems=(str(error),))


def _read(directory: Path) -> ClusterSettings:
    segments, snapshots = metadata_files(directory)
    log_start = segments[0][0] if segments else 0
    log_end, last_epoch = metadata_log_end(segments)
    state, snapshot, skipped = _load_newest(snapshots, log_start)
    start = end = 0 if snapshot is None else snapshot.end_offset
    problems: tuple[str, ...] = ()
    if snapshot is not None and (snapshot.epoch, start) > (last_epoch, log_end):
        read_from = f"{snapshot.path.name}, which is ahead of the log"
    elif log_start > start:
        read_from = "nothing" if snapshot is None else f"{snapshot.path.name} alone"
        error = CorruptRecordError(
            f"the log begins at offset {log_start}, and no whole snapshot reaches it: offsets "
            f"{start} to {log_start - 1} are missing" + "".join(f"; {why}" for why in skipped),
            path=str(directory),
        )
        problems = (_so_far(error, end),)
    else:
        end, broken = _replay(segments, start, state)
        source = "the log" if snapshot is None else f"{snapshot.path.name} and the log"
        read_from = f"{source} up to offset {end}"
        problems = () if broken is None else (_so_far(broken, end),)
    if state.has_open_transaction:
        read_from += ", without the transaction that is open there"
    if skipped:
        read_from += f" (not whole: {'; '.join(skipped)})"
    return ClusterSettings(
        path=path_text(directory),
        read_from=read_from,
        end_offset=end,
        topics=state.topic_settings(),
        broker_configs=state.broker_configs(),
        feature_levels=dict(state.feature_levels),
        unread=state.unread(),
        problems=problems,
    )


def _so_far(error: KafkaLogError, end: int) -> str:
    return f"{error} (the state before offset {end} is used)"


def _load_newest(
    snapshots: Sequence[MetadataSnapshot], log_start: int
) -> tuple[MetadataState[None], MetadataSnapshot | None, list[str]]:
    """The state of the newest whole snapshot, and why newer ones were skipped.

    One that ends below the log's start is of use only where no other is whole.
    """
    skipped = []
    # In two passes: first those that the log goes on from, the newest first, then the others, which
    # are better than nothing.
    reaching = [snapshot for snapshot in snapshots if snapshot.end_offset >= log_start]
    for snapshot in [*reaching, *(each for each in snapshots if each not in reaching)]:
        # A state of its own for each try: of a snapshot that breaks off nothing may stay behind.
        state: MetadataState[None] = MetadataState(needed=SETTINGS_RECORDS)
        try:
            _load_snapshot(snapshot, state)
        except KafkaLogError as error:
            skipped.append(str(error))
            continue
        return state, snapshot, skipped
    return MetadataState(needed=SETTINGS_RECORDS), None, skipped


def _load_snapshot(snapshot: MetadataSnapshot, state: MetadataState[None]) -> None:
    for record in read_snapshot_records(snapshot.path):
        _append(record, state)
    if state.has_open_transaction:
        raise CorruptRecordError("the snapshot ends within a transaction", path=str(snapshot.path))


def _replay(
    segments: Segments, start: int, state: MetadataState[None]
) -> tuple[int, KafkaLogError | None]:
    """Apply the records from offset `start` on; returns where that ended, and why not at the log's
    end.
    """
    end = start
    try:
        for record in read_metadata_records(segments, start):
            _append(record, state)
            end = record.offset + 1
    except LogChangedError:
        raise
    except KafkaLogError as error:
        return end, error
    return end, None


def _append(record: MetadataLogRecord, state: MetadataState[None]) -> None:
    try:
        state.append(record, None)
    except KafkaLogError as error:
        where = "" if error.position is None else f"byte {error.position} of the value: "
        raise type(error)(
            where + error.reason, path=record.path, position=record.position, offset=record.offset
        ) from None
