"""`--max-bytes-per-second`: what a run reads and writes, by a clock that only its waiting moves."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from kafkalog.log import pace
from kafkalog.log.pace import Pace, paced, spend
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.operations.worker_processes import clean_in_processes
from kafkalog.requests.run_request import CompactionRequest
from tests.conftest import NOW_MS
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import CONFIG, contents
from tests.support.log_builder import LogBuilder
from tests.support.topics import topic_words, topics_of

RATE = 1000
REAL_WRITE = os.write
START = 100.0


class Clock:
    """A time that goes on when somebody sleeps, and then only."""

    def __init__(self) -> None:
        self.now = START

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Meter:
    """Every byte of segments that the system is asked to read, and of new files to write, with the
    time it was asked at.
    """

    def __init__(self, clock: Clock, patch: pytest.MonkeyPatch) -> None:
        self._clock = clock
        self.moved: list[tuple[float, int]] = []
        for name in ("pread", "preadv", "write"):
            patch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            result = call(*arguments)
            size = result if isinstance(result, int) else len(result)
            path = Path(f"/proc/self/fd/{arguments[0]}").readlink().name
            if ".log" in path or (call is REAL_WRITE and "index" in path):
                self.moved.append((self._clock.now, size))
            return result

        return measured

    @property
    def total(self) -> int:
        return sum(size for _, size in self.moved)

    def check(self) -> None:
        """Never more than was allowed since the start, but for the piece that was last."""
        total, largest = 0, max(size for _, size in self.moved)
        for at, size in self.moved:
            total += size
            assert total <= (at - START) * RATE + largest + RATE * pace.SHORTEST_WAIT_S


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(pace, "Pace", lambda rate: Pace(rate, fake.time, fake.sleep))
    return fake


def request_for(log_dir: Path, **more: Any) -> CompactionRequest:
    return CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir), **more)


def test_a_run_reads_and_writes_no_faster_than_it_is_told(
    undisturbed: Undisturbed, log_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    request = request_for(copy, max_bytes_per_second=RATE)
    with monkeypatch.context() as patch:
        meter = Meter(clock, patch)
        run = apply_run(request, clean_pack)
    assert [result.status for result in run.results] == ["compacted"]
    assert contents(copy) == undisturbed.after
    source_bytes = run.plans[0].source_bytes
    # Planned, mapped and rewritten from, and what was written read back.
    assert meter.total > 3 * source_bytes
    meter.check()
    assert clock.now - START >= meter.total / RATE * 0.5
    assert clock.now - START <= meter.total / RATE + 1e-6  # sums of seconds are rounded


def test_without_a_limit_nobody_waits(
    undisturbed: Undisturbed, log_dir: Path, clock: Clock
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    apply_run(request_for(copy), clean_pack)
    assert clock.now == START


def test_a_plan_and_an_output_keep_to_it_too(
    undisturbed: Undisturbed, log_dir: Path, clock: Clock
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    size = sum(path.stat().st_size for path in copy.rglob("*.log"))
    plan_run(request_for(copy, max_bytes_per_second=RATE))
    planned = clock.now - START
    assert planned >= size / RATE
    words = [
        "compact",
        "--log-dir",
        str(copy),
        *topic_words(copy),
        "--max-bytes-per-second",
        str(RATE),
    ]
    words += [f"--output={log_dir / 'output'}", "--now", str(NOW_MS), "--workers", "1"]
    words += ["--config=cleanup.policy=compact", "--config=min.cleanable.dirty.ratio=0.01"]
    assert main(words) == 0
    assert clock.now - START - planned >= 3 * size / RATE


def test_workers_share_the_limit_equally(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GivenSettings by each worker process: the pace it was given."""
    for number in range(3):
        log = LogBuilder(log_dir, f"t-{number}").segment().batch(("a", "1"), ("a", "2"))
        log.segment().batch(("b", "1")).write()
    told = log_dir.with_name(f"{log_dir.name}-told")
    told.mkdir()
    real = Pace

    def noted(rate: float) -> Pace:
        (told / f"{os.getpid()}-{rate}").touch()
        return real(rate)

    monkeypatch.setattr(pace, "Pace", noted)
    request = request_for(log_dir, max_bytes_per_second=9_000_000)
    run = apply_run(request, lambda plans, run: clean_in_processes(plans, run, 2))
    assert [result.status for result in run.results] == ["compacted"] * 3
    rates = {tuple(path.name.split("-")) for path in told.iterdir()}
    assert {float(rate) for pid, rate in rates if int(pid) != os.getpid()} == {4_500_000.0}
    assert {float(rate) for pid, rate in rates if int(pid) == os.getpid()} == {9_000_000.0}
    for path in told.iterdir():
        path.unlink()
    told.rmdir()


def test_no_more_shares_than_workers_at_work() -> None:
    run = CleanRun("r", 1, bytes_per_second=10.0)
    assert [run.shared_by(n).bytes_per_second for n in (0, 1, 4)] == [10.0, 10.0, 2.5]
    assert CleanRun("r", 1).shared_by(4).bytes_per_second is None


def test_threads_of_a_process_share_one_pace() -> None:
    clock, waits = Clock(), list[float]()
    shared = Pace(RATE, clock.time, waits.append)  # nobody sleeps until all have spent
    threads = [threading.Thread(target=shared.spend, args=(500,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each has to wait for what it and those before it moved.
    assert sorted(waits) == pytest.approx([n * 0.5 for n in range(1, 9)])


def test_time_without_reading_is_not_made_up_for(clock: Clock) -> None:
    with paced(RATE):
        spend(RATE)
        assert clock.now == START + 1
        clock.now += 1000
        spend(RATE)
        assert clock.now == START + 1002
    spend(RATE)
    assert clock.now == START + 1002


def test_small_waits_are_added_up_and_paid_in_the_end(clock: Clock) -> None:
    with paced(RATE * 1000):
        for _ in range(3):
            spend(1000)
        assert clock.now == START
    assert clock.now == pytest.approx(START + 0.003)


@pytest.mark.parametrize("text", ["0", "-1", "fast", "1.5"])
def test_only_a_whole_number_of_bytes_is_taken(log_dir: Path, text: str) -> None:
    assert main(["compact", "--log-dir", str(log_dir), f"--max-bytes-per-second={text}"]) == 2
