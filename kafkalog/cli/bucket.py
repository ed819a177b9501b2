"""`kafkalog bucket`: what lies in remote storage against what the cluster says of it. Also what
`jobs/audit_bucket.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence

from kafkalog.bucket.deletion_run import DeletionRun, delete_segments
from kafkalog.bucket.document import (
    bucket_document,
    deletion_rows,
    explanations,
    finding_table,
    result_rows,
    summary,
)
from kafkalog.bucket.judgement import DELETABLE
from kafkalog.bucket.look import LookResult, LookTask, look, look_died, with_pace
from kafkalog.bucket.request import MIN_AGE_MS, BucketRequest
from kafkalog.bucket.run import BucketRun, Executor, bucket_run
from kafkalog.cli.bucket_metadata import rebuild
from kafkalog.cli.found import Found, show_found
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.operations.run_frame import CANNOT_BE_UNDONE
from kafkalog.planning.statuses import REFUSED
from kafkalog.requests.run_settings import read_server_properties
from kafkalog.resources.process_pool import in_processes

_COLUMNS = (
    "severity", "id", "topic", "partition", "offset", "segmentId", "segments", "sizeInBytes",
    "text", "path", "position",
)  # fmt: skip
_CHOSEN = ("severity", "id", "topic", "partition", "text", "sizeInBytes", "offset", "segmentId")


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the reading."""
    workers = args.workers or os.cpu_count() or 1

    def execute(tasks: Sequence[LookTask]) -> Iterable[LookResult]:
        at_once = min(workers, len(tasks))
        own = [with_pace(task, args.max_bytes_per_second, at_once) for task in tasks]
        largest_first = sorted(own, key=lambda task: -task.size_in_bytes)
        results = in_processes(largest_first, look, workers, look_died)
        sizes = {str(task.path): task.size_in_bytes for task in tasks}
        return with_progress(
            results, sizes, lambda result: str(result.task.path), "bucket", parts="segments"
        )

    return run_with(args, execute, say_above)


def run_with(
    args: argparse.Namespace, execute: Executor, tell: Callable[[str], None] = say
) -> ExitCode:
    """Look with `execute`, print what was found and what may be deleted, choose the exit code; talk
    goes to `tell`."""
    request = request_of(args)
    if args.rebuild_metadata:
        return rebuild(args, request, tell)
    started = time.monotonic()
    done = bucket_run(request, execute, tell)
    deleted = _delete(args, done, tell) if args.apply else None
    seconds = time.monotonic() - started
    found = Found(
        document=lambda: bucket_document(done, deleted, seconds),
        rows=finding_table(done.findings),
        columns=_COLUMNS,
        chosen=_CHOSEN,
        explanations=explanations(done.findings),
        summary=summary(done, deleted, seconds),
        is_failure=done.has_failures,
        more=[deletion_rows(done.deletions) if deleted is None else result_rows(deleted)],
    )
    code = show_found(args, found, tell)
    return code if deleted is None else _exit_code(done, deleted)


def _delete(args: argparse.Namespace, done: BucketRun, tell: Callable[[str], None]) -> DeletionRun:
    options = {
        "logDirs": list(args.log_dir),
        "remoteDirs": list(args.remote_dir),
        "topics": list(args.topic),
        "minAgeMs": done.request.min_age_ms,
    }
    if args.no_undo:
        tell(CANNOT_BE_UNDONE)
    return delete_segments(
        done.deletions, done.request.run_path, options, keeps_undo=not args.no_undo, tell=tell,
        bytes_per_second=args.max_bytes_per_second,
    )  # fmt: skip


def _exit_code(done: BucketRun, deleted: DeletionRun) -> ExitCode:
    """DONE if nothing is wrong but what is deleted now, UNSAFE if all of the list was refused."""
    if deleted.results and all(result.status == REFUSED for result in deleted.results):
        return ExitCode.UNSAFE
    others = any(f.severity.is_failure and f.kind not in DELETABLE for f in done.findings)
    return ExitCode.FINDINGS if others or not deleted.is_done else ExitCode.DONE


def request_of(args: argparse.Namespace) -> BucketRequest:
    """The request the arguments make."""
    if args.since is not None and not args.deep:
        raise InvalidConfigError("--since is for --deep: nothing else is taken over")
    if args.apply and args.rebuild_metadata:
        raise InvalidConfigError("--apply or --rebuild-metadata, not both")
    if args.apply and args.now is not None:
        raise InvalidConfigError("--now is for looking: --apply goes by the clock")
    if not args.rebuild_metadata and (args.output or args.metadata_partitions):
        raise InvalidConfigError("--output and --metadata-partitions are for --rebuild-metadata")
    return BucketRequest(
        log_dirs=tuple(args.log_dir),
        now_ms=now_ms() if args.now is None else args.now,
        remote=remote_storage(args),
        topics=tuple(args.topic),
        topic_partitions=tuple(args.topic_partition),
        min_age_ms=MIN_AGE_MS if args.min_age is None else args.min_age,
        is_deep=args.deep,
        server_properties=read_server_properties(args.server_properties),
        run_dir=args.run_dir,
        since=args.since,
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
    )
