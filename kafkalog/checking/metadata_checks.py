"""What lies beside the cluster's metadata log: snapshots, `quorum-state`, and the bootstrap records
at the root of the log dir.

A snapshot has no index and no neighbours: a header in front, a footer at the end, checksums and
records between are all there is to check. A log that does not begin at offset 0 begins where a
snapshot ends, or below.

Source: Kafka RecordsSnapshotReader, Snapshots, KafkaRaftLog, FileQuorumStateStore,
BootstrapDirectory; KIP-630.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.constants import (
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAX_INT32,
    RECORD_BATCH_OVERHEAD,
)
from kafkalog.format.file_names import QUORUM_STATE_FILE, parse_file_name
from kafkalog.format.quorum_state import parse_quorum_state
from kafkalog.format.record_batch import parse_batch, with_crc
from kafkalog.log.cluster_settings import METADATA_VERSION
from kafkalog.log.listing import entries_in
from kafkalog.log.metadata_records import (
    MetadataLogRecord,
    MetadataSnapshot,
    Segments,
    metadata_files,
    metadata_log_end,
    read_snapshot_records,
)
from kafkalog.log.small_files import read_small_file
from kafkalog.messages.cluster_metadata import (
    ABORT_TRANSACTION_RECORD,
    BEGIN_TRANSACTION_RECORD,
    END_TRANSACTION_RECORD,
    FEATURE_LEVEL_RECORD,
    MetadataRecord,
    RawRecord,
    decode_metadata_record,
)
from kafkalog.messages.kraft_control import decode_kraft_control

_BROKEN = "metadata-snapshot-broken"
# What a broker takes for a snapshot, and reads two numbers in front of.
_SNAPSHOT_SUFFIXES = (".checkpoint", ".checkpoint.part", ".checkpoint.deleted")


def check_metadata_files(directory: str) -> Iterator[Finding]:
    """The files of a metadata partition that are not of its log."""
    found = FindingList(directory)
    try:
        segments, snapshots = metadata_files(Path(directory))
        names = sorted(entry.name for entry in entries_in(directory))
    except OSError:
        return  # a finding of the directory itself
    for snapshot in reversed(snapshots):
        for finding in _check(snapshot.path):
            is_older = finding.kind == _BROKEN and snapshot is not snapshots[0]
            yield replace(finding, severity=Severity.WARNING) if is_older else finding
    for name in names:
        if name.endswith(_SNAPSHOT_SUFFIXES) and parse_file_name(name) is None:
            found.add("foreign-file", "a broker does not start", path=str(Path(directory, name)))
    log_start = segments[0][0] if segments else 0
    newest = max((snapshot.end_offset for snapshot in snapshots), default=None)
    if log_start > 0 and (newest is None or newest < log_start):
        said = "there is none" if newest is None else f"the newest one ends at {newest}"
        found.add(
            "metadata-snapshot-missing",
            f"the log begins at {log_start}, {said}: offsets {newest or 0} to {log_start - 1} are "
            "missing",
            path=str(segments[0][1]),
            offset=log_start,
        )
    _check_ahead(segments, snapshots, found)
    _check_quorum_state(Path(directory, QUORUM_STATE_FILE), found)
    yield from found.findings()


def _check_ahead(
    segments: Segments, snapshots: Sequence[MetadataSnapshot], found: FindingList
) -> None:
    """A snapshot of a later epoch than the log's end: what the log has behind it no leader of that
    epoch had (KafkaRaftLog.truncateToLatestSnapshot).
    """
    try:
        log_end, epoch = metadata_log_end(segments)
    except (KafkaLogError, OSError):
        return  # a finding of the replay
    newest = snapshots[0] if snapshots else None
    if newest is not None and newest.epoch > epoch and newest.end_offset < log_end:
        found.add(
            "metadata-snapshot-ahead",
            f"it ends at offset {newest.end_offset} in epoch {newest.epoch}, the log at {log_end} "
            f"in epoch {epoch}",
            path=str(newest.path),
            offset=newest.end_offset,
        )


# -- the quorum ------------------------------------------------------------------------------------


def _check_quorum_state(path: Path, found: FindingList) -> None:
    try:
        state = parse_quorum_state(read_small_file(path), str(path))
    except FileNotFoundError:
        return  # a node without one follows whoever leads
    except (KafkaLogError, OSError) as error:
        found.add("quorum-state-unreadable", _reason(error), path=str(path))
        return
    if state.leader_epoch == MAX_INT32:
        found.add("quorum-state-unreadable", "no epoch comes after its own", path=str(path))


def controller_ids(directory: Path) -> frozenset[int]:
    """The voters of the quorum as `quorum-state` beside a metadata log has them; none where it
    does not tell.
    """
    path = directory / QUORUM_STATE_FILE
    try:
        return frozenset(parse_quorum_state(read_small_file(path), str(path)).current_voters or ())
    except (KafkaLogError, OSError):
        return frozenset()


# -- bootstrap records -----------------------------------------------------------------------------


def check_bootstrap(path: Path) -> Iterator[Finding]:
    """The bootstrap records, as far as a start looks at them: no checksum, but the level of
    metadata.version must be there.
    """
    found = FindingList(str(path))
    try:
        decoded = [decode_metadata_record(value) for value in _unchecked_values(path)]
    except FileNotFoundError:
        return  # a broker begins with its own defaults
    except (KafkaLogError, OSError) as error:
        found.add("bootstrap-checkpoint-unreadable", _reason(error))
    else:
        if not any(map(_is_metadata_version, decoded)):
            found.add("bootstrap-checkpoint-unreadable", f"it has no level of {METADATA_VERSION}")
    yield from found.findings()


def _unchecked_values(path: Path) -> Iterator[bytes | None]:
    """The values of all data records up to the last whole batch, whatever their checksums."""
    data = read_small_file(path)
    position = 0
    while len(data) - position > HEADER_SIZE_UP_TO_MAGIC:
        length = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], signed=True)
        if length > len(data) - position:
            return
        if length < RECORD_BATCH_OVERHEAD:
            raise CorruptRecordError(f"a batch of {length} bytes", position=position)
        header, records = parse_batch(with_crc(data[position : position + length]), path=str(path))
        if not header.is_control:
            yield from (record.value for record in records)
        position += length


def _is_metadata_version(record: MetadataRecord | RawRecord) -> bool:
    return (
        isinstance(record, MetadataRecord)
        and record.message is FEATURE_LEVEL_RECORD
        and record.fields["name"] == METADATA_VERSION
    )


def _reason(error: KafkaLogError | OSError) -> str:
    if isinstance(error, KafkaLogError):
        return error.reason
    return error.strerror or str(error)


# -- snapshots -------------------------------------------------------------------------------------


def _check(path: Path) -> Iterator[Finding]:
    found = FindingList(str(path))
    try:
        records = read_snapshot_records(path)
    except KafkaLogError as error:
        records = _loaded_all_the_same(path)
        severity = Severity.WARNING if records else None
        text = f"{error.reason}; records may be missing there" if records else error.reason
        found.add(
            _BROKEN, text, severity=severity, position=error.position, offset=error.offset
        )  # fmt: skip
    except OSError as error:
        found.add("unreadable", error.strerror or str(error))
        records = []
    is_open = False
    for record in records:
        try:
            is_open = _decoded(record, is_open)
        except KafkaLogError as error:
            found.add(_BROKEN, error.reason, position=record.position, offset=record.offset)
    if is_open:
        found.add(_BROKEN, "it ends within a transaction")
    yield from found.findings()


def _loaded_all_the_same(path: Path) -> list[MetadataLogRecord]:
    """What a broker loads of a snapshot that has lost its end; nothing where it does not."""
    try:
        return read_snapshot_records(path, as_started=True)
    except (KafkaLogError, OSError):
        return []


def _decoded(record: MetadataLogRecord, is_open: bool) -> bool:
    """Whether a transaction is open behind a record. KafkaLogError if it cannot be decoded; what
    has no table here is no damage.
    """
    if record.control_type is not None:
        decode_kraft_control(record.control_type, record.value or b"")
        return is_open
    decoded = decode_metadata_record(record.value)
    if isinstance(decoded, MetadataRecord):
        if decoded.message is BEGIN_TRANSACTION_RECORD:
            return True
        if decoded.message in (END_TRANSACTION_RECORD, ABORT_TRANSACTION_RECORD):
            return False
    return is_open
