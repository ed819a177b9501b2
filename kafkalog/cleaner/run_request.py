"""What every run that may change log dirs has in common: what was asked for, the locks, and what
earlier runs left behind. Light to import: no kernel.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.cleaner.log_dir_lock import LogDirLock
from kafkalog.cleaner.recovery import recover_partition
from kafkalog.cleaner.settings import RunSettings
from kafkalog.cleaner.swap import wait_for_other_runs
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.config_sources import FORCE_CONFIG_DIFFERS, Told
from kafkalog.planning.log_config import LogConfig

Tell = Callable[[str], None]

FORCE_NULL_KEYS = "null-keys"
# A rule that has nothing to lift is accepted: scripts may always name it.
KNOWN_FORCE_RULES = frozenset({FORCE_NULL_KEYS, FORCE_CONFIG_DIFFERS})


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What to compact or to delete from, and how: the options of `compact` and `retain`.

    topics: names or globs, empty for all (a dry run only); topic_partitions: narrows them; now_ms:
    the round's time; config: the settings given as options, config_file and server_properties those
    of the files (see `planning.config_sources` for whose word counts); kafka_version: None for the
    one the disk tells; high_watermark: for logs whose checkpoint does not tell; dedupe_buffer_size:
    bytes of Kafka's bounded map, whose rounds then are done, None for one round whatever the keys.
    """

    log_dirs: tuple[str, ...]
    now_ms: int
    config: LogConfig
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    kafka_version: str | None = None
    high_watermark: int | None = None
    force: frozenset[str] = frozenset()
    dedupe_buffer_size: int | None = None
    config_file: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    server_properties: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        unknown = sorted(self.force - KNOWN_FORCE_RULES)
        if unknown:
            known = ", ".join(sorted(KNOWN_FORCE_RULES))
            raise InvalidConfigError(f"unknown rule to force: {', '.join(unknown)}; known: {known}")
        if not -MAX_INT64 <= self.now_ms <= MAX_INT64:
            raise InvalidConfigError(f"{self.now_ms} ms is no time that 64 bits hold")

    def open(self) -> LogInventory:
        """The partition directories asked for, as they are now, and what could not be read."""
        found = open_log_dir(*self.log_dirs)
        try:
            chosen = select_partitions(found, self.topics, self.topic_partitions)
        except InvalidConfigError as error:
            # What was asked for may well be what could not be read.
            raise InvalidConfigError("; ".join([error.reason, *found.problems])) from None
        return LogInventory(tuple(chosen), found.problems)

    def read_settings(self) -> RunSettings:
        """What holds for each partition: a metadata log may be in a log dir of which no partition
        is selected.

        InvalidConfigError if the settings that were given are wrong.
        """
        return RunSettings(
            Told(self.config, self.config_file, self.server_properties),
            [partition.log_dir for partition in open_log_dir(*self.log_dirs)],
            force_differs=FORCE_CONFIG_DIFFERS in self.force,
            kafka_version=self.kafka_version,
        )


def new_run_id() -> str:
    """A name no other run has; part of the names of its scratch files, so letters and digits
    only.
    """
    return secrets.token_hex(6)


@contextmanager
def locked_log_dirs(request: CompactionRequest) -> Iterator[None]:
    """Hold the lock of every log dir of the selected partitions.

    Raises InvalidConfigError if no topic is named, LogDirLockedError if a log dir is locked.
    """
    if not request.topics:
        raise InvalidConfigError("--apply needs --topic; --topic '*' takes all")
    with ExitStack() as locks:
        for log_dir in sorted({partition.log_dir for partition in request.open()}):
            locks.enter_context(LogDirLock(log_dir))
        yield


def recover_partitions(
    partitions: Iterable[PartitionInventory], files: LocalFiles
) -> Iterator[str]:
    """Resolve what interrupted runs left, where anything may be changed at all; what was done.

    A partition that cannot be resolved is left to its plan, which refuses it. LogDirLockedError if
    a task of an earlier run is at work on one and does not end.
    """
    for partition in partitions:
        is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
        # A swap that crosses the log start looks like remote segments: it is resolved, too.
        if partition.kind is not PartitionKind.LIVE or is_metadata:
            continue
        wait_for_other_runs(partition.path)
        try:
            for line in recover_partition(partition.path, files):
                yield f"{partition.topic_partition}: {line}"
        except (KafkaLogError, OSError) as error:
            yield f"{partition.topic_partition}: an interrupted cleaning is not resolved: {error}"
