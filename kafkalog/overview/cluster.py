"""What the metadata log says of topics, settings and brokers: the records that tell these, and of
the others only how long they are.

Partitions and their changes are nearly all of a large cluster's metadata and are passed over by
their type; `log.metadata_state` interprets the rest, as for everybody. More than `MOST_BYTES` are
not read: then this says nothing, rather than something old.

Source: Kafka MetadataLoader, RecordsSnapshotReader; `log.metadata_log`, which reads all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.file_names import LogFileKind, parse_file_name
from kafkalog.log.cluster_settings import METADATA_VERSION
from kafkalog.log.metadata_names import METADATA_DIR
from kafkalog.log.metadata_state import SETTINGS_RECORDS, MetadataState
from kafkalog.messages.broker_records import (
    REGISTER_BROKER_RECORD,
    UNREGISTER_BROKER_RECORD,
    ZK_MIGRATION_STATE_RECORD,
)
from kafkalog.messages.cluster_metadata import MetadataRecord
from kafkalog.overview.batches import iterate_batches, keys_and_values, read_bytes

MOST_BYTES = 16 * 1024 * 1024

_READ = SETTINGS_RECORDS | {
    REGISTER_BROKER_RECORD.api_key,
    UNREGISTER_BROKER_RECORD.api_key,
    ZK_MIGRATION_STATE_RECORD.api_key,
}
_FRAME_BYTES = 2


@dataclass(frozen=True, slots=True)
class Cluster:
    """Settings by topic, of those that exist; dynamic ones by broker, "" of all; levels by feature.
    supported: (lowest, highest) metadata.version of each registered broker. migration: state of a
    migration from ZooKeeper, 0 none. problem: why nothing is told; is_too_large: it may be sound,
    and is more than is read.
    """

    topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    supported: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    migration: int = 0
    problem: str | None = None
    is_too_large: bool = False


@dataclass(frozen=True, slots=True)
class _Record:
    """As `MetadataState` takes it."""

    control_type: ControlRecordType | None
    value: bytes | None


@dataclass(slots=True)
class _Registered:
    """What is noted of the records when they count."""

    supported: dict[int, tuple[int, int]] = field(default_factory=dict)
    migration: int = 0

    def note(self, record: MetadataRecord, _events: object, _told: None) -> None:
        fields = record.fields
        if record.message is REGISTER_BROKER_RECORD:
            self.supported[fields["brokerId"]] = _range(fields["features"])
        elif record.message is UNREGISTER_BROKER_RECORD:
            self.supported.pop(fields["brokerId"], None)
        elif record.message is ZK_MIGRATION_STATE_RECORD:
            self.migration = fields["zkMigrationState"]


def _range(features: list[dict[str, Any]]) -> tuple[int, int]:
    for feature in features:
        if feature["name"] == METADATA_VERSION:
            return feature["minSupportedVersion"], feature["maxSupportedVersion"]
    return 0, 0


def read_cluster(log_dir: Path) -> Cluster | None:
    """What the metadata log in this log dir says; None if there is none."""
    directory = log_dir / METADATA_DIR
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError:
        return None
    try:
        return _read(directory, names)
    except (KafkaLogError, OSError) as error:
        return Cluster(problem=str(error))


def _read(directory: Path, names: list[str]) -> Cluster | None:
    segments, snapshots = _files(directory, names)
    if not segments and not snapshots:
        return None
    start = snapshots[0][1] if snapshots else 0
    following = [base for base, _ in segments[1:]] + [None]
    later = [
        path for (_, path), end in zip(segments, following, strict=False)
        if end is None or end > start
    ]  # fmt: skip
    paths = [*([snapshots[0][2]] if snapshots else []), *later]
    size = sum(os.stat(path).st_size for path in paths)  # noqa: PTH116 - few, by text
    if size > MOST_BYTES:
        return Cluster(
            problem=f"{size} bytes of metadata, {MOST_BYTES} are read at a glance",
            is_too_large=True,
        )
    if segments and segments[0][0] > start:
        return Cluster(problem=f"the log begins at {segments[0][0]}, behind its snapshot {start}")
    noted = _Registered()
    state: MetadataState[None] = MetadataState(note=noted.note)
    for number, path in enumerate(paths):
        is_snapshot = bool(snapshots) and number == 0
        for offset, record in _records(path):
            if is_snapshot or offset >= start:
                state.append(record, None)
    return Cluster(
        {name: topic.config for name, topic in state.topic_settings().items()},
        state.broker_configs(),
        dict(state.feature_levels),
        noted.supported,
        noted.migration,
    )


def _files(
    directory: Path, names: list[str]
) -> tuple[list[tuple[int, str]], list[tuple[int, int, str]]]:
    """(base offset, path) of the segments in order; (epoch, end offset, path) of the snapshots, the
    newest first.
    """
    segments, snapshots = [], []
    for text in names:
        name = parse_file_name(text)
        if name is None or name.suffix:
            continue
        if name.kind == LogFileKind.LOG:
            segments.append((name.offset, str(directory / text)))
        elif name.kind == LogFileKind.METADATA_SNAPSHOT and name.epoch is not None:
            snapshots.append((name.epoch, name.offset, str(directory / text)))
    return sorted(segments), sorted(snapshots, reverse=True)


def _records(path: str) -> Iterator[tuple[int, _Record]]:
    """(offset of its batch's last record, record) of those that tell what is wanted here."""
    data = read_bytes(path, MOST_BYTES)
    for header, payload in iterate_batches(data, path, max_bytes=MOST_BYTES):
        kind = None
        offset = header.base_offset
        for key, value in keys_and_values(payload, header.records_count):
            if header.is_control:
                kind = parse_control_type(key, path=path)
                yield offset, _Record(kind, value)
            elif value is None or len(value) <= _FRAME_BYTES:
                raise CorruptRecordError("a metadata record without a value", path=path)
            elif value[1] in _READ:  # a type is one byte: there are some thirty
                yield offset, _Record(None, value)
            offset += 1
