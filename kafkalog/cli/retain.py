"""`kafkalog retain`: plan retention; with `--apply` delete what it allows. Also what
`jobs/apply_retention.py` calls.
"""

from __future__ import annotations

import argparse

from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.runs import RunVerb, carry_out, planned_or_applied, run_options
from kafkalog.operations.retain import RetentionRun, apply_retention_run, plan_retention_run
from kafkalog.operations.retain_document import (
    retention_document,
    retention_statuses,
    retention_table,
)
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.retention_plan import DELETE
from kafkalog.requests.run_request import run_request
from kafkalog.swap.segment_deletion import DELETED
from kafkalog.texts import format_count


def run(args: argparse.Namespace, tell: Tell = say) -> ExitCode:
    """Plan, or plan and delete, then print the run and choose the exit code."""
    request = run_request(args.log_dir, run_options(args))
    run = planned_or_applied(
        args,
        plan=lambda: plan_retention_run(request),
        apply=lambda tell: apply_retention_run(request, tell),
    )
    verb = RunVerb(
        run=run,
        statuses=retention_statuses,
        document=retention_document,
        table=retention_table,
        summary=_summary,
    )
    return carry_out(args, verb, tell)


def _summary(run: RetentionRun, seconds: float) -> str:
    count = len(run.plans)
    if not run.applied:
        due = sum(plan.deleted_bytes for plan in run.plans if plan.status == DELETE)
        planned = f"{format_count(count, 'partition')} planned in {seconds:.1f} s"
        return f"{planned}, {due} bytes may go; nothing was changed (--apply does)"
    done = sum(result.status == DELETED for result in run.results)
    return f"{done} of {count} partitions had segments deleted in {seconds:.1f} s"
