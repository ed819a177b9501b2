"""Several executions of one task, as a scheduler makes them: at once, after each other, dying."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import plan_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.swap.interrupted_swap import clear_run
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock
from kafkalog.swap.scratch import Scratch
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import (
    CRASH_TIMEOUT_S,
    CountingFiles,
    DyingFiles,
    run_in_child,
)
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import CONFIG, NAME, compact, contents
from tests.operations.faults.test_failing_steps import leftovers
from tests.operations.faults.test_kills import differences
from tests.support.topics import topics_of

RUN = "20250101T000000abcdef"
CHECKPOINT = "cleaner-offset-checkpoint"
STRIDES = [17, pytest.param(5, marks=pytest.mark.thorough)]


def plan_of(log_dir: Path) -> CompactionPlan:
    (plan,) = plan_run(
        CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir))
    ).plans
    return plan


class InterruptedFiles(CountingFiles):
    """Calls `then` in the middle of an attempt, before step `at`."""

    def __init__(self, at: int, then: Callable[[], None]) -> None:
        super().__init__()
        self._at = at
        self._then = then

    def before(self, step: str) -> None:
        if len(self.steps) == self._at:
            self._then()
        super().before(step)


def start_attempt(plan: CompactionPlan, run: CleanRun, result: Path) -> int:
    """An attempt in a process of its own, which writes its result; its process id."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(CRASH_TIMEOUT_S)
            ended = clean_partition(plan, run)
            result.write_text(json.dumps(ended.to_json()))
        finally:
            os._exit(0)
    return pid


@pytest.fixture
def steps_of_one_attempt(undisturbed: Undisturbed, log_dir: Path) -> list[str]:
    copy = undisturbed.copy(log_dir / "counted")
    files = CountingFiles()
    assert clean_partition(plan_of(copy), CleanRun(RUN, os.getpid()), files).status == "compacted"
    shutil.rmtree(copy)
    return files.steps


@pytest.mark.parametrize("stride", STRIDES)
def test_two_attempts_at_once_both_end_well_and_swap_once(
    undisturbed: Undisturbed, log_dir: Path, steps_of_one_attempt: list[str], stride: int
) -> None:
    run = CleanRun(RUN, os.getpid())
    for at in range(0, len(steps_of_one_attempt), stride + 4):
        copy = undisturbed.copy(log_dir / "copy")
        plan, other, child = plan_of(copy), log_dir / "other.json", list[int]()
        start = lambda: child.append(start_attempt(plan, run, other))  # noqa: B023, E731
        with LogDirLock(str(copy)):
            mine = clean_partition(plan, run, InterruptedFiles(at, start))
            os.waitpid(child[0], 0)
            theirs = CleanResult.from_json(json.loads(other.read_text()))
            what = f"at step {at}, {steps_of_one_attempt[at]}: {mine.reason}; {theirs.reason}"
            # Whichever came late lost its outputs, waited for the other's swap and took its result.
            assert (mine.status, theirs.status) == ("compacted", "compacted"), what
            assert mine.stats == theirs.stats, what
            assert mine.stats.records_read == 32, what
            assert clear_run(Scratch(plan.path, RUN), LocalFiles()) == []
        assert leftovers(copy) == [], what
        wrong = differences(contents(copy), undisturbed.after)
        assert wrong == [CHECKPOINT], what
        shutil.rmtree(copy)


def test_a_second_execution_returns_the_first_ones_result(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    plan, run = plan_of(copy), CleanRun(RUN, os.getpid())
    first = clean_partition(plan, run)
    between = contents(copy)
    second = clean_partition(plan, run)
    assert (first.status, first.reason) == ("compacted", "")
    assert (second.status, second.reason) == ("compacted", "by another attempt of the same task")
    assert second.stats == first.stats
    assert second.next_dirty_offset == first.next_dirty_offset
    assert contents(copy) == between


@pytest.mark.parametrize("stride", STRIDES)
def test_an_attempt_that_died_is_resolved_by_its_retry(
    undisturbed: Undisturbed, log_dir: Path, steps_of_one_attempt: list[str], stride: int
) -> None:
    run = CleanRun(RUN, os.getpid())
    for at in range(2, len(steps_of_one_attempt), stride):
        copy = undisturbed.copy(log_dir / "copy")
        plan = plan_of(copy)
        with LogDirLock(str(copy)):
            code = run_in_child(lambda: clean_partition(plan, run, DyingFiles(at)))  # noqa: B023
        assert code == -signal.SIGKILL
        what = f"killed before step {at}, {steps_of_one_attempt[at]}"
        retried = clean_partition(plan, run)
        swapping = "swapping" in retried.reason
        assert retried.status == "compacted" or (retried.status == FAILED and swapping), what
        assert clear_run(Scratch(plan.path, RUN), LocalFiles()) == []
        assert leftovers(copy) == [], what
        compact(copy)
        assert differences(contents(copy), undisturbed.after) == [], what
        shutil.rmtree(copy)


@pytest.mark.parametrize("stride", STRIDES)
def test_a_worker_that_died_is_resolved_by_its_run(
    undisturbed: Undisturbed, log_dir: Path, steps_of_one_attempt: list[str], stride: int
) -> None:
    for at in range(4, len(steps_of_one_attempt), stride):

        def execute(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
            for plan in plans:
                code = run_in_child(lambda: clean_partition(plan, run, DyingFiles(at)))  # noqa: B023
                assert code == -signal.SIGKILL
                name = plan.topic_partition
                yield CleanResult(
                    name.topic, name.partition, plan.log_dir, FAILED, "died", None, 0.0
                )

        copy = undisturbed.copy(log_dir / "copy")
        what = f"killed before step {at}, {steps_of_one_attempt[at]}"
        compact(copy, execute=execute)
        assert leftovers(copy) == [], what
        names = [path.name for path in (copy / NAME).glob("*.log")]
        assert 6 <= len(names) <= 9, what
        again = compact(copy)
        assert again.recovered == (), what
        assert differences(contents(copy), undisturbed.after) == [], what
        shutil.rmtree(copy)


def test_a_task_without_its_driver_changes_nothing(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    result = clean_partition(plan_of(copy), CleanRun(RUN, pid))
    assert result.status == FAILED
    assert "the run that planned this is over" in result.reason
    assert contents(copy) == before


def test_the_lock_of_the_driver_is_seen_from_its_tasks(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    plan, run, result = plan_of(copy), CleanRun(RUN, os.getpid()), log_dir / "result.json"
    with LogDirLock(str(copy)):
        os.waitpid(start_attempt(plan, run, result), 0)
    assert CleanResult.from_json(json.loads(result.read_text())).status == "compacted"
