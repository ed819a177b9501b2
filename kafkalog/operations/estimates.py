"""How long a run of compaction will take, and what of it is done across tasks: by its plans, who
will carry them out, and what earlier runs of the same run dir took.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.operations.clean_result import COMPACTED
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.compaction_work import Workers
from kafkalog.planning.run_estimate import RunEstimate, estimate_run
from kafkalog.planning.strategy_choice import weigh_strategies
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources.memory import page_cache_bytes, usual_budget
from kafkalog.runs.run_dir import open_run
from kafkalog.swap.journal import COMPACT

# So many of the newest runs of any kind are looked at: a run dir may have thousands.
_MOST_RUNS = 64


def estimate_plans(
    plans: Sequence[CompactionPlan], request: CompactionRequest
) -> RunEstimate | None:
    """The estimate for the plans that are to be carried out; None if there is none."""
    return estimate_run(
        plans,
        _workers(request),
        list(earlier_runs(request.run_path)),
        is_compared=request.verify_deep,
        bytes_per_second=request.max_bytes_per_second,
    )


def choose_strategies(
    plans: Sequence[CompactionPlan], request: CompactionRequest
) -> list[CompactionPlan]:
    """The plans, large ones across tasks only where that ends the run sooner with its workers, or
    where it was asked for.
    """
    if request.strategy is not None:
        return list(plans)
    return weigh_strategies(plans, _workers(request), is_compared=request.verify_deep)


def _workers(request: CompactionRequest) -> Workers:
    budget = usual_budget(request.memory, request.max_batch_bytes, on_spark=request.on_spark)
    return Workers(
        request.workers,
        budget.pool_bytes,
        budget.finished_bytes,
        budget.window_records,
        on_spark=request.on_spark,
        # Of a cluster's hosts this one says nothing.
        page_cache_bytes=0.0 if request.on_spark else page_cache_bytes() / request.workers,
    )


def earlier_runs(run_dir: Path) -> Iterator[tuple[float, float]]:
    """(seconds by the constants, seconds taken) of runs of compaction whose partitions were all
    done, the newest first. What cannot be read is left out.
    """
    try:
        with os.scandir(run_dir) as entries:
            found = [(entry.stat().st_mtime_ns, entry.name) for entry in entries]
    except OSError:
        return
    for _, name in sorted(found, reverse=True)[:_MOST_RUNS]:
        try:
            facts = open_run(run_dir, name).facts
        except InvalidConfigError:
            continue
        seconds = _seconds(facts.get("estimate"))
        # Of an audit it is a number: each kind of run has its own facts.
        ended = facts.get("partitions")
        is_whole = isinstance(ended, dict) and set(ended) == {COMPACTED}
        if facts.get("kind") == COMPACT and is_whole and seconds is not None:
            yield seconds


def _seconds(estimate: Any) -> tuple[float, float] | None:
    if not isinstance(estimate, dict):
        return None
    by, taken = estimate.get("reference_seconds"), estimate.get("taken_seconds")
    if not (isinstance(by, int | float) and isinstance(taken, int | float)):
        return None
    return float(by), float(taken)
