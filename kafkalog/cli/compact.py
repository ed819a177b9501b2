"""`kafkalog compact`: plan log compaction; with `--apply` carry it out. Also what
`jobs/compact_topics.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence

from kafkalog.cleaner.clean import CleanRun
from kafkalog.cleaner.run import CompactionRun, Executor, apply_run, plan_run
from kafkalog.cleaner.run_document import partition_statuses, run_document, status_table
from kafkalog.cleaner.run_frame import CANNOT_BE_UNDONE
from kafkalog.cleaner.run_request import CompactionRequest
from kafkalog.cleaner.stats import DONE, CleanResult
from kafkalog.cleaner.worker_processes import clean_in_processes
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.cli.runs import exit_code_of, request_of
from kafkalog.planning.compaction_plan import CompactionPlan


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the work."""
    workers = args.workers or os.cpu_count() or 1

    def execute(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterable[CleanResult]:
        return clean_in_processes(plans, run, workers)

    return run_with(args, execute)


def run_with(
    args: argparse.Namespace, execute: Executor, tell: Callable[[str], None] = say
) -> ExitCode:
    """Plan, or plan and carry out with `execute`, then print the run and choose the exit code.

    What is said on the way goes to `tell`. A job under spark-submit has one stream for both, stdout
    and stderr: with `--json` it says nothing.
    """
    started = time.monotonic()
    request = request_of(args)
    if args.apply:
        tell(CANNOT_BE_UNDONE)
        done = apply_run(request, execute, tell)
    else:
        done = plan_run(request)
        for problem in done.problems:
            tell(problem)
    seconds = time.monotonic() - started
    if args.json:
        write_json(run_document(done, seconds))
    else:
        rows = status_table(done)
        if rows:
            write_table(list(rows[0]), rows)
        for note in done.notes:
            tell(note)
        tell(_summary(done, seconds))
    return exit_code(done, request)


def exit_code(run: CompactionRun, request: CompactionRequest) -> ExitCode:
    """DONE if every partition is planned or done, UNSAFE if rules forbade all that was asked for,
    else FINDINGS.
    """
    return exit_code_of(run, partition_statuses(run, request.topics))


def _summary(run: CompactionRun, seconds: float) -> str:
    if not run.applied:
        planned = f"{len(run.plans)} partitions planned in {seconds:.1f} s"
        return f"{planned}; nothing was changed (--apply does)"
    done = [result for result in run.results if result.status == DONE]
    before = sum(result.stats.bytes_before for result in done)
    after = sum(result.stats.bytes_after for result in done)
    return (
        f"{len(done)} of {len(run.plans)} partitions compacted in {seconds:.1f} s: "
        f"{before} bytes to {after} (run {run.run_id})"
    )
