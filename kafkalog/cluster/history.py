"""One metadata partition, replayed: the tables of the cluster, as of its end or of a place before.

Strategy: from offset 0 on where the log begins there; else the oldest whole snapshot that reaches
the log counts as written at its end offset, and the log goes on from it; where none reaches it, the
newest whole one, and the gap is a problem. Where the log cannot be read on, a whole snapshot behind
that place is begun from in its stead. A snapshot ahead of the log is all that counts, as for a
broker. `as_started` begins as a broker does that starts: with the newest whole snapshot. Records of
a metadata transaction count at its end, or never. The snapshot `0-0`, with which a dynamic quorum
begins, has its first voters. What a member's `quorum-state` promised comes last.

Nothing here raises for what is on the disk: a record that cannot be decoded or contradicts the ones
before is a problem and left out, a batch that is not sound ends the history, and types or versions
without a table are counted. Behind a gap contradictions are to be expected: they are counted, and
said once. Reading goes to the log's end: the quorum's high watermark is on no disk.

Source: Kafka MetadataLoader, MetadataBatchLoader; KIP-630, KIP-853, KIP-868.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.cluster.moments import (
    METADATA_LOG,
    METADATA_SNAPSHOT,
    QUORUM_STATE,
    Moment,
    Row,
)
from kafkalog.cluster.tables import ClusterTables
from kafkalog.errors import KafkaLogError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.file_names import QUORUM_STATE_FILE
from kafkalog.format.quorum_state import parse_quorum_state
from kafkalog.log.listing import path_text
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.metadata_records import (
    MetadataLogRecord,
    MetadataSnapshot,
    Segments,
    metadata_files,
    metadata_log_end,
    read_metadata_records,
    read_snapshot_records,
)
from kafkalog.log.small_files import read_small_file
from kafkalog.messages.kraft_control import decode_kraft_control

_Whole = tuple[MetadataSnapshot, Sequence[MetadataLogRecord]]


@dataclass(frozen=True, slots=True)
class Until:
    """Where to stop: before `offset`, or before the first record after `time_ms`."""

    offset: int | None = None
    time_ms: int | None = None

    def is_past(self, record: MetadataLogRecord) -> bool:
        return (self.offset is not None and record.offset >= self.offset) or (
            self.time_ms is not None and record.timestamp_ms > self.time_ms
        )


class ClusterHistory:
    """The history of one cluster. tables: what happened, and what holds now. end_offset, end_ms:
    one past the last record that counts, and when that was written. problems: what could not be
    read; of records the errors themselves are in `refused`. gap: the offsets, the last one
    excluded, that neither the log nor a whole snapshot in front of it has. as_started: as a
    broker's start reads it, which begins with the newest snapshot, if it lacks its end too.
    """

    def __init__(
        self, directory: Path, until: Until | None = None, *, as_started: bool = False
    ) -> None:
        self.directory = directory
        self.problems: list[str] = []
        self.refused: list[KafkaLogError] = []
        self.gap: tuple[int, int] | None = None
        self._until = until or Until()
        self._as_started = as_started
        self._begin_anew()
        meta = read_log_dir_files(directory.parent).meta
        self.cluster_id = None if meta is None else meta.cluster_id
        try:
            self._read()
        except (KafkaLogError, OSError) as error:
            self.problems.append(str(error))

    def _begin_anew(self) -> None:
        """Nothing is known."""
        self.tables = ClusterTables()
        self.end_offset = 0
        self.end_ms: int | None = None
        self._contradictions = 0

    @property
    def unread(self) -> Mapping[str, int]:
        """Records that are not known, by type and version, or by feature and level."""
        return self.tables.state.unread()

    @property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each table, in the order of their offsets."""
        return self.tables.rows

    def partitions_now(self) -> list[Row]:
        """The partitions as they are where the history ends."""
        return list(self.tables.state.topics.states())

    def brokers_now(self) -> dict[int, Row]:
        """The registered brokers by node."""
        return self.tables.brokers.alive()

    # -- reading -------------------------------------------------------------------------------

    def _read(self) -> None:
        segments, snapshots = metadata_files(self.directory)
        log_start = segments[0][0] if segments else 0
        log_end, last_epoch = metadata_log_end(segments)
        newest = self._newest(snapshots)
        start = 0
        if newest is not None and (newest[0].epoch, newest[0].end_offset) > (last_epoch, log_end):
            self._begin(*newest)
            self.problems.append(
                f"{newest[0].path}: is ahead of the log, which ends at offset {log_end}: what was "
                "before it is left out"
            )
            return self._promise()
        if log_start > 0 or self._as_started:
            reaching = [s for s in snapshots if s.end_offset >= log_start]
            first = newest if self._as_started else self._newest(reversed(reaching))
            first = first or newest
            if first is not None:
                self._begin(*first)
                start = first[0].end_offset
            if start < log_start:
                self._say_gap(start, log_start)
                start = log_start
        else:
            self._first_voters(snapshots)
        is_past = self._follow(segments, start, newest)
        if self._contradictions:
            self.problems.append(
                f"{self.directory}: {self._contradictions} records contradict what is known, for "
                "what is missing before them"
            )
        return None if is_past else self._promise()

    def _say_gap(self, start: int, log_start: int) -> None:
        self.gap = start, log_start
        self.problems.append(
            f"{self.directory}: the log begins at offset {log_start}, and no whole snapshot "
            f"reaches it: offsets {start} to {log_start - 1} are missing"
        )

    def _follow(self, segments: Segments, start: int, newest: _Whole | None) -> bool:
        """The records from `start` on; whether they went past where to stop. Where they cannot be
        read, from the newest snapshot on if that lies behind.
        """
        try:
            for record in read_metadata_records(segments, start):
                if self._until.is_past(record):
                    return True
                self._append(record, self._moment(record, METADATA_LOG))
                self.end_offset, self.end_ms = record.offset + 1, record.timestamp_ms
        except KafkaLogError as error:
            end = self.end_offset
            is_behind = newest is not None and newest[0].end_offset > end
            if newest is None or not is_behind or self._stops_before(newest[0]):
                raise
            self.problems.append(f"{error}; what the log has before {newest[0].path} is left out")
            self._begin_anew()
            self._begin(*newest)
            return self._follow(segments, newest[0].end_offset, None)
        return False

    def _stops_before(self, snapshot: MetadataSnapshot) -> bool:
        """Whether what is wanted ends before a snapshot does."""
        until = self._until
        return until.time_ms is not None or (
            until.offset is not None and until.offset < snapshot.end_offset
        )

    def _newest(self, snapshots: Iterable[MetadataSnapshot]) -> _Whole | None:
        """The first of them that can be read."""
        for snapshot in snapshots:
            try:
                return snapshot, read_snapshot_records(snapshot.path, as_started=self._as_started)
            except KafkaLogError as error:
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        return None

    def _begin(self, snapshot: MetadataSnapshot, records: Sequence[MetadataLogRecord]) -> None:
        """With a snapshot's state, as written at its end."""
        header = decode_kraft_control(ControlRecordType.SNAPSHOT_HEADER, records[0].value or b"")
        timestamp_ms = header["lastContainedLogTimestamp"]
        moment = Moment(
            snapshot.end_offset,
            timestamp_ms if timestamp_ms > 0 else None,
            snapshot.epoch,
            METADATA_SNAPSHOT,
            path_text(snapshot.path),
            self.cluster_id,
        )
        for record in records:
            self._append(record, moment)
        self.end_offset, self.end_ms = snapshot.end_offset, moment.timestamp_ms

    def _first_voters(self, snapshots: Sequence[MetadataSnapshot]) -> None:
        first = [snapshot for snapshot in snapshots if snapshot.end_offset == 0]
        whole = self._newest(first)
        if whole is not None:
            self._begin(*whole)

    def _promise(self) -> None:
        """Of the member whose disk it is; a place before the end has nothing to do with it."""
        path = self.directory / QUORUM_STATE_FILE
        if self._until != Until():
            return
        try:
            state = parse_quorum_state(read_small_file(path), path_text(path))
        except FileNotFoundError:
            return
        epoch = state.leader_epoch
        moment = Moment(
            self.end_offset, None, epoch, QUORUM_STATE, path_text(path), self.cluster_id
        )
        self.tables.controllers.promised(state, moment)

    def _moment(self, record: MetadataLogRecord, source: str) -> Moment:
        return Moment(
            record.offset,
            record.timestamp_ms if record.timestamp_ms >= 0 else None,
            record.epoch,
            source,
            record.path,
            self.cluster_id,
        )

    # -- replaying -----------------------------------------------------------------------------

    def _append(self, record: MetadataLogRecord, moment: Moment) -> None:
        try:
            self.tables.append(record, moment)
        except KafkaLogError as error:
            where = dataclasses.replace(moment, path=record.path)
            self._complain(error, where, record)

    def _complain(self, error: KafkaLogError, moment: Moment, record: MetadataLogRecord) -> None:
        if self.gap is not None:
            self._contradictions += 1
            return
        placed = type(error)(
            error.reason, path=moment.path, position=record.position, offset=record.offset
        )
        self.problems.append(str(placed))
        self.refused.append(placed)
