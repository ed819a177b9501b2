"""Which partitions a run takes first, and which it leaves for the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.operations.compact import plan_run
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.run_order import dirtiest_first, largest_first, limit_bytes
from kafkalog.planning.statuses import LEFT, REFUSED
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.test_laws import CONFIG, NOW_MS
from tests.support.log_builder import LogBuilder


@pytest.fixture
def plan(log_dir: Path) -> CompactionPlan:
    log = LogBuilder(log_dir, "t-0")
    log.segment().batch(("a", "1")).segment().batch(("a", "2")).segment().write()
    (found,) = plan_run(CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=("t",))).plans
    return found


def plans_of(plan: CompactionPlan, *ratios: float) -> list[CompactionPlan]:
    """Plans of the same bytes that are so dirty, in the order of their paths."""
    return [
        replace(plan, path=f"/data/t-{number}", cleanable_ratio=ratio)
        for number, ratio in enumerate(ratios)
    ]


def test_the_dirtiest_comes_first_whatever_must_be_compacted(plan: CompactionPlan) -> None:
    """A log past max.compaction.lag.ms competes by its ratio like any other."""
    clean, dirty, forced = plans_of(plan, 0.2, 0.9, 0.5)
    forced = replace(forced, must_compact=True)
    assert dirtiest_first([clean, dirty, forced]) == [dirty, forced, clean]


def test_of_two_as_dirty_the_larger_comes_first(plan: CompactionPlan) -> None:
    one, other = plans_of(plan, 0.5, 0.5)
    larger = replace(other, cleanable_bytes=other.cleanable_bytes + 1)
    assert dirtiest_first([one, larger]) == [larger, one]
    assert dirtiest_first([other, one]) == [one, other]


def test_without_a_limit_the_largest_comes_first(plan: CompactionPlan) -> None:
    small, large = plans_of(plan, 0.9, 0.1)
    small = replace(small, groups=())
    assert largest_first([small, large]) == [large, small]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (0.01, [LEFT, CLEAN, LEFT]),  # the first always
        (1, [LEFT, CLEAN, LEFT]),
        (1.99, [LEFT, CLEAN, LEFT]),
        (2, [LEFT, CLEAN, CLEAN]),
        (3, [CLEAN, CLEAN, CLEAN]),
    ],
)
def test_bytes_are_taken_as_long_as_they_fit(
    plan: CompactionPlan, parts: float, wanted: list[str]
) -> None:
    assert plan.source_bytes > 100
    plans = plans_of(plan, 0.1, 0.9, 0.5)
    limited = limit_bytes(plans, int(parts * plan.source_bytes))
    assert [each.status for each in limited] == wanted
    assert [each.path for each in limited] == [each.path for each in plans]
    for each in limited:
        if each.status == LEFT:
            assert "left for the next run: --max-bytes" in each.reason
            assert each.source_bytes == plan.source_bytes  # what the next run has to do is told


def test_one_that_does_not_fit_ends_the_run_also_for_smaller_ones(plan: CompactionPlan) -> None:
    first, second, third = plans_of(plan, 0.9, 0.5, 0.1)
    third = replace(third, groups=third.groups[:0])
    limited = limit_bytes([first, second, third], plan.source_bytes + 1)
    assert [each.status for each in limited] == [CLEAN, LEFT, LEFT]


def test_what_is_not_cleaned_takes_no_bytes(plan: CompactionPlan) -> None:
    refused, chosen = plans_of(plan, 0.9, 0.1)
    limited = limit_bytes([replace(refused, status=REFUSED), chosen], plan.source_bytes)
    assert [each.status for each in limited] == [REFUSED, CLEAN]
    assert limit_bytes([refused, chosen], None) == (refused, chosen)
