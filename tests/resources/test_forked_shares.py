"""Work shared by this process and forks of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.resources.forked_shares import LEAST_ITEMS, in_shares


def _with_process(items: Sequence[int]) -> list[tuple[int, int]]:
    return [(item, os.getpid()) for item in items]


@pytest.mark.parametrize("more", [0, 1, 2])
def test_results_come_in_the_order_of_the_items_whoever_made_them(more: int) -> None:
    items = range(3 * LEAST_ITEMS + more)
    done = in_shares(_with_process, items, 3)
    assert [item for item, _ in done] == list(items)
    makers = [process for _, process in done]
    assert makers[0] == os.getpid()
    assert len(set(makers)) == 3
    assert makers[:3] * LEAST_ITEMS == makers[: 3 * LEAST_ITEMS]


@pytest.mark.parametrize(("count", "processes"), [(0, 2), (2 * LEAST_ITEMS - 1, 8), (500, 1)])
def test_few_items_are_no_work_for_a_fork(count: int, processes: int) -> None:
    done = in_shares(_with_process, range(count), processes)
    assert done == [(item, os.getpid()) for item in range(count)]


def test_the_share_of_a_fork_that_dies_is_done_here() -> None:
    here = os.getpid()

    def work(items: Sequence[int]) -> list[tuple[int, int]]:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return _with_process(items)

    done = in_shares(work, range(4 * LEAST_ITEMS), 4)
    assert done == [(item, here) for item in range(4 * LEAST_ITEMS)]


@pytest.mark.parametrize("wrong", [0, 1])
def test_what_is_raised_in_a_fork_is_raised_here(wrong: int) -> None:
    def work(items: Sequence[int]) -> list[int]:
        if wrong in items:
            raise InvalidConfigError("no such setting")
        return list(items)

    with pytest.raises(InvalidConfigError, match="no such setting"):
        in_shares(work, range(2 * LEAST_ITEMS), 2)
