"""A run of healing as a part of the JSON document of `compare --heal`, and as a table."""

from __future__ import annotations

from typing import Any

from kafkalog.healing.heal import HealResult
from kafkalog.healing.plan import HealPlan
from kafkalog.healing.run import HealRun
from kafkalog.operations.run_frame import run_frame

Row = dict[str, Any]


def heal_document(run: HealRun, seconds: float) -> Row:
    """The frame of all runs, with an entry for each wrong copy."""
    return run_frame(run, seconds, [_row(*pair) for pair in _pairs(run)])


def heal_table(run: HealRun) -> list[Row]:
    """The same for people."""
    return [
        {
            "topic": plan.topic_partition.topic,
            "partition": plan.topic_partition.partition,
            "wrong": plan.name,
            "from": plan.source_name or None,
            "status": plan.status if result is None else result.status,
            "cutOffset": plan.cut_offset,
            "reason": (plan.reason if result is None else result.reason) or None,
            "otherwise": plan.otherwise,
        }
        for plan, result in _pairs(run)
    ]


def _row(plan: HealPlan, result: HealResult | None) -> Row:
    return {
        "topic": plan.topic_partition.topic,
        "partition": plan.topic_partition.partition,
        "path": plan.path,
        "name": plan.name,
        "status": plan.status if result is None else result.status,
        "reason": (plan.reason if result is None else result.reason) or None,
        "findings": plan.differences,
        "source": plan.source or None,
        "sourceName": plan.source_name or None,
        "cutOffset": plan.cut_offset,
        "segments": None if result is None else result.segments,
        "bytesBefore": None if result is None else result.bytes_before,
        "bytesAfter": None if result is None else result.bytes_after,
        "otherwise": plan.otherwise,
    }


def _pairs(run: HealRun) -> list[tuple[HealPlan, HealResult | None]]:
    done = {result.path: result for result in run.results}
    return [(plan, done.get(plan.path)) for plan in run.plans]
