"""Log dirs of nodes that are formatted and were never started: whose they are, and what their
bootstrap.checkpoint says. Topics that are added to that are there at the first start.

Source: Kafka Formatter, BootstrapDirectory, KafkaRaftServer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.log.inventory import LogInventory, PartitionKind
from kafkalog.log.log_dir import expand_paths, open_log_dir
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.metadata_names import BOOTSTRAP_FILE, METADATA_DIR
from kafkalog.log.metadata_records import has_metadata_records, read_snapshot_records
from kafkalog.log.metadata_state import MetadataState
from kafkalog.messages.cluster_metadata import (
    FEATURE_LEVEL_RECORD,
    TOPIC_RECORD,
    RawRecord,
    decode_metadata_record,
)
from kafkalog.restoring.attach_facts import KAFKA_4_LEVEL, METADATA_VERSION
from kafkalog.restoring.disks import NodeDir, node_dir
from kafkalog.swap.local_files import list_names
from kafkalog.swap.scratch import is_scratch, undo_run_id

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class FreshDirs:
    """others: values of the records in each bootstrap.checkpoint that are no feature levels, by
    log dir; why_not: why these cannot be begun with; problems: what else is wrong in them.
    """

    dirs: tuple[NodeDir, ...]
    feature_levels: Mapping[str, int]
    others: Mapping[str, Sequence[bytes]]
    why_not: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[int]:
        """The nodes whose log dirs these are."""
        return sorted({each.node_id for each in self.dirs})

    @property
    def cluster_id(self) -> str:
        return self.dirs[0].cluster_id


def is_fresh(log_dirs: Sequence[str]) -> bool:
    """Whether a bootstrap.checkpoint is here and no metadata log has any record. InvalidConfigError
    for a path that is not there.
    """
    paths = [*expand_paths(log_dirs, reads_buckets=False)]
    has_records = any(has_metadata_records(path / METADATA_DIR) for path in paths)
    return not has_records and any((path / BOOTSTRAP_FILE).is_file() for path in paths)


def read_fresh_dirs(log_dirs: Sequence[str]) -> FreshDirs:
    """InvalidConfigError for a path that is no KRaft node's log dir, and for log dirs of several
    clusters.
    """
    paths = dict.fromkeys(path.resolve() for path in expand_paths(log_dirs, reads_buckets=False))
    found = open_log_dir(*paths, reads_buckets=False)
    dirs = tuple(node_dir(read_log_dir_files(path)) for path in paths)
    clusters = {each.cluster_id: each.path for each in dirs}
    if len(clusters) > 1:
        named = ", ".join(f"{path} of cluster {name}" for name, path in clusters.items())
        raise InvalidConfigError(f"log dirs of more than one cluster: {named}")
    why_not = [why for each in dirs if (why := _why_not(each.path, found)) is not None]
    why_not += (
        f"{each.path} is not fresh: its meta.properties is of a broker that came from ZooKeeper"
        for each in dirs
        if each.was_migrated
    )
    levels: dict[str, Mapping[str, int]] = {}
    others: dict[str, list[bytes]] = {}
    for each in dirs:
        try:
            levels[each.path], others[each.path] = _bootstrap(Path(each.path, BOOTSTRAP_FILE))
        except (KafkaLogError, OSError, InvalidConfigError) as error:
            why_not.append(f"{each.path} is not formatted as kafka-storage.sh format does: {error}")
    different = {tuple(sorted(own.items())) for own in levels.values()}
    if len(different) > 1:
        why_not.append("the feature levels in bootstrap.checkpoint differ: format all nodes alike")
    first = next(iter(levels.values()), {})
    if levels and not first.get(METADATA_VERSION):
        why_not.append(f"{dirs[0].path}/{BOOTSTRAP_FILE} has no metadata.version")
    elif levels and first[METADATA_VERSION] < KAFKA_4_LEVEL:
        # See the text of `attach`.
        why_not.append(
            f"metadata.version {first[METADATA_VERSION]} is of Kafka 3, whose brokers may take "
            "what they find for stray at the first start: format with Kafka 4, or restore into "
            "topics that a running cluster has made"
        )
    why_not += _same_ids(dirs)
    return FreshDirs(dirs, first, others, tuple(why_not), found.problems)


def _same_ids(dirs: Sequence[NodeDir]) -> Iterator[str]:
    """Log dirs of which one is a copy of another: no broker starts on both."""
    seen: dict[str, str] = {}
    for each in dirs:
        if each.directory_id is None:
            continue
        first = seen.setdefault(each.directory_id, each.path)
        if first != each.path:
            yield (
                f"{first} and {each.path} have the same directory.id, {each.directory_id}: one is "
                "a copy of the other; format each node by itself"
            )


def _why_not(log_dir: str, found: LogInventory) -> str | None:
    """What of a log dir tells that a broker has used it, or a run has."""
    # What is marked as deleted a broker removes when it starts.
    own = [p.path for p in found if p.log_dir == log_dir and p.kind is not PartitionKind.DELETE]
    used = [path for path in own if Path(path).name != METADATA_DIR]
    if used:
        runs = sorted({run for path in used for name in list_names(path)
                       if (run := undo_run_id(name)) is not None})  # fmt: skip
        listed = ", ".join(used[:_SHOWN]) + f" and {len(used) - _SHOWN} more" * (len(used) > _SHOWN)
        undo = f"; `kafkalog undo {runs[-1]}` takes away what that run made" if runs else ""
        return f"{log_dir} is not fresh, {listed} is there{undo}"
    runs = sorted({run for name in list_names(log_dir) if (run := undo_run_id(name)) is not None})
    runs += sorted({name.split("-")[1] for name in list_names(log_dir) if is_scratch(name)})
    if runs:
        return f"{log_dir}: `kafkalog undo {runs[-1]}` first, that run has written its metadata"
    if has_metadata_records(Path(log_dir, METADATA_DIR)):
        return f"{log_dir} is not fresh: its metadata log has records, of a controller"
    return None


def _bootstrap(path: Path) -> tuple[dict[str, int], list[bytes]]:
    """Feature levels, and the values of all other records."""
    state: MetadataState[None] = MetadataState()
    others = []
    for record in read_snapshot_records(path):
        state.append(record, None)
        if record.control_type is not None or record.value is None:
            continue
        found = decode_metadata_record(record.value)
        if not isinstance(found, RawRecord) and found.message is TOPIC_RECORD:
            raise InvalidConfigError(f"it has topic {found.fields['name']}", path=str(path))
        if isinstance(found, RawRecord) or found.message is not FEATURE_LEVEL_RECORD:
            others.append(record.value)
    return state.feature_levels, others
