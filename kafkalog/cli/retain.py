"""`kafkalog retain`: plan retention; with `--apply` delete what it allows. Also what
`jobs/apply_retention.py` calls.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from kafkalog.bucket.deletion_records import DeletionRecords
from kafkalog.bucket.deletion_run import DeletionRun, delete_segments
from kafkalog.bucket.document import deletion_rows, result_rows
from kafkalog.bucket.retained import RetainedObjects, objects_to_delete
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
from kafkalog.planning.retention_plan import DELETE, RetentionPlan
from kafkalog.remote.paths import RemoteStorage
from kafkalog.requests.run_request import RunRequest, run_request
from kafkalog.swap.segment_deletion import DELETED
from kafkalog.texts import format_bytes, format_count

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
    remote = _RemotePart(args, request, storage) if args.cluster_is_gone else None

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


@dataclass(slots=True)
class _RemotePart:
    """What of a run is deleted in remote storage, once its log starts are where they say that it
    is gone: whoever dies in between leaves objects that the next run deletes."""

    args: argparse.Namespace
    request: RunRequest
    storage: RemoteStorage
    found: RetainedObjects = field(default_factory=lambda: RetainedObjects((), (), ()))
    deleted: DeletionRun | None = None

    def run(self, done: RetentionRun, tell: Tell) -> None:
        """Look for the objects of the plans, and with --apply delete them."""
        if done.applied and (done.problems or done.faults):
            tell("nothing is deleted in remote storage, for the run met problems")
            return
        self.found = objects_to_delete(_carried_out(done), self.storage)
        for line in self.found.left:
            tell(f"left: {line}")
        if self.found.absent:
            count = format_count(len(self.found.absent), "segment")
            tell(f"{count} of the plan, whose deletion was begun, have no object any more")
        if done.applied:
            options = {"logDirs": list(self.request.log_dirs), "topics": list(self.args.topic),
                       "remoteDirs": list(self.args.remote_dir), "nowMs": self.request.now_ms,
                       "retainRunId": done.run_id}  # fmt: skip
            logs, most = self.request.open_all(), self.request.max_batch_bytes
            with DeletionRecords(logs, most, self.found.absent) as records:
                self.deleted = delete_segments(
                    self.found.deletions, self.request.run_path, options,
                    keeps_undo=not self.args.no_undo, tell=tell,
                    bytes_per_second=self.args.max_bytes_per_second, records=records,
                )  # fmt: skip

    @property
    def rows(self) -> list[Row]:
        """The delete list, or what became of it."""
        if self.deleted is None:
            return deletion_rows(self.found.deletions)
        return result_rows(self.deleted)

    @property
    def statuses(self) -> list[str]:
        """One for each segment that was to be deleted."""
        return [] if self.deleted is None else [result.status for result in self.deleted.results]

    @property
    def document(self) -> Row:
        """As JSON."""
        return {
            "runId": None if self.deleted is None else self.deleted.run_id,
            "objects" if self.deleted is None else "segments": self.rows,
            "absentSegmentIds": list(self.found.absent),
            "left": list(self.found.left),
        }

    @property
    def summary(self) -> str:
        """Behind that of the run."""
        if self.deleted is None:
            size = sum(each.segment.size_in_bytes for each in self.found.deletions)
            count = format_count(len(self.found.deletions), "segment")
            return f"; {count} of {format_bytes(size)} may go from remote storage"
        gone = sum(result.size_in_bytes for result in self.deleted.results)
        named = "" if self.deleted.run_id is None else f" (run {self.deleted.run_id})"
        return f"; {format_bytes(gone)} deleted in remote storage{named}"


def _carried_out(run: RetentionRun) -> list[RetentionPlan]:
    """Plans whose local part, if they have one, did not fail."""
    if not run.applied:
        return list(run.plans)
    results = iter(run.results)
    ended = [(p, next(results) if p.status == DELETE else None) for p in run.plans]
    return [plan for plan, result in ended if result is None or result.status == DELETED]
