"""Threads that work in turns: one at a time, the others where one waits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkalog.resources.turns import Turns, wait_aside

LONG_S = 60


def test_one_works_at_a_time_however_many_there_are() -> None:
    turns, at_work, most = Turns(), 0, 0

    def step() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        # Long enough for others to begin, if anything let them.
        sum(range(2000))
        at_work -= 1

    def work(_: int) -> None:
        with turns:
            step()
            wait_aside(sum, (1, 2))
            step()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(200)))
    assert most == 1


def test_others_work_while_one_waits() -> None:
    turns, is_other_done = Turns(), threading.Event()

    def waits() -> bool:
        with turns:
            return wait_aside(is_other_done.wait, LONG_S)

    def works() -> None:
        with turns:
            is_other_done.set()

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(waits)
        pool.submit(works).result(LONG_S)
        assert waiting.result(LONG_S)


def test_behind_a_short_wait_the_turn_is_kept_and_behind_a_long_one_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, lasts_s, now_s = Turns(), [1.0, 1e-6, 1.0, 1e-6], 0.0
    monkeypatch.setattr("time.perf_counter", lambda: now_s)

    def wait(seconds: float) -> bool:
        nonlocal now_s
        now_s += seconds
        others_may = turns._lock.acquire(blocking=False)
        if others_may:
            turns._lock.release()
        return others_may

    with turns:
        # What the last one took counts; the first one may take long.
        assert [wait_aside(wait, seconds) for seconds in lasts_s] == [True, True, False, True]


def test_others_are_begun_behind_a_long_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, begun = 0.0, []
    turns = Turns(lambda: begun.append(now_s))
    monkeypatch.setattr("time.perf_counter", lambda: now_s)

    def wait(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    with turns:
        for seconds in (1e-6, 1.0, 1e-6, 2.0):
            wait_aside(wait, seconds)
    assert begun == [pytest.approx(1.0, abs=0.1), pytest.approx(3.0, abs=0.1)]


def test_a_wait_that_fails_takes_its_turn_again_and_leaves_it_to_the_next() -> None:
    turns = Turns()

    def fails() -> None:
        raise OSError("no space")

    for _ in range(2):
        with pytest.raises(OSError, match="no space"), turns:
            wait_aside(fails)
    # Without a turn a wait is a call like any other.
    assert wait_aside(sum, (1, 2)) == 3
