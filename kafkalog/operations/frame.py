"""The frame of the verbs that change log dirs, once for all of them: lock, begin a journal, resolve
what earlier runs left, plan, carry out, settle, end.

A verb says what is its own (`Verb`). Who carries its plans out is the caller's: worker processes
here, Spark tasks there. Of a plan without a result nobody knows more than that its worker died.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import ClassVar, Generic, Protocol, TypeVar

from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Problems, Tell, locked_log_dirs, resolve_interrupted_swaps
from kafkalog.requests.run_request import RunRequest
from kafkalog.requests.run_settings import RunSettings
from kafkalog.swap.journal import RunJournal, begin_journal
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.replacement import Replacement

WORKER_DIED = "a worker process died: run it again, which finishes or undoes what it left"


class PartitionPlan(Protocol):
    """A plan of any verb, for one partition."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def path(self) -> str: ...
    @property
    def log_dir(self) -> str: ...


class PartitionResult(Protocol):
    """How a plan of any verb ended; `fault` is a traceback that only a fault of ours can have."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def log_dir(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def fault(self) -> str: ...
    @property
    def replaced(self) -> Replacement | None: ...


Plan = TypeVar("Plan", bound=PartitionPlan)
Result = TypeVar("Result", bound=PartitionResult)


class Verb(ABC, Generic[Plan, Result]):
    """One run of a verb: what it does in the frame."""

    kind: ClassVar[str]

    def __init__(self, request: RunRequest, run_id: str, files: LocalFiles) -> None:
        self.request = request
        self.run_id = run_id
        self.files = files

    @abstractmethod
    def may_be_changed(self, partition: PartitionInventory, settings: RunSettings) -> bool:
        """Whether anything may be changed at all: if not, nothing is resolved either."""

    @abstractmethod
    def plan(self, found: LogInventory, settings: RunSettings) -> Run[Plan, Result]:
        """The plans of these partitions."""

    @abstractmethod
    def chosen(self, plans: Sequence[Plan]) -> list[Plan]:
        """Those to carry out, as they are to be begun."""

    @abstractmethod
    def execute(self, plans: Sequence[Plan], journal: RunJournal) -> Iterable[Result]:
        """Carry them out; results in any order."""

    @abstractmethod
    def failed(self, plan: Plan, reason: str) -> Result:
        """The result of a plan that could not be carried out."""

    @abstractmethod
    def describe(self, plan: Plan, result: Result) -> str:
        """How one partition ended, in a line; empty if there is nothing to say of it."""

    def peak_bytes(self, plan: Plan) -> int:
        """Bytes the run may write for a plan before it gives any back."""
        return 0

    def settle(
        self,
        plans: Sequence[Plan],
        results: Sequence[Result],
        journal: RunJournal,
        problems: Problems,
    ) -> Sequence[Result]:
        """What is done once nobody is at work any more, however the run ended; all results."""
        return results


def apply(verb: Verb[Plan, Result], tell: Tell) -> Run[Plan, Result]:
    """Plan and carry out, holding the lock of every log dir to the end.

    Raises InvalidConfigError without topics, LogDirLockedError if a log dir is locked,
    LogCleaningRefusedError if no journal can be kept: then nothing was changed.
    """
    request, problems, started = verb.request, Problems(), time.monotonic()
    with locked_log_dirs(request) as (log_dirs, known):
        journal = begin_journal(request, verb.run_id, verb.kind, log_dirs)
        found = request.open_all(known)
        settings = request.read_settings(found)
        may_be_changed = [p for p in request.select(found) if verb.may_be_changed(p, settings)]
        # What an interrupted run left is resolved before anything is planned: a plan is made from
        # files that are as they should be. Only where the settings allow a change at all.
        recovered = tuple(resolve_interrupted_swaps(may_be_changed, verb.files, problems))
        if recovered:
            found = request.open_all()
            settings = request.read_settings(found)
        for line in recovered:
            tell(line)
        journal.resolved(recovered)
        planned = verb.plan(request.select(found), settings)
        problems.add(planned)
        chosen = verb.chosen(planned.plans)
        journal.planned((p.topic_partition, p.path, p.log_dir, verb.peak_bytes(p)) for p in chosen)
        results: list[Result] = []
        settled: Sequence[Result] = results
        # Noted in the journal as they come: a run that dies has said how far it came.
        coming = results_of(chosen, verb.execute(chosen, journal), verb.failed)
        try:
            with closing(coming):
                for plan, result in coming:
                    results.append(result)
                    _note(verb, plan, result, journal, tell)
        finally:
            # Also after an error or Ctrl-C: checkpoints must fit what was done until then.
            settled = verb.settle(planned.plans, results, journal, problems)
            journal.settled()
            problems.texts += journal.problems
            for line in problems.texts:
                tell(line)
        estimate = planned.estimate and planned.estimate.taken(time.monotonic() - started)
        journal.finish(settled, **({} if estimate is None else {"estimate": estimate.to_json()}))
    problems.add_faults((f"{each.topic}-{each.partition}", each.fault) for each in settled)
    return replace(
        planned,
        applied=True,
        results=tuple(settled),
        recovered=recovered,
        problems=tuple(problems.texts),
        faults=tuple(problems.faults),
        estimate=estimate,
    )


def results_of(
    plans: Sequence[Plan], coming: Iterable[Result], failed: Callable[[Plan, str], Result]
) -> Generator[tuple[Plan, Result]]:
    """Plans with their results as these come; in the end those that none came of, whose worker
    died. Closed before that, it closes what they come from: nobody is at work any more then.
    """
    waiting = {(plan.log_dir, plan.topic_partition): plan for plan in plans}
    known = dict(waiting)
    try:
        for result in coming:
            key = result.log_dir, TopicPartition(result.topic, result.partition)
            waiting.pop(key, None)
            yield known[key], result
        for plan in waiting.values():
            yield plan, failed(plan, WORKER_DIED)
    finally:
        if isinstance(coming, Generator):
            coming.close()


def _note(
    verb: Verb[Plan, Result], plan: Plan, result: Result, journal: RunJournal, tell: Tell
) -> None:
    line = verb.describe(plan, result)
    if line:
        journal.ended(
            plan.topic_partition, plan.path, result.status, result.reason, result.replaced
        )
        tell(line)
