"""What `kafkalog retain --cluster-is-gone` deletes in remote storage."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from kafkalog.bucket.deletion_records import DeletionRecords
from kafkalog.bucket.deletion_run import DeletionRun, delete_segments
from kafkalog.bucket.document import deletion_rows, result_rows
from kafkalog.bucket.retained import RetainedObjects, objects_to_delete
from kafkalog.operations.retain import RetentionRun
from kafkalog.operations.run_steps import Tell
from kafkalog.planning.retention_plan import DELETE, RetentionPlan
from kafkalog.remote.paths import RemoteStorage
from kafkalog.requests.run_request import RunRequest
from kafkalog.swap.segment_deletion import DELETED
from kafkalog.texts import format_bytes, format_count

Row = dict[str, Any]


@dataclass(slots=True)
class RemotePart:
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
