"""Large partitions go across tasks only where that ends the run sooner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.planning.compaction_plan import ACROSS_TASKS, WITHIN_TASK, CompactionPlan
from kafkalog.planning.compaction_work import Workers
from kafkalog.planning.cost_model import compaction_cost
from kafkalog.planning.reference_rates import REFERENCE
from kafkalog.planning.run_estimate import work_of
from kafkalog.planning.statuses import SKIP
from kafkalog.planning.strategy_choice import weigh_strategies
from tests.planning.facts import facts_of, partition, plan, segment

GIB = 1 << 30


def of_size(gib: int, number: int, strategy: str = ACROSS_TASKS) -> CompactionPlan:
    """The plan of a partition of so many segments of a GiB, 8 M records each."""
    segments = [segment(i * 8_000_000, GIB) for i in range(gib)]
    facts = [
        replace(facts_of(each), records_count=8_000_000, last_offset=each.base_offset + 7_999_999)
        for each in segments
    ]
    end = gib * 8_000_000
    made = plan(partition([*segments, segment(end, 0)], end=end), facts=facts)
    return replace(made, path=f"/data/orders-{number}", strategy=strategy)


def workers(count: int, *, on_spark: bool = False) -> Workers:
    return Workers(count, 160 << 20, 100 << 20, 1 << 28, on_spark=on_spark)


def strategies(plans: Sequence[CompactionPlan], who: Workers) -> list[str]:
    return [plan.strategy for plan in weigh_strategies(plans, who)]


def seconds(plans: Sequence[CompactionPlan], who: Workers) -> float:
    works = [work_of(plan, is_compared=False) for plan in plans]
    return compaction_cost(works, who, REFERENCE).seconds


@pytest.mark.parametrize("on_spark", [False, True])
def test_partitions_that_fill_the_workers_are_done_within_tasks(on_spark: bool) -> None:
    who = workers(4, on_spark=on_spark)
    assert strategies([of_size(16, n) for n in range(8)], who) == [WITHIN_TASK] * 8
    # Of fewer than workers each is shared.
    assert strategies([of_size(16, 0)], who) == [ACROSS_TASKS]
    assert strategies([of_size(16, 0)], workers(1, on_spark=on_spark)) == [WITHIN_TASK]


def test_one_that_all_others_would_wait_for_is_shared() -> None:
    plans = [of_size(8, 0), of_size(60, 1), *(of_size(8, n) for n in range(2, 9))]
    assert strategies(plans, workers(8)) == [WITHIN_TASK, ACROSS_TASKS, *[WITHIN_TASK] * 7]


def test_small_ones_and_those_left_alone_stay_as_they_are() -> None:
    small, large = of_size(1, 0, WITHIN_TASK), of_size(16, 1)
    left = replace(of_size(16, 2), status=SKIP)
    assert weigh_strategies([small, left, large], workers(4)) == [small, left, large]
    assert weigh_strategies([], workers(4)) == []
    assert weigh_strategies([small], workers(4)) == [small]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 9),
    st.booleans(),
)
def test_no_choice_of_a_run_is_slower_than_all_alike(
    sizes: list[tuple[int, bool]], count: int, on_spark: bool
) -> None:
    plans = [
        of_size(gib, n, ACROSS_TASKS if is_large else WITHIN_TASK)
        for n, (gib, is_large) in enumerate(sizes)
    ]
    who = workers(count, on_spark=on_spark)
    chosen = weigh_strategies(plans, who)
    within = [replace(plan, strategy=WITHIN_TASK) for plan in plans]
    assert [replace(plan, strategy=WITHIN_TASK) for plan in chosen] == within
    least = min(seconds(plans, who), seconds(within, who))
    assert seconds(chosen, who) <= least * (1 + 1e-9)
