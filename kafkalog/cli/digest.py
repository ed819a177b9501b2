"""`kafkalog digest`: what `compare` needs to know of the replicas of a host that shares no disk.
Also what `jobs/digest_replicas.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.option_values import remote_storage
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.progress import with_progress
from kafkalog.cli.tables import show_table
from kafkalog.comparing.digest import (
    FAILED,
    DigestedPartition,
    DigestExecutor,
    DigestRequest,
    DigestTask,
    digest_died,
    digest_partition,
    digest_run,
)
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.resources.process_pool import in_processes
from kafkalog.texts import format_count


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the reading."""
    workers = args.workers or os.cpu_count() or 1

    def execute(tasks: Sequence[DigestTask]) -> Iterable[tuple[DigestTask, DigestedPartition]]:
        results = in_processes(tasks, digest_partition, workers, digest_died)
        sizes = {task.part: task.replica.size_in_bytes for task in tasks}
        return with_progress(
            results, sizes, lambda done: done[0].part, "digest", parts="partitions"
        )

    return run_with(args, execute, say)


def run_with(
    args: argparse.Namespace, execute: DigestExecutor, tell: Callable[[str], None]
) -> ExitCode:
    """Digest with `execute` and print how each partition ended; talk goes to `tell`. FINDINGS if a
    partition could not be read, and is not in the digest.
    """
    if args.output is None:
        raise UsageError("digest needs --output F, a new file")
    if args.hash_key is None:
        raise UsageError("digest needs --hash-key FILE, the key that all hosts share")
    request = DigestRequest(
        tuple(args.log_dir),
        args.output,
        args.hash_key,
        tuple(args.topic),
        tuple(args.topic_partition),
        check_max_batch_bytes(args.max_batch_bytes),
        remote_storage(args),
    )
    started = time.monotonic()
    results = digest_run(request, execute)
    seconds = time.monotonic() - started
    rows = [_row(each) for each in results]
    if args.json:
        write_json({"seconds": round(seconds, 3), "output": request.output, "partitions": rows})
    else:
        show_table(rows, tell=tell)
    for each in results:
        if each.status == FAILED:
            tell(f"{each.topic_partition}: not in the digest: {each.reason}")
    tell(_summary(results, request.output, seconds))
    return ExitCode.FINDINGS if any(r.status == FAILED for r in results) else ExitCode.DONE


def _row(each: DigestedPartition) -> dict[str, Any]:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "path": each.path,
        "status": each.status,
        "reason": each.reason or None,
        "recordsCount": each.records,
        "sizeInBytes": each.size_in_bytes,
        "digestBytes": each.digest_bytes,
    }


def _summary(results: Sequence[DigestedPartition], output: str, seconds: float) -> str:
    records = sum(each.records for each in results)
    size = sum(each.digest_bytes for each in results)
    return (
        f"{format_count(len(results), 'partition')}, {format_count(records, 'record')} "
        f"in {seconds:.1f} s: {size} bytes in {output}"
    )
