"""`kafkalog verify`: check segments, indexes and what lies beside them. Also what
`jobs/check_segments.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence

from kafkalog.checking.document import (
    explanations,
    finding_table,
    summary,
    verify_document,
)
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import Executor, verify_run
from kafkalog.checking.segment import check_segment, segment_died
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.cli.found import Found, show_found
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.cluster_settings import ZooKeeperClusters
from kafkalog.resources.process_pool import in_processes

FINDING_COLUMNS = ("severity", "id", "file", "position", "offset", "text")
CHOSEN_OF_FINDINGS = ("severity", "id", "text", "file", "offset")

# Measured: worker processes cost about what 128 MiB take, and opening a segment what 1 MiB takes.
_SHORT_BYTES = 128 * 1024 * 1024
_BYTES_A_SEGMENT = 1024 * 1024


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the reading."""

    def execute(tasks: Sequence[SegmentTask]) -> Iterable[SegmentReport]:
        workers = args.workers or (1 if _is_short(tasks) else os.cpu_count() or 1)
        largest_first = sorted(tasks, key=lambda task: -task.size_in_bytes)
        results = in_processes(largest_first, check_segment, workers, segment_died)
        sizes = {task: task.size_in_bytes for task in tasks}
        return with_progress(results, sizes, lambda report: report.task, "verify", parts="segments")

    return run_with(args, execute, say_above)


def _is_short(tasks: Sequence[SegmentTask]) -> bool:
    """Is the work done before a second process would have begun?"""
    size_in_bytes = sum(task.size_in_bytes for task in tasks)
    return size_in_bytes + len(tasks) * _BYTES_A_SEGMENT < _SHORT_BYTES


def run_with(
    args: argparse.Namespace, execute: Executor, tell: Callable[[str], None] = say
) -> ExitCode:
    """Check with `execute`, print the findings and choose the exit code; talk goes to `tell`."""
    started = time.monotonic()
    done = verify_run(request_of(args), execute, tell)
    seconds = time.monotonic() - started
    found = Found(
        document=lambda: verify_document(done, seconds),
        rows=finding_table(done.findings),
        columns=FINDING_COLUMNS,
        chosen=CHOSEN_OF_FINDINGS,
        explanations=explanations(done.findings),
        summary=summary(done, seconds),
        is_failure=done.has_failures,
    )
    return show_found(args, found, tell)


def request_of(args: argparse.Namespace) -> VerifyRequest:
    """The request the arguments make."""
    return VerifyRequest(
        log_dirs=tuple(args.log_dir),
        topics=tuple(args.topic),
        topic_partitions=tuple(args.topic_partition),
        run_dir=args.run_dir,
        since=args.since,
        zookeeper=_zookeeper(args),
        max_batch_bytes=check_max_batch_bytes(args.max_batch_bytes),
        remote=remote_storage(args),
    )


def _zookeeper(args: argparse.Namespace) -> ZooKeeperClusters:
    if not args.zookeeper_dir and args.zk_root is None:
        return {}
    # Late: its formats are a twentieth of the start, and few have a ZooKeeper.
    from kafkalog.zookeeper.settings import read_zookeeper_settings

    return read_zookeeper_settings(args.zookeeper_dir, args.zk_root)
