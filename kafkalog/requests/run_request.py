"""What a run is asked for: which partitions, under whose settings, how far. The options of the
verbs that may change log dirs, and the arguments of the same functions of `kafkalog.spark`. Light
to import: no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES, MAX_INT64
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.cluster_settings import ZooKeeperClusters
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.known_directory import KnownDirectory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.named_partitions import NamedPartitions, partitions_in
from kafkalog.log.names import names_in, paths_in, values_in
from kafkalog.log.selection import named_topics, select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction_plan import ACROSS_TASKS
from kafkalog.planning.config_sources import GivenSettings, ResolvedConfig
from kafkalog.planning.force_rules import FORCE_CONFIG_DIFFERS, KNOWN_FORCE_RULES
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.plan_by_settings import PlanInputs
from kafkalog.requests.run_settings import RunSettings, read_config_file, read_server_properties
from kafkalog.resources.forked_shares import in_shares
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, check_memory
from kafkalog.runs.run_dir import default_run_dir

if TYPE_CHECKING:
    from kafkalog.log.small_logs import SmallLogs

# The values of --verify and --on-corrupt-batch.
VERIFY_DEEP = "deep"
KEEP = "keep"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to change and by whose settings, whatever the verb.

    topics: names or globs, empty for all (a dry run only); topic_partitions: narrows them; now_ms:
    the round's time; clock_ms: this machine's clock then, None where the caller answers for it;
    config: the settings given as options, config_file and server_properties those of the files (see
    `planning.config_sources` for whose word counts); zookeeper: of ZooKeeper-era log dirs the
    clusters' settings by their id; kafka_version: None for the one the disk tells; high_watermark:
    for logs whose checkpoint does not tell; run_dir: where the journal is kept, None for the user's
    own place; keeps_undo: whether replaced files are kept; max_batch_bytes: no larger batch is
    read, stored or decompressed.
    """

    log_dirs: tuple[str, ...]
    now_ms: int
    config: LogConfig
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    kafka_version: str | None = None
    high_watermark: int | None = None
    force: frozenset[str] = frozenset()
    config_file: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    server_properties: Mapping[str, str] | None = None
    zookeeper: ZooKeeperClusters = field(default_factory=dict)
    run_dir: str | None = None
    keeps_undo: bool = True
    max_batch_bytes: int = MAX_BATCH_BYTES
    clock_ms: int | None = None

    @property
    def reads_buckets(self) -> bool:
        """Whether log dirs in buckets will do: for what only reads."""
        return False

    @property
    def run_path(self) -> Path:
        """The run dir."""
        return default_run_dir() if self.run_dir is None else Path(self.run_dir)

    @property
    def processes(self) -> int:
        """How many of this machine open partitions and make plans, before the run's own work."""
        return 1

    def __post_init__(self) -> None:
        unknown = sorted(self.force - KNOWN_FORCE_RULES)
        if unknown:
            known = ", ".join(sorted(KNOWN_FORCE_RULES))
            raise InvalidConfigError(f"unknown rule to force: {', '.join(unknown)}; known: {known}")
        if not -MAX_INT64 <= self.now_ms <= MAX_INT64:
            raise InvalidConfigError(f"{self.now_ms} ms is no time that 64 bits hold")

    def open(self) -> LogInventory:
        """The partition directories asked for, as they are now, and what could not be read."""
        return self.select(self.open_all())

    def open_all(
        self,
        known: Mapping[str, KnownDirectory] | None = None,
        small: SmallLogs | None = None,
    ) -> LogInventory:
        """All that is below the paths, asked for or not; arguments as of `open_log_dir`."""
        return open_log_dir(
            *self.log_dirs,
            known=known,
            reads_buckets=self.reads_buckets,
            # Of known ones hardly any is read again.
            share=None if known else partial(in_shares, processes=self.processes),
            small=small,
        )

    def select(self, found: LogInventory) -> LogInventory:
        """Those asked for of all there are."""
        try:
            chosen = select_partitions(found, self.topics, self.topic_partitions)
        except InvalidConfigError as error:
            # What was asked for may well be what could not be read.
            raise InvalidConfigError("; ".join([error.reason, *found.problems])) from None
        return LogInventory(tuple(chosen), found.problems, found.unread)

    def read_settings(self, found: LogInventory | None = None) -> RunSettings:
        """What holds for each partition: a metadata log may be in a log dir of which no partition
        is selected. `found` is all there is, if it was opened before.

        InvalidConfigError if the settings that were given are wrong.
        """
        return RunSettings(
            GivenSettings(
                self.config,
                self.config_file,
                self.server_properties,
                named_topics(self.topics, self.topic_partitions),
            ),
            [partition.log_dir for partition in found or self.open_all()],
            force_differs=FORCE_CONFIG_DIFFERS in self.force,
            kafka_version=self.kafka_version,
            zookeeper=self.zookeeper,
        )

    def plan_inputs(
        self,
        partition: PartitionInventory,
        settings: RunSettings,
        resolved: ResolvedConfig,
        facts: PartitionFacts,
    ) -> PlanInputs:
        """What the verb's plan of a partition is made from; `resolved` are its own settings."""
        return PlanInputs(
            partition,
            resolved,
            facts,
            now_ms=self.now_ms,
            high_watermark=self.high_watermark,
            kafka_version=settings.kafka_version(partition),
            clock_ms=self.clock_ms,
            force=self.force,
        )


@dataclass(frozen=True, slots=True)
class CompactionRequest(RunRequest):
    """A run of log compaction.

    dedupe_buffer_size: bytes of Kafka's bounded map, whose rounds then are done, None for one round
    whatever the keys; max_bytes: of the segments that rounds read, see `planning.run_order`;
    max_minutes: after which no further partition is begun; swap_per_group: swap each group of
    segments in before the next one is written;
    memory: bytes of each worker; strategy: how key maps are made, None for the choice by size and
    by workers; output: where the new segments go instead of into the log dirs;
    max_bytes_per_second: read and written by all workers together; verify_deep: compare every
    record before the swap;
    keeps_corrupt: keep corrupt batches as they are instead of giving their partition up; estimates:
    a plan reads all records, to tell what would be refused for them; replicas: log dirs of other
    nodes, see `requests.replicas`; requires_replicas: refuse where not all replicas are given;
    workers, on_spark: who will do it, for the estimate of its time and that choice.
    """

    dedupe_buffer_size: int | None = None
    max_bytes: int | None = None
    max_minutes: float | None = None
    swap_per_group: bool = False
    memory: int = DEFAULT_MEMORY_BYTES
    strategy: str | None = None
    output: str | None = None
    max_bytes_per_second: int | None = None
    verify_deep: bool = False
    keeps_corrupt: bool = False
    estimates: bool = False
    replicas: tuple[str, ...] = ()
    requires_replicas: bool = False
    workers: int = 1
    on_spark: bool = False

    @property
    def processes(self) -> int:
        """As many as there are workers: those of Spark are elsewhere, and a pace is one
        process's.
        """
        is_alone = self.on_spark or self.max_bytes_per_second is not None
        return 1 if is_alone else self.workers

    def __post_init__(self) -> None:
        RunRequest.__post_init__(self)
        if self.output is not None and self.swap_per_group:
            raise InvalidConfigError("--output swaps nothing: not with --swap-per-group")
        if self.output is not None and not self.keeps_undo:
            raise InvalidConfigError("--output replaces nothing: not with --no-undo")
        if self.keeps_corrupt and self.strategy == ACROSS_TASKS:
            raise InvalidConfigError(
                "corrupt batches are kept (--on-corrupt-batch) within a task: not across-tasks"
            )
        if self.keeps_corrupt and self.verify_deep:
            raise InvalidConfigError(
                "of a corrupt batch no record can be compared: not --verify deep with "
                "--on-corrupt-batch"
            )
        if self.keeps_corrupt and self.dedupe_buffer_size is not None:
            raise InvalidConfigError(
                "a bounded key map (--dedupe-buffer-size) ends where a broker's does, which knows "
                "no corrupt batches: not with --on-corrupt-batch"
            )
        if self.strategy == ACROSS_TASKS and self.dedupe_buffer_size is not None:
            raise InvalidConfigError(
                "a bounded key map (--dedupe-buffer-size) is made within a task: not across-tasks"
            )
        if self.strategy == ACROSS_TASKS and self.swap_per_group:
            raise InvalidConfigError(
                "across-tasks writes all groups before any is swapped in: not --swap-per-group"
            )


class RunOptions(TypedDict, total=False):
    """The options of every verb that changes logs, as the command line and Spark hand them over.

    config: KEY=VALUE each; config_file, server_properties, zookeeper_dir: paths; zk_root: a chroot;
    now_ms: None for the clock; the others as in RunRequest.
    """

    topics: Sequence[str]
    topic_partitions: NamedPartitions
    config: Sequence[str]
    now_ms: int | None
    config_file: str | None
    server_properties: str | None
    zookeeper_dir: Sequence[str]
    zk_root: str | None
    kafka_version: str | None
    high_watermark: int | None
    force: Sequence[str]
    run_dir: str | None
    no_undo: bool
    max_batch_bytes: int


class CompactionOptions(RunOptions, total=False):
    """Those of `compact`."""

    dedupe_buffer_size: int | None
    max_bytes: int | None
    max_minutes: float | None
    swap_per_group: bool
    memory: int | None
    strategy: str | None
    output: str | None
    max_bytes_per_second: int | None
    verify: str | None
    on_corrupt_batch: str | None
    estimate: bool
    replicas: Sequence[str]
    require_replicas: bool


def run_request(log_dirs: Sequence[str], options: RunOptions) -> RunRequest:
    """The request these options make; InvalidConfigError for settings Kafka would refuse."""
    return RunRequest(**run_options_of(log_dirs, options))


def compaction_request(log_dirs: Sequence[str], options: CompactionOptions) -> CompactionRequest:
    """The request these options make; InvalidConfigError for settings Kafka would refuse."""
    return CompactionRequest(
        **run_options_of(log_dirs, options),
        dedupe_buffer_size=options.get("dedupe_buffer_size"),
        max_bytes=options.get("max_bytes"),
        max_minutes=options.get("max_minutes"),
        swap_per_group=options.get("swap_per_group", False),
        memory=check_memory(options.get("memory") or DEFAULT_MEMORY_BYTES),
        strategy=options.get("strategy"),
        output=options.get("output"),
        max_bytes_per_second=options.get("max_bytes_per_second"),
        verify_deep=_is_chosen("verify", options.get("verify"), VERIFY_DEEP),
        keeps_corrupt=_is_chosen("on_corrupt_batch", options.get("on_corrupt_batch"), KEEP),
        estimates=options.get("estimate", False),
        replicas=paths_in(options.get("replicas") or ()),
        requires_replicas=options.get("require_replicas", False),
    )


def _is_chosen(option: str, word: str | None, known: str) -> bool:
    """Whether an option with one value was given; InvalidConfigError for any other word."""
    if word not in (None, known):
        raise InvalidConfigError(f"{option} {word!r}: {known!r} is all there is")
    return word is not None


def run_options_of(log_dirs: Sequence[str], options: RunOptions) -> dict[str, Any]:
    """The arguments of a RunRequest that these options make."""
    given_ms, clock_ms = options.get("now_ms"), now_ms()
    return {
        "log_dirs": paths_in(log_dirs),
        "now_ms": clock_ms if given_ms is None else given_ms,
        "clock_ms": clock_ms,
        "config": LogConfig.from_overrides(
            values_in(options.get("config", ()), str), is_partial=True
        ),
        "topics": names_in(options.get("topics", ())),
        "topic_partitions": partitions_in(options.get("topic_partitions", ())),
        "kafka_version": options.get("kafka_version"),
        "high_watermark": options.get("high_watermark"),
        "force": frozenset(values_in(options.get("force", ()), str)),
        "run_dir": options.get("run_dir"),
        "keeps_undo": not options.get("no_undo", False),
        "max_batch_bytes": check_max_batch_bytes(options.get("max_batch_bytes", MAX_BATCH_BYTES)),
        "config_file": read_config_file(options.get("config_file")),
        "server_properties": read_server_properties(options.get("server_properties")),
        "zookeeper": _read_zookeeper(
            paths_in(options.get("zookeeper_dir", ())), options.get("zk_root")
        ),
    }


def _read_zookeeper(paths: Sequence[str], zk_root: str | None) -> ZooKeeperClusters:
    if not paths and zk_root is None:
        return {}
    # Late: its formats are a twentieth of the start, and few have a ZooKeeper.
    from kafkalog.zookeeper.settings import read_zookeeper_settings

    return read_zookeeper_settings(paths, zk_root)
