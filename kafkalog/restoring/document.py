"""A restore as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkalog.operations.run_frame import run_frame
from kafkalog.restoring.cut import LogCut, OpenTransaction
from kafkalog.restoring.groups import GroupScript, group_rows
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.restore import RestoreResult, RestoreRun
from kafkalog.restoring.run import restore_statuses

Row = dict[str, Any]
_OTHER_REPLICA = "another replica of it is refused"


def restore_document(run: RestoreRun, seconds: float, scripts: Sequence[GroupScript] = ()) -> Row:
    """The frame of all runs, with an entry for each directory of the target, and for each group."""
    entries = [_row(*each) for each in _entries(run)]
    return {**run_frame(run, seconds, entries), "groups": group_rows(scripts)}


def restore_table(run: RestoreRun) -> list[Row]:
    """The same for people."""
    return [
        {
            "topic": plan.topic_partition.topic,
            "partition": plan.topic_partition.partition,
            "status": status,
            "source": str(plan.source_name),
            **_of_cut(plan.cut, is_refused=bool(plan.reason)),
            "reason": reason,
            "path": plan.path or None,
        }
        for plan, _, status, reason in _entries(run)
    ]


def _of_cut(cut: LogCut | None, *, is_refused: bool) -> Row:
    if cut is None:
        return dict.fromkeys(("offsets", "bytes", "openTransactions", "epoch", "producerId"))
    end = cut.end_offset + (0 if is_refused else len(cut.open))
    return {
        "offsets": f"{cut.start_offset}-{end}",
        "bytes": cut.size_in_bytes,
        "openTransactions": len(cut.open),
        "epoch": cut.highest_epoch,
        "producerId": cut.highest_producer_id,
    }


def warnings(run: RestoreRun) -> list[str]:
    """What becomes of what is restored, each once."""
    lines = (
        f"{plan.topic_partition}: {warning}"
        for plan in run.plans
        if not plan.reason
        for warning in plan.warnings
    )
    return list(dict.fromkeys(lines))


def _row(plan: RestorePlan, result: RestoreResult | None, status: str, reason: str | None) -> Row:
    cut = plan.cut
    return {
        "topic": plan.topic_partition.topic,
        "partition": plan.topic_partition.partition,
        "path": plan.path or None,
        "status": status,
        "reason": reason,
        "source": plan.source,
        "sourceTopic": plan.source_name.topic,
        "logStartOffset": None if cut is None else cut.start_offset,
        "cutOffset": None if cut is None else cut.end_offset,
        "lastStableOffset": None if cut is None else cut.last_stable_offset,
        "leftOutFromOffset": None if cut is None else cut.left_out_from,
        "openTransactions": [] if cut is None else [_open(each) for each in cut.open],
        "highestLeaderEpoch": None if cut is None else cut.highest_epoch,
        "highestProducerId": None if cut is None else cut.highest_producer_id,
        "segments": None if cut is None else len(cut.segments),
        "bytes": None if cut is None else cut.size_in_bytes,
        "endOffset": None if result is None else result.end_offset,
        "recordsCompared": None if result is None else result.records,
        "warnings": list(plan.warnings),
    }


def _open(each: OpenTransaction) -> Row:
    return {
        "producerId": each.producer_id,
        "producerEpoch": each.producer_epoch,
        "firstOffset": each.first_offset,
        "records": each.records,
    }


def _entries(
    run: RestoreRun,
) -> list[tuple[RestorePlan, RestoreResult | None, str, str | None]]:
    done = {result.path: result for result in run.results}
    entries = []
    for plan, status in zip(run.plans, restore_statuses(run), strict=True):
        result = done.get(plan.path) if plan.path else None
        reason = result.reason if result is not None else plan.reason
        if not reason and result is None and status != plan.status:
            reason = _OTHER_REPLICA
        entries.append((plan, result, status, reason or None))
    return entries
