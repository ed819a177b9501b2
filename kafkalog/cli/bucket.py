"""`kafkalog bucket`: what lies in remote storage against what the cluster says of it. Also what
`jobs/audit_bucket.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence

from kafkalog.bucket.document import (
    bucket_document,
    deletion_rows,
    explanations,
    finding_table,
    summary,
)
from kafkalog.bucket.look import LookResult, LookTask, look, look_died, with_pace
from kafkalog.bucket.request import MIN_AGE_MS, BucketRequest
from kafkalog.bucket.run import Executor, bucket_run
from kafkalog.cli.bucket_metadata import rebuild
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.cli.tables import show_table
from kafkalog.clock import now_ms
from kafkalog.errors import InvalidConfigError
from kafkalog.format.limits import check_max_batch_bytes
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
    seconds = time.monotonic() - started
    if args.json:
        write_json(bucket_document(done, seconds))
    else:
        rows = finding_table(done.findings)
        show_table(rows, _COLUMNS, chosen=_CHOSEN, tell=tell)
        show_table(deletion_rows(done.deletions), is_main=False, tell=tell)
        for line in explanations(done.findings):
            tell(line)
        tell(summary(done, seconds))
    return ExitCode.FINDINGS if done.has_failures else ExitCode.DONE


def request_of(args: argparse.Namespace) -> BucketRequest:
    """The request the arguments make."""
    if args.since is not None and not args.deep:
        raise InvalidConfigError("--since is for --deep: nothing else is taken over")
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
