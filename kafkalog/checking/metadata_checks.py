"""Snapshots beside the cluster's metadata log: whole, every record decodable, none within a
transaction.

They have no index and no neighbours: a header in front, a footer at the end, checksums and records
between are all there is to check.

Source: Kafka RecordsSnapshotReader, Snapshots; KIP-630.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.errors import KafkaLogError
from kafkalog.log.metadata_records import MetadataLogRecord, metadata_files, read_snapshot_records
from kafkalog.messages.cluster_metadata import (
    ABORT_TRANSACTION_RECORD,
    BEGIN_TRANSACTION_RECORD,
    END_TRANSACTION_RECORD,
    MetadataRecord,
    decode_metadata_record,
)
from kafkalog.messages.kraft_control import decode_kraft_control

_BROKEN = "metadata-snapshot-broken"


def check_snapshots(directory: str) -> Iterator[Finding]:
    """Every `.checkpoint` of a metadata partition."""
    try:
        _, snapshots = metadata_files(Path(directory))
    except OSError:
        return  # told with the directory itself
    for snapshot in reversed(snapshots):
        yield from _check(snapshot.path)


def _check(path: Path) -> Iterator[Finding]:
    found = FindingList(str(path))
    try:
        records = read_snapshot_records(path)
    except KafkaLogError as error:
        found.add(_BROKEN, error.reason, position=error.position, offset=error.offset)
        records = []
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
