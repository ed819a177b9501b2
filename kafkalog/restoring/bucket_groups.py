"""What groups had committed, for a fresh cluster over a bucket: `__consumer_offsets` made anew from
the old one on a broker's disk, which no bucket has (Kafka tiers no compacted topic).

Source: Kafka UnifiedLog.isRemoteLogEnabled; KIP-405.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.bucket.metadata_log import write_indexes
from kafkalog.errors import InvalidConfigError
from kafkalog.format.checkpoints import pack_leader_epoch_checkpoint
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.restoring.attach_facts import PlannedReplica
from kafkalog.restoring.bucket_plan import AttachedLog
from kafkalog.restoring.bucket_request import BucketAttachRequest
from kafkalog.restoring.bucket_stubs import written_places
from kafkalog.restoring.groups import GroupScript, Ranges, group_scripts
from kafkalog.restoring.left_metadata import LeftMetadata
from kafkalog.restoring.metadata_place import MetadataPlace
from kafkalog.restoring.offsets_topic import offsets_topic
from kafkalog.restoring.topic_settings import settings_of

_SHOWN = 5
_ACLS = "ACLs, quotas, credentials"


@dataclass(frozen=True, slots=True)
class AttachedGroups:
    """The new topic. partitions: as they were written; notes: what somebody has to know."""

    scripts: tuple[GroupScript, ...]
    partitions: tuple[PartitionInventory, ...]
    config: Mapping[str, str]
    notes: tuple[str, ...]


NO_GROUPS = AttachedGroups((), (), {}, ())


def attached_groups(
    request: BucketAttachRequest,
    old: LogInventory | None,
    logs: Sequence[AttachedLog],
    left: LeftMetadata | None,
    work_dir: Path,
) -> AttachedGroups:
    """Those that are asked for, written below an empty directory. InvalidConfigError as of
    `old_group_scripts`.
    """
    if not request.groups:
        return NO_GROUPS
    scripts = old_group_scripts(request, old, logs, request.groups)
    if old is None or not logs:
        return NO_GROUPS
    made = offsets_topic(scripts, old, request.offsets_partitions, work_dir, request.now_ms)
    for each in made.partitions:
        write_indexes(Path(each.path), 0)
        epochs = [(0, 0)] if each.log_end_offset else []
        data = pack_leader_epoch_checkpoint(epochs)
        Path(each.path, LEADER_EPOCH_CHECKPOINT_FILE).write_bytes(data)
    notes: list[str] = []
    config = settings_of(OFFSETS_TOPIC, _offsets_of(old), left, notes)
    notes += _absent(old, left)
    return AttachedGroups(made.scripts, made.partitions, config, tuple(notes))


def old_group_scripts(
    request: BucketAttachRequest,
    old: LogInventory | None,
    logs: Sequence[AttachedLog],
    groups: Sequence[str],
) -> list[GroupScript]:
    """What they had committed, up to what the bucket has. InvalidConfigError where no log dir
    tells, and as of `group_scripts`.
    """
    if old is None or not _offsets_of(old):
        where = f"the log dirs of --metadata-from have no {OFFSETS_TOPIC}"
        if old is None:
            where = "--metadata-from, a log dir of the old cluster that has it, is not given"
        raise InvalidConfigError(
            f"--groups: a bucket has no {OFFSETS_TOPIC}, as Kafka tiers no compacted topic, and "
            f"{where}"
        )
    return group_scripts(request.metadata_from, groups, _ranges(logs))


def _ranges(logs: Sequence[AttachedLog]) -> Ranges:
    names = [TopicPartition(log.topic, log.partition) for log in logs]
    return {
        name: (name, log.start_offset, log.end_offset)
        for name, log in zip(names, logs, strict=True)
    }


def groups_places(
    groups: AttachedGroups,
    topic_id: str,
    replicas: Mapping[TopicPartition, Sequence[PlannedReplica]],
) -> tuple[list[MetadataPlace], dict[TopicPartition, int]]:
    """The directories of the new topic, and where each partition ends."""
    places: list[MetadataPlace] = []
    ends: dict[TopicPartition, int] = {}
    for each in groups.partitions:
        name = each.topic_partition
        ends[name] = each.log_end_offset
        places += written_places(Path(each.path), topic_id, name, replicas[name])
    return places, ends


def what_is_lost(request: BucketAttachRequest, old: LogInventory | None) -> str:
    """Beside records."""
    if request.groups:
        return _ACLS
    if old is not None and _offsets_of(old):
        return (
            f"offsets that groups have committed (--groups takes them from {OFFSETS_TOPIC} in the "
            f"log dirs of --metadata-from), {_ACLS}"
        )
    return (
        f"offsets that groups have committed (a bucket has no {OFFSETS_TOPIC}; --groups takes them "
        f"from a log dir of --metadata-from that has it), {_ACLS}"
    )


def _offsets_of(old: LogInventory) -> list[PartitionInventory]:
    return [
        each
        for each in old
        if each.topic_partition.topic == OFFSETS_TOPIC and each.kind is PartitionKind.LIVE
    ]


def _absent(old: LogInventory, left: LeftMetadata | None) -> Iterator[str]:
    """Partitions whose groups nobody tells of."""
    here = {each.topic_partition.partition for each in _offsets_of(old)}
    known = [] if left is None else [*left.topics.states()]
    numbers = [each["partition"] for each in known if each["topic"] == OFFSETS_TOPIC]
    missing = sorted({*range(max([*here, *numbers]) + 1)} - here)
    if missing:
        listed = ", ".join(map(str, missing[:_SHOWN]))
        more = f" and {len(missing) - _SHOWN} more" * (len(missing) > _SHOWN)
        yield (
            f"{OFFSETS_TOPIC}: partitions {listed}{more} are not in the log dirs of "
            "--metadata-from: groups that are there begin where auto.offset.reset says"
        )
