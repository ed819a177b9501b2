"""A run over many partitions: lock, resolve leftovers, plan, carry out, checkpoint.

The command line and Spark do the same and differ in one thing, how plans become results: by
processes here, by Spark tasks there (`Executor`). A dry run is the planning alone: it takes no lock
and changes nothing.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafkalog.cleaner.checkpoint import update_cleaner_checkpoint
from kafkalog.cleaner.clean import (
    FORCE_NULL_KEYS,
    CleanRun,
    clean_partition,
    remove_run_files,
)
from kafkalog.cleaner.local_files import LocalFiles
from kafkalog.cleaner.log_dir_lock import LogDirLock
from kafkalog.cleaner.recovery import recover_partition
from kafkalog.cleaner.stats import CleanResult
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import PartitionFacts, PartitionInventory, PartitionKind
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_facts import scan_partition_facts
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.compaction import plan_compaction
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.log_config import LogConfig

Executor = Callable[[Sequence[CompactionPlan], CleanRun], Iterable[CleanResult]]
Tell = Callable[[str], None]

# A rule that has nothing to lift is accepted: scripts may always name it.
KNOWN_FORCE_RULES = frozenset({FORCE_NULL_KEYS, "config-differs"})


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What to compact, and how: the options of `compact`.

    topics: names or globs, empty for all (a dry run only); topic_partitions: narrows them; now_ms:
    the round's time; high_watermark: for logs whose checkpoint does not tell.
    """

    log_dirs: tuple[str, ...]
    now_ms: int
    config: LogConfig
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    kafka_version: str = "4.3"
    high_watermark: int | None = None
    force: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        unknown = sorted(self.force - KNOWN_FORCE_RULES)
        if unknown:
            known = ", ".join(sorted(KNOWN_FORCE_RULES))
            raise InvalidConfigError(f"unknown rule to force: {', '.join(unknown)}; known: {known}")

    def select(self) -> list[PartitionInventory]:
        """The partition directories asked for, as they are now."""
        return select_partitions(open_log_dir(*self.log_dirs), self.topics, self.topic_partitions)


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """What a run planned and did: one plan per selected partition, one result per plan that was
    carried out.
    """

    run_id: str
    applied: bool
    plans: tuple[CompactionPlan, ...]
    results: tuple[CleanResult, ...] = ()
    recovered: tuple[str, ...] = field(default=())


def new_run_id() -> str:
    """A name for a run: its time, readable, and a random end."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}{secrets.token_hex(3)}"


def plan_run(request: CompactionRequest, run_id: str | None = None) -> CompactionRun:
    """Plan every selected partition; nothing is locked or changed.

    Raises InvalidConfigError for paths that do not exist and partitions that are named but not
    there.
    """
    plans = tuple(_plan(partition, request) for partition in request.select())
    return CompactionRun(run_id or new_run_id(), applied=False, plans=plans)


def apply_run(
    request: CompactionRequest, execute: Executor, tell: Tell = lambda _: None
) -> CompactionRun:
    """Plan and carry out, holding the lock of every log dir to the end.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked: then nothing
    was changed.
    """
    if not request.topics:
        raise InvalidConfigError("--apply needs --topic; --topic '*' takes all")
    files = LocalFiles()
    run = CleanRun(new_run_id(), os.getpid(), request.force)
    with ExitStack() as locks:
        for log_dir in _log_dirs(request):
            locks.enter_context(LogDirLock(log_dir))
        recovered = tuple(_recover(request, files))
        for line in recovered:
            tell(line)
        planned = plan_run(request, run.run_id)
        chosen = [plan for plan in planned.plans if plan.status == CLEAN]
        results: list[CleanResult] = []
        try:
            for result in execute(chosen, run):
                results.append(result)
                tell(_told(result))
        finally:
            _finish(planned.plans, results, run, files)
    return CompactionRun(run.run_id, True, planned.plans, tuple(results), recovered)


def clean_one_by_one(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
    """The simplest executor: in this process, one after the other."""
    for plan in plans:
        yield clean_partition(plan, run)


def _plan(partition: PartitionInventory, request: CompactionRequest) -> CompactionPlan:
    facts = PartitionFacts(())
    may_be_cleaned = partition.kind is PartitionKind.LIVE and request.config.is_compacted
    if may_be_cleaned and not partition.problems:
        facts = scan_partition_facts(
            partition,
            now_ms=request.now_ms,
            expiration_ms=request.config.producer_id_expiration_ms,
        )
    return plan_compaction(
        partition,
        request.config,
        facts,
        now_ms=request.now_ms,
        high_watermark=request.high_watermark,
        kafka_version=request.kafka_version,
    )


def _log_dirs(request: CompactionRequest) -> list[str]:
    return sorted({partition.log_dir for partition in request.select()})


def _recover(request: CompactionRequest, files: LocalFiles) -> Iterator[str]:
    """Resolve interrupted cleanings in the selected live partitions."""
    for partition in request.select():
        if partition.kind is PartitionKind.LIVE and partition.leftovers:
            for line in recover_partition(partition.path, files):
                yield f"{partition.topic_partition}: {line}"


def _finish(
    plans: Sequence[CompactionPlan],
    results: Sequence[CleanResult],
    run: CleanRun,
    files: LocalFiles,
) -> None:
    """Write each log dir's checkpoint, then take the run's own files away."""
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for plan in plans:
        if plan.checkpoint_reset is not None:
            key = (plan.topic_partition.topic, plan.topic_partition.partition)
            offsets.setdefault(plan.log_dir, {})[key] = plan.checkpoint_reset
    for result in results:
        if result.next_dirty_offset is not None:
            key = (result.topic, result.partition)
            offsets.setdefault(result.log_dir, {})[key] = result.next_dirty_offset
    for log_dir, entries in offsets.items():
        update_cleaner_checkpoint(log_dir, entries, files)
    for plan in plans:
        if plan.status == CLEAN:
            remove_run_files(plan, run, files)


def _told(result: CleanResult) -> str:
    name = f"{result.topic}-{result.partition}"
    if result.next_dirty_offset is None:
        return f"{name}: {result.status}: {result.reason}"
    stats = result.stats
    return (
        f"{name}: {stats.records_read} records to {stats.records_retained}, "
        f"{stats.bytes_before} bytes to {stats.bytes_after}, {result.seconds:.1f} s"
    )
