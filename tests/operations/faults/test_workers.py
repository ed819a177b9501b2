"""Worker processes never outlive their driver, nor the run that started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.operations import compact_pack
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.worker_processes import clean_in_processes
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.run_request import CompactionRequest
from tests.conftest import NOW_MS
from tests.operations.faults.logs import CONFIG, SETTINGS
from tests.support.log_builder import START_MS, LogBuilder

PARTITIONS = 4
WAIT_S = 300.0


def write_partitions(log_dir: Path) -> None:
    for number in range(PARTITIONS):
        log = LogBuilder(log_dir, f"t-{number}")
        log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1"))
        log.segment(modified_ms=START_MS).batch(("a", "2"))
        log.segment().batch(("a", "3")).write()


def request_for(log_dir: Path) -> CompactionRequest:
    return CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=("t",))


def sleep_but_once(plan: CompactionPlan, run: CleanRun) -> CleanResult:
    """In a worker: partition 0 is done at once, another takes for ever; both leave their pid."""
    number = plan.topic_partition.partition
    Path(plan.log_dir, f"started-{number}").write_text(str(os.getpid()))
    if number:
        time.sleep(600)
    return CleanResult("t", number, plan.log_dir, FAILED, "as told", None, 0.0)


def started(log_dir: Path, at_least: int) -> set[int]:
    """The processes of the workers, once so many partitions were begun."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        pids = [path.read_text() for path in log_dir.glob("started-*")]
        if len(pids) >= at_least and all(pids):
            return {int(pid) for pid in pids}
        time.sleep(0.01)
    raise AssertionError(f"{at_least} partitions were not begun in {WAIT_S} s")


def wait_for_the_end_of(pids: set[int]) -> None:
    until = time.monotonic() + WAIT_S
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < until, "a worker lives on"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def slow_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact_pack, "clean_partition", sleep_but_once)


@pytest.mark.usefixtures("slow_workers")
def test_workers_end_with_a_killed_driver(log_dir: Path) -> None:
    write_partitions(log_dir)
    plans = plan_run(request_for(log_dir)).plans
    driver = os.fork()
    if driver == 0:
        try:
            list(clean_in_processes(plans, CleanRun("run", os.getpid()), 2))
        finally:
            os._exit(1)
    pids = started(log_dir, 3)  # partition 0 and, on both workers, one that does not end
    assert all(is_running(pid) for pid in pids)
    os.kill(driver, signal.SIGKILL)
    os.waitpid(driver, 0)
    wait_for_the_end_of(pids)


@pytest.mark.usefixtures("slow_workers")
def test_a_run_that_stops_in_the_middle_leaves_no_worker_at_work(log_dir: Path) -> None:
    write_partitions(log_dir)
    seen = set[int]()

    def stop(_: str) -> None:
        seen.update(started(log_dir, 3))
        raise KeyboardInterrupt

    def execute(plans: list[CompactionPlan], run: CleanRun) -> Iterator[CleanResult]:
        return clean_in_processes(plans, run, 2)

    with pytest.raises(KeyboardInterrupt):
        apply_run(request_for(log_dir), execute, stop)  # type: ignore[arg-type]
    assert not any(is_running(pid) for pid in seen)
    assert not (log_dir / "started-3").exists()


def test_nobody_listening_does_not_stop_a_run(log_dir: Path) -> None:
    write_partitions(log_dir)
    words = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--apply", "--workers", "2"]
    words += ["--now", str(NOW_MS), *(f"--config={key}={value}" for key, value in SETTINGS.items())]
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "kafkalog", *words]
    assert subprocess.run(command, stdout=write, stderr=write, check=False).returncode == 0
    os.close(write)
    plans = plan_run(request_for(log_dir)).plans
    assert [plan.first_dirty_offset for plan in plans] == [3] * PARTITIONS
    damaged = log_dir / "t-2" / f"{0:020d}.log"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    (log_dir / "cleaner-offset-checkpoint").unlink()
    command = [*command, "--json"]
    document = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert document.returncode == 1
    statuses = [p["status"] for p in json.loads(document.stdout)["partitions"]]
    assert statuses == ["compacted", "compacted", "failed", "compacted"]
    read, write = os.pipe()
    os.close(read)
    (log_dir / "cleaner-offset-checkpoint").unlink()
    assert subprocess.run(command, stdout=write, stderr=write, check=False).returncode == 1
    os.close(write)
