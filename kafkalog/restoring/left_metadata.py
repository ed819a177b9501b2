"""What a metadata log that is still there says, whose quorum is lost: the state at its end, with
the values that reports leave out. Secrets are in it, and go nowhere but into the new records.

The newest snapshot that is whole, then the log behind it: what a controller starts from.

Source: Kafka MetadataLoader; KIP-630, KIP-853.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalog.cluster.find import metadata_directories
from kafkalog.errors import KafkaLogError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.inventory import LogInventory
from kafkalog.log.metadata_records import (
    metadata_files,
    metadata_log_end,
    read_metadata_records,
    read_snapshot_records,
)
from kafkalog.log.metadata_state import Events, MetadataState
from kafkalog.log.metadata_topics import MetadataTopics
from kafkalog.messages.cluster_metadata import MetadataRecord

Fields = Mapping[str, Any]
Key = tuple[Any, ...]
# What is kept as it is, beside topics: (record that sets it, record that ends it).
KEPT = (
    ("ConfigRecord", None),
    ("ClientQuotaRecord", None),
    ("UserScramCredentialRecord", "RemoveUserScramCredentialRecord"),
    ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"),
    ("DelegationTokenRecord", "RemoveDelegationTokenRecord"),
)
_ENDS = {end: begin for begin, end in KEPT if end is not None}


@dataclass(slots=True)
class LeftMetadata:
    """The state at `end_offset`, 0 where nothing but a first snapshot is there. kept: by the name
    of the record that sets it, the fields by key. log_dirs: of each registered
    broker, by id. voters: None where no record names any.
    """

    directory: str
    end_offset: int = 0
    end_ms: int | None = None
    topics: MetadataTopics = field(default_factory=MetadataTopics)
    kept: dict[str, dict[Key, Fields]] = field(default_factory=dict)
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    log_dirs: dict[int, Sequence[str]] = field(default_factory=dict)
    voters: Sequence[Fields] | None = None
    unread: Mapping[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ids(self) -> dict[str, str]:
        """Topic ids by name."""
        return {name: topic_id for topic_id, name in self.topics.names.items()}


def read_left_metadata(found: LogInventory) -> LeftMetadata | None:
    """Of the metadata log that goes furthest among those there are; None without any."""
    directories = metadata_directories(found)
    if not directories:
        return None
    left = LeftMetadata(str(directories[0]))
    state: MetadataState[None] = MetadataState(
        lambda record, events, _: _note(left, record, events),
        lambda kind, fields, _: _note_control(left, kind, fields),
    )
    try:
        _replay(directories[0], left, state)
    except (KafkaLogError, OSError) as error:
        left.problems.append(f"read up to offset {left.end_offset}: {error}")
    left.topics, left.feature_levels = state.topics, state.feature_levels
    left.unread = state.unread()
    return left


def feature_levels_of(path: Path) -> dict[str, int]:
    """The levels in a bootstrap.checkpoint. FileNotFoundError without one; none of one that cannot
    be read.
    """
    state: MetadataState[None] = MetadataState()
    try:
        for record in read_snapshot_records(path):
            state.append(record, None)
    except KafkaLogError:
        return {}
    return state.feature_levels


def _replay(directory: Path, left: LeftMetadata, state: MetadataState[None]) -> None:
    segments, snapshots = metadata_files(directory)
    for snapshot in snapshots:
        try:
            records = read_snapshot_records(snapshot.path)
        except KafkaLogError as error:
            left.problems.append(str(error))
            continue
        for record in records:
            state.append(record, None)
        left.end_offset = snapshot.end_offset
        break
    start = left.end_offset
    if segments and segments[0][0] > start:
        left.problems.append(
            f"{directory}: offsets {start} to {segments[0][0] - 1} are missing: what is behind "
            "them is left out"
        )
        return
    if metadata_log_end(segments)[0] <= start:
        return
    for record in read_metadata_records(segments, start):
        state.append(record, None)
        left.end_offset, left.end_ms = record.offset + 1, record.timestamp_ms


def _note(left: LeftMetadata, record: MetadataRecord, events: Events) -> None:
    name, fields = record.message.name, record.fields
    begins = _ENDS.get(name, name)
    if begins in dict(KEPT):
        own = left.kept.setdefault(begins, {})
        if name != begins or fields.get("remove") or _is_unset(name, fields):
            own.pop(_key(begins, fields), None)
        else:
            own[_key(begins, fields)] = fields
    elif name == "RemoveTopicRecord" and events:
        configs = left.kept.get("ConfigRecord", {})
        for key in [key for key in configs if key[:2] == (2, events[0].topic)]:
            del configs[key]
    elif name == "RegisterBrokerRecord":
        left.log_dirs[fields["brokerId"]] = fields["logDirs"]
    elif name == "UnregisterBrokerRecord":
        left.log_dirs.pop(fields["brokerId"], None)
    elif name == "ProducerIdsRecord":
        left.next_producer_id = max(left.next_producer_id, fields["nextProducerId"])


def _is_unset(name: str, fields: Fields) -> bool:
    return name == "ConfigRecord" and fields["value"] is None


def _key(name: str, fields: Fields) -> Key:
    """What tells one from another."""
    if name == "ConfigRecord":
        return fields["resourceType"], fields["resourceName"], fields["name"]
    if name == "ClientQuotaRecord":
        parts = sorted((e["entityType"], e["entityName"] or "", e["entityName"] is None)
                       for e in fields["entity"])  # fmt: skip
        return (*parts, fields["key"])
    if name == "UserScramCredentialRecord":
        return fields["name"], fields["mechanism"]
    return (fields["tokenId"] if name == "DelegationTokenRecord" else fields["id"],)


def _note_control(left: LeftMetadata, kind: ControlRecordType, fields: Fields) -> None:
    if kind is ControlRecordType.KRAFT_VOTERS:
        left.voters = fields["voters"]
