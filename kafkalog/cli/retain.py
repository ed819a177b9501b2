"""`kafkalog retain`: plan retention; with `--apply` delete what it allows. Also what
`jobs/apply_retention.py` calls.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.runs import RunVerb, carry_out, planned_or_applied, run_options
from kafkalog.cli.tables import show_table
from kafkalog.operations.retain import RetentionRun, apply_retention_run, plan_retention_run
from kafkalog.operations.retain_document import (
    retention_document,
    retention_statuses,
    retention_table,
)
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.retention_plan import DELETE
from kafkalog.remote.paths import RemoteStorage
from kafkalog.requests.run_request import RunRequest, run_request
from kafkalog.swap.segment_deletion import DELETED
from kafkalog.texts import format_count

if TYPE_CHECKING:
    from kafkalog.cli.retain_remote import RemotePart

Row = dict[str, Any]


def run(args: argparse.Namespace, tell: Tell = say) -> ExitCode:
    """Plan, or plan and delete, then print the run and choose the exit code."""
    if args.cluster_is_gone != bool(args.remote_dir):
        raise UsageError(
            "--cluster-is-gone deletes in the remote storage that --remote-dir names: both or none"
        )
    request = run_request(args.log_dir, run_options(args))
    if args.remote_layout and not args.remote_dir:
        raise UsageError("--remote-layout is for --remote-dir")
    storage = RemoteStorage(tuple(args.remote_dir), args.remote_layout)
    remote = _remote_part(args, request, storage) if args.cluster_is_gone else None

    def work(tell: Tell) -> RetentionRun:
        done = planned_or_applied(
            args,
            plan=lambda: plan_retention_run(request, of_gone_cluster=storage),
            apply=lambda tell: apply_retention_run(request, tell, of_gone_cluster=storage),
        )(tell)
        if remote is not None:
            remote.run(done, tell)
        return done

    verb = RunVerb(
        run=work,
        statuses=lambda run, named: (
            retention_statuses(run, named) + ([] if remote is None else remote.statuses)
        ),
        document=lambda run, seconds: (
            retention_document(run, seconds)
            | ({} if remote is None else {"remoteDeletions": remote.document})
        ),
        table=retention_table,
        summary=lambda run, seconds: (
            _summary(run, seconds) + ("" if remote is None else remote.summary)
        ),
    )
    code = carry_out(args, verb, tell)
    if remote is not None and not args.json:
        show_table(remote.rows, is_main=False, tell=tell)
    return code


def _remote_part(
    args: argparse.Namespace, request: RunRequest, storage: RemoteStorage
) -> RemotePart:
    # What deletes in buckets is a third of what starts, and most runs have none.
    from kafkalog.cli.retain_remote import RemotePart

    return RemotePart(args, request, storage)


def _summary(run: RetentionRun, seconds: float) -> str:
    count = len(run.plans)
    if not run.applied:
        due = sum(plan.deleted_bytes for plan in run.plans if plan.status == DELETE)
        planned = f"{format_count(count, 'partition')} planned in {seconds:.1f} s"
        remote = sum(plan.remote.deleted_bytes for plan in run.plans if plan.remote is not None)
        there = f", and {remote} from remote storage, by brokers" if remote else ""
        return f"{planned}, {due} bytes may go{there}; nothing was changed (--apply does)"
    done = sum(result.status == DELETED for result in run.results)
    return f"{done} of {count} partitions had segments deleted in {seconds:.1f} s"
