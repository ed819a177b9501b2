"""A run over many partitions: lock, resolve leftovers, plan, carry out, checkpoint.

The command line and Spark do the same and differ in one thing, how plans become results: by
processes here, by Spark tasks there (`Executor`). A dry run is the planning alone: it takes no lock
and changes nothing.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from kafkalog.cleaner.checkpoint import update_cleaner_checkpoint
from kafkalog.cleaner.clean import (
    FORCE_NULL_KEYS,
    CleanRun,
    clean_partition,
)
from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.cleaner.log_dir_lock import LogDirLock
from kafkalog.cleaner.recovery import clear_run, recover_partition
from kafkalog.cleaner.scratch import Scratch
from kafkalog.cleaner.settings import RunSettings
from kafkalog.cleaner.stats import FAILED, CleanResult
from kafkalog.cleaner.swap import wait_for_other_runs
from kafkalog.errors import InvalidConfigError, KafkaLogError
from kafkalog.format.constants import MAX_INT64
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionFacts,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction import plan_compaction
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.config_sources import FORCE_CONFIG_DIFFERS, ResolvedConfig, Told
from kafkalog.planning.log_config import LogConfig

Executor = Callable[[Sequence[CompactionPlan], CleanRun], Iterable[CleanResult]]
Tell = Callable[[str], None]

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


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """What a run planned and did: one plan per selected partition, one result per plan that was
    carried out. `recovered`: interrupted cleanings it found, and what became of them; `problems`:
    what in the log dirs could not be read, what went wrong in the end, when the partitions were
    done; `notes`: where the settings of each log dir came from.
    """

    run_id: str
    applied: bool
    plans: tuple[CompactionPlan, ...]
    results: tuple[CleanResult, ...] = ()
    recovered: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def new_run_id() -> str:
    """A name no other run has; part of the names of its scratch files, so letters and digits
    only.
    """
    return secrets.token_hex(6)


def plan_run(
    request: CompactionRequest, run_id: str | None = None, settings: RunSettings | None = None
) -> CompactionRun:
    """Plan every selected partition; nothing is locked or changed. `settings` are those of the
    request, if they were read before.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    found = request.open()
    settings = settings or request.read_settings()
    plans = tuple(
        _plan(partition, request, settings.resolve(partition), settings.kafka_version(partition))
        for partition in found
    )
    return CompactionRun(
        run_id or new_run_id(),
        applied=False,
        plans=plans,
        problems=found.problems,
        notes=settings.notes,
    )


def apply_run(
    request: CompactionRequest,
    execute: Executor,
    tell: Tell = lambda _: None,
    files: LocalFiles | None = None,
) -> CompactionRun:
    """Plan and carry out, holding the lock of every log dir to the end. `files` is what the run
    itself changes log dirs with.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked: then nothing
    was changed.
    """
    files = files or LocalFiles()
    run = CleanRun(new_run_id(), os.getpid(), request.force)
    with locked_log_dirs(request):
        settings = request.read_settings()
        may_be_changed = [
            partition
            for partition in request.open()
            if not _is_never_cleaned(partition) and _may_be_cleaned(settings.resolve(partition))
        ]
        recovered = tuple(recover_partitions(may_be_changed, files))
        for line in recovered:
            tell(line)
        planned = plan_run(request, run.run_id, settings)
        chosen = [plan for plan in planned.plans if plan.status == CLEAN]
        results: list[CleanResult] = []
        coming = execute(chosen, run)
        try:
            for result in coming:
                results.append(result)
                tell(_told(result))
        finally:
            # Nobody may be at work any more when checkpoints are written and the locks given up.
            if isinstance(coming, Generator):
                coming.close()
            unwritten = _write_checkpoints(planned.plans, results, files)
            problems = [*planned.problems]
            problems += [f"{log_dir}: {why}" for log_dir, why in unwritten.items()]
            for plan in planned.plans:
                if plan.status == CLEAN:
                    problems += _clear(plan, run, files)
            for line in problems:
                tell(line)
    return CompactionRun(
        run.run_id,
        applied=True,
        plans=planned.plans,
        results=tuple(_with_checkpoint_failure(result, unwritten) for result in results),
        recovered=recovered,
        problems=tuple(problems),
        notes=planned.notes,
    )


def clean_one_by_one(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
    """The simplest executor: in this process, one after the other."""
    for plan in plans:
        yield clean_partition(plan, run)


def _plan(
    partition: PartitionInventory,
    request: CompactionRequest,
    resolved: ResolvedConfig,
    kafka_version: str,
) -> CompactionPlan:
    facts = PartitionFacts(())
    config = resolved.config
    is_live = partition.kind is PartitionKind.LIVE
    if is_live and _may_be_cleaned(resolved) and not partition.problems:
        try:
            facts = scan_partition_facts(
                partition,
                now_ms=request.now_ms,
                expiration_ms=config.producer_id_expiration_ms,
            )
        except (KafkaLogError, OSError) as error:
            partition = replace(partition, problems=(f"cannot be read: {error}",))
    plan = plan_compaction(
        partition,
        config,
        facts,
        now_ms=request.now_ms,
        high_watermark=request.high_watermark,
        kafka_version=kafka_version,
        dedupe_buffer_size=request.dedupe_buffer_size,
    )
    if resolved.refusal is None or _is_never_cleaned(partition):
        return plan
    return plan.refused(resolved.refusal)


def _is_never_cleaned(partition: PartitionInventory) -> bool:
    is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
    return partition.kind is not PartitionKind.LIVE or is_metadata


def _may_be_cleaned(resolved: ResolvedConfig) -> bool:
    return resolved.refusal is None and resolved.config.is_compacted


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


def _write_checkpoints(
    plans: Sequence[CompactionPlan], results: Sequence[CleanResult], files: LocalFiles
) -> dict[str, str]:
    """Write each log dir's checkpoint; why not, for those where it failed."""
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for plan in plans:
        if plan.checkpoint_reset is not None:
            key = (plan.topic_partition.topic, plan.topic_partition.partition)
            offsets.setdefault(plan.log_dir, {})[key] = plan.checkpoint_reset
    for result in results:
        if result.next_dirty_offset is not None:
            key = (result.topic, result.partition)
            offsets.setdefault(result.log_dir, {})[key] = result.next_dirty_offset
    failures: dict[str, str] = {}
    for log_dir, entries in offsets.items():
        try:
            update_cleaner_checkpoint(log_dir, entries, files)
        except (KafkaLogError, OSError) as error:
            failures[log_dir] = f"the cleaner checkpoint was not written: {error}"
    return failures


def _with_checkpoint_failure(result: CleanResult, unwritten: dict[str, str]) -> CleanResult:
    """A partition that is compacted but will be compacted again has not ended well."""
    why = unwritten.get(result.log_dir)
    if why is None or result.next_dirty_offset is None:
        return result
    reason = f"compacted, but {why}"
    return replace(result, status=FAILED, reason=reason, next_dirty_offset=None)


def _clear(plan: CompactionPlan, run: CleanRun, files: LocalFiles) -> list[str]:
    """Take the run's own files out of a partition; what stays is resolved by the next run."""
    try:
        done = clear_run(Scratch(plan.path, run.run_id), files)
    except (KafkaLogError, OSError) as error:
        done = [f"cleaning up failed: {error}"]
    return [f"{plan.topic_partition}: {line}" for line in done]


def _told(result: CleanResult) -> str:
    name = f"{result.topic}-{result.partition}"
    if result.next_dirty_offset is None:
        return f"{name}: {result.status}: {result.reason}"
    stats = result.stats
    return (
        f"{name}: {stats.records_read} records to {stats.records_retained}, "
        f"{stats.bytes_before} bytes to {stats.bytes_after}, {result.seconds:.1f} s"
    )
