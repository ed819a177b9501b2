"""A comparison, and what it found put right: a dry run plans, `apply` carries out in the frame of
all verbs that change logs. The comparison that counts is made while the log dirs are locked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.request import CompareRequest, CompareTask
from kafkalog.comparing.run import CompareRun, Executor, compare_run
from kafkalog.healing.heal import HEALED, HealResult, HealTask, heal_partition
from kafkalog.healing.plan import HEAL as TO_HEAL
from kafkalog.healing.plan import HealPlan, plan_heals
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.operations.frame import Verb, apply
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.replicas.digested import is_digest
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.resources.process_pool import in_processes
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.journal import HEAL, RunJournal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.texts import format_count

HealRun = Run[HealPlan, HealResult]
# How tasks become results, in any order; a task whose worker died has none.
HealExecutor = Callable[[Sequence[HealTask]], Iterable[HealResult]]


@dataclass(frozen=True, slots=True)
class Healing:
    """What was found, and what was planned and done about it; patches: plans for wrong copies that
    are on other hosts.
    """

    compared: CompareRun
    healed: HealRun
    patches: tuple[HealPlan, ...] = ()


def plan_healing(request: RunRequest, compare: CompareRequest, execute: Executor) -> Healing:
    """Compare and plan; nothing is locked or changed. Errors as of `compare_run`."""
    verb = Heal(request, compare, execute, LocalFiles(), None)
    found = request.open_all()
    run = verb.plan(request.select(found), request.read_settings(found))
    return Healing(verb.compared, run, tuple(verb.patches))


def apply_healing(
    request: RunRequest,
    compare: CompareRequest,
    execute: Executor,
    tell: Tell,
    carry_out: HealExecutor | None = None,
    files: LocalFiles | None = None,
) -> Healing:
    """The same carried out; see `frame.apply`. Without `carry_out` in this process."""
    verb = Heal(request, compare, execute, files or LocalFiles(), carry_out)
    run = apply(verb, tell)
    return Healing(verb.compared, run)


def heal_in_processes(tasks: Sequence[HealTask], workers: int) -> Iterator[HealResult]:
    """An executor of this machine, the largest partitions first; see `in_processes`."""
    largest_first = sorted(tasks, key=lambda task: -task.size_in_bytes)
    for results in in_processes(largest_first, _heal, workers, lambda _: []):
        yield from results


def _heal(task: HealTask) -> list[HealResult]:
    return [heal_partition(task)]


def local_log_dirs(paths: Sequence[str]) -> list[str]:
    """Those that are no digests."""
    return [path for path in paths if not is_digest(path)]


class Heal(Verb[HealPlan, HealResult]):
    """A run of healing in the frame."""

    kind = HEAL

    def __init__(
        self,
        request: RunRequest,
        compare: CompareRequest,
        execute: Executor,
        files: LocalFiles,
        carry_out: HealExecutor | None,
    ) -> None:
        super().__init__(request, new_run_id(), files)
        self._compare, self._execute = compare, execute
        self._carry_out = carry_out or self._in_this_process
        self._sizes: dict[str, int] = {}
        self._configs: dict[str, LogConfig] = {}
        self.compared = CompareRun((), 0)
        self.patches: list[HealPlan] = []

    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether it is ever healed: a node recovers its metadata log by itself."""
        is_metadata = partition.topic_partition.topic == CLUSTER_METADATA_TOPIC
        return partition.kind is PartitionKind.LIVE and not is_metadata

    def plan(self, found: LogInventory, settings: RunSettings) -> HealRun:
        """Compare, and plan for each wrong copy."""
        tasks: dict[str, CompareTask] = {}

        def execute(asked: Sequence[CompareTask]) -> Iterable[ComparedPartition]:
            tasks.update((str(task.topic_partition), task) for task in asked)
            return self._execute(asked)

        self.compared = compare_run(self._compare, execute)
        by_path = {partition.path: partition for partition in found}
        plans: list[HealPlan] = []
        for compared in self.compared.partitions:
            copies = tasks[str(compared.topic_partition)].replicas
            self.patches += plan_heals(compared, copies, of_digests=True)
            for plan in plan_heals(compared, copies):
                partition = by_path.get(plan.path)
                if partition is not None and self.may_be_changed(partition, settings):
                    self._configs[plan.path] = settings.resolve(partition).config
                    self._sizes[plan.path] = partition.size_in_bytes
                    plans.append(plan)
        problems = [
            f"{each.topic_partition}: not compared: {each.reason}" for each in self.compared.failed
        ]
        return HealRun(
            self.run_id,
            applied=False,
            plans=tuple(plans),
            problems=(*found.problems, *problems),
            keeps_undo=self.request.keeps_undo,
            run_dir=self.request.run_dir,
        )

    def chosen(self, plans: Sequence[HealPlan]) -> list[HealPlan]:
        """Those that are provable."""
        return [plan for plan in plans if plan.status == TO_HEAL]

    def execute(self, plans: Sequence[HealPlan], journal: RunJournal) -> Iterable[HealResult]:
        """Each by itself: a copy that is right is never changed by another's task."""
        request = self.request
        return self._carry_out(
            [
                HealTask(
                    plan, self._configs[plan.path], request.now_ms, self.run_id,
                    request.keeps_undo, request.max_batch_bytes, os.getpid(),
                    self._sizes[plan.path],
                )
                for plan in plans
            ]
        )  # fmt: skip

    def _in_this_process(self, tasks: Sequence[HealTask]) -> Iterator[HealResult]:
        for task in tasks:
            yield heal_partition(task, self.files)

    def failed(self, plan: HealPlan, reason: str) -> HealResult:
        """The result of a plan that could not be carried out."""
        name = plan.topic_partition
        return HealResult(name.topic, name.partition, plan.path, plan.log_dir, FAILED, reason)

    def describe(self, plan: HealPlan, result: HealResult) -> str:
        """How one copy ended."""
        name = f"{plan.topic_partition} of {plan.name}"
        if result.status == HEALED:
            segments = format_count(result.segments, "segment")
            return f"{name}: healed from {plan.source_name}, {segments}"
        return f"{name}: {result.status}: {result.reason}"


def heal_statuses(run: HealRun) -> list[str]:
    """One a wrong copy."""
    done = {result.path: result.status for result in run.results}
    return [done.get(plan.path, plan.status) for plan in run.plans]


def is_well(run: HealRun) -> bool:
    """Whether all that is wrong was put right."""
    return all(status not in (FAILED, REFUSED) for status in heal_statuses(run))
