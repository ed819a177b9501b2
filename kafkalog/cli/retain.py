"""`kafkalog retain`: plan retention; with `--apply` delete what it allows. Also what
`jobs/apply_retention.py` calls.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from kafkalog.cleaner.retain import DELETED
from kafkalog.cleaner.retention_document import (
    retention_document,
    retention_statuses,
    retention_table,
)
from kafkalog.cleaner.retention_run import (
    RetentionRun,
    apply_retention_run,
    plan_retention_run,
)
from kafkalog.cleaner.run_frame import CANNOT_BE_UNDONE
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.cli.runs import exit_code_of, request_of
from kafkalog.planning.retention_plan import DELETE


def run(args: argparse.Namespace, tell: Callable[[str], None] = say) -> ExitCode:
    """Plan, or plan and delete, then print the run and choose the exit code; see `compact`."""
    started = time.monotonic()
    request = request_of(args)
    if args.apply:
        tell(CANNOT_BE_UNDONE)
        done = apply_retention_run(request, tell)
    else:
        done = plan_retention_run(request)
        for problem in done.problems:
            tell(problem)
    seconds = time.monotonic() - started
    if args.json:
        write_json(retention_document(done, seconds))
    else:
        rows = retention_table(done)
        if rows:
            write_table(list(rows[0]), rows)
        tell(_summary(done, seconds))
    return exit_code_of(done, retention_statuses(done, request.topics))


def _summary(run: RetentionRun, seconds: float) -> str:
    count = len(run.plans)
    if not run.applied:
        due = sum(plan.deleted_bytes for plan in run.plans if plan.status == DELETE)
        planned = f"{count} partitions planned in {seconds:.1f} s, {due} bytes may go"
        return f"{planned}; nothing was changed (--apply does)"
    done = sum(result.status == DELETED for result in run.results)
    return f"{done} of {count} partitions had segments deleted in {seconds:.1f} s"
