"""Retention killed before every single step, or failing at it: a broker loads what is left, nothing
that is not due is lost, and the next run ends where an undisturbed one does.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafkalog.format.control_record import ControlRecordType
from kafkalog.operations.retain import RetentionRun, apply_retention_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import RunRequest
from kafkalog.swap.local_files import LocalFiles
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import (
    STRIDES,
    CountingFiles,
    DyingFiles,
    FailingFiles,
    run_in_child,
)
from tests.operations.faults.logs import contents
from tests.oracle.kafka import Kafka
from tests.support.log_builder import LogBuilder

NAME = "orders-0"
SETTINGS = {"cleanup.policy": "delete", "retention.ms": "1000", "segment.bytes": "1048576"}
CONFIG = LogConfig.from_overrides([f"{key}={value}" for key, value in SETTINGS.items()])
SEGMENTS = 4
END = SEGMENTS * 4


def write_log(log_dir: Path, *, all_due: bool) -> None:
    """Segments of four offsets with aborted transactions; all of them are due, or all but the last
    two. A neighbour has a line of its own in every checkpoint.
    """
    log = LogBuilder(log_dir, NAME)
    for number in range(SEGMENTS):
        time_ms = NOW_MS - (100_000 if all_due or number < SEGMENTS - 2 else 10)
        log.segment().epoch(number // 2)
        log.batch(("a", str(number)), timestamp=time_ms)
        log.batch(("b", "x" * 90), timestamp=time_ms, producer_id=7, is_transactional=True)
        log.marker(ControlRecordType.ABORT, 7, timestamp=time_ms)
        log.batch(("c", None), timestamp=time_ms, producer_id=8)
    log.write()
    neighbour = LogBuilder(log_dir, "neighbour-0")
    neighbour.batch(("k", "v"), ("l", "v"), timestamp=NOW_MS).log_start_offset(1).write()


def retain(log_dir: Path, files: LocalFiles | None = None) -> RetentionRun:
    request = RunRequest((str(log_dir),), NOW_MS, CONFIG, topics=("orders", "neighbour"))
    return apply_retention_run(request, files=files)


def files_of(log_dir: Path) -> dict[str, bytes]:
    return {name: data for name, (data, _) in contents(log_dir).items()}


class Case:
    """A log before, the steps of a run over it, and what it leaves."""

    def __init__(self, work: Path, *, all_due: bool) -> None:
        self.work = work
        self.first_offset = END if all_due else END - 8
        write_log(work / "before", all_due=all_due)
        done = self.copy("after")
        files = CountingFiles()
        run = retain(done, files)
        assert [result.status for result in run.results] == ["deleted"]
        assert run.plans[1].deleted[0].base_offset == 0
        assert (run.plans[1].roll_offset is None) == (not all_due)
        self.steps = files.steps
        self.after = files_of(done)

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.work / "before", self.work / name))


@pytest.fixture(params=[False, True], ids=["some-go", "all-go"])
def case(request: pytest.FixtureRequest, log_dir: Path) -> Case:
    return Case(log_dir, all_due=request.param)


def check_kafka_loads(kafka: Kafka, crashed: Path, case: Case, what: str) -> None:
    """After a clean stop and after a crash: the end is known, all that is not due is there."""
    for load in (kafka.open_once, kafka.recover):
        copy = Path(shutil.copytree(crashed, case.work / "kafkas"))
        loaded = load(copy, NAME, now_ms=NOW_MS, config=SETTINGS)
        assert loaded["logEndOffset"] == END, what
        assert loaded["logStartOffset"] in (0, case.first_offset), what
        offsets = {
            record["offset"]
            for segment in kafka.dump(copy / NAME)["segments"]
            for batch in segment["batches"]
            for record in batch["records"]
        }
        assert offsets >= set(range(case.first_offset, END)), what
        # Ours goes on from what the loader made of it.
        run = retain(copy)
        assert not run.problems, what
        logs = {n: data for n, data in files_of(copy).items() if n.endswith(".log")}
        assert logs == {n: data for n, data in case.after.items() if n.endswith(".log")}, what
        shutil.rmtree(copy)


def for_kills(case: Case, stride: int, check: Callable[[Path, str], None]) -> None:
    for step, name in list(enumerate(case.steps))[::stride]:
        what = f"killed before step {step}, {name}"
        crashed = case.copy("crashed")
        code = run_in_child(partial(retain, crashed, DyingFiles(step)))
        assert code == -signal.SIGKILL, what
        check(crashed, what)
        shutil.rmtree(crashed)


def check_next_run_ends_it(crashed: Path, case: Case, what: str) -> None:
    run = retain(crashed)
    assert not run.problems, what
    assert all(result.status == "deleted" for result in run.results), what
    assert files_of(crashed) == case.after, what


@pytest.mark.parametrize("stride", STRIDES)
def test_killed_at_any_step_the_next_run_ends_as_if_undisturbed(case: Case, stride: int) -> None:
    for_kills(case, stride, lambda crashed, what: check_next_run_ends_it(crashed, case, what))


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_at_any_step_kafka_loads_it(case: Case, kafka: Kafka, stride: int) -> None:
    for_kills(case, stride, lambda crashed, what: check_kafka_loads(kafka, crashed, case, what))


@pytest.mark.parametrize(
    ("error_number", "stride"),
    [
        (errno.ENOSPC, 7),
        *(pytest.param(n, 2, marks=pytest.mark.thorough) for n in (errno.ENOSPC, errno.EIO)),
    ],
)
def test_a_failing_step_is_named_and_the_next_run_ends_it(
    case: Case, error_number: int, stride: int
) -> None:
    for step, name in list(enumerate(case.steps))[::stride]:
        what = f"step {step}, {name}"
        broken = case.copy("broken")
        run = retain(broken, FailingFiles(step, error_number))
        told = [result.reason for result in run.results] + list(run.problems)
        assert any(os.strerror(error_number) in text for text in told), (what, told)
        check_next_run_ends_it(broken, case, what)
        shutil.rmtree(broken)


def test_files_are_marked_deleted_before_any_is_removed(case: Case) -> None:
    renamed = [n for n, step in enumerate(case.steps) if step.endswith(".deleted") and "to" in step]
    marked = [case.steps[n].removeprefix("rename to ") for n in renamed]
    removed = [n for n, step in enumerate(case.steps) if step.removeprefix("remove ") in marked]
    gone = SEGMENTS if case.first_offset == END else SEGMENTS - 2
    assert [case.steps[n].removeprefix("remove ") for n in removed] == marked
    assert max(renamed) < case.steps.index("sync directory", max(renamed)) < min(removed)
    kinds = [name.split(".", 1)[1].removesuffix(".deleted") for name in marked]
    assert kinds == ["log", "index", "timeindex", "txnindex"] * gone + ["snapshot"] * (gone - 1)


def test_the_log_start_is_checkpointed_before_anything_is_renamed(case: Case) -> None:
    checkpointed = case.steps.index("rename to log-start-offset-checkpoint")
    assert checkpointed < min(n for n, s in enumerate(case.steps) if s.endswith(".deleted"))
    assert b"neighbour 0 1\n" in case.after["log-start-offset-checkpoint"]
    assert b"orders" not in case.after["log-start-offset-checkpoint"]
