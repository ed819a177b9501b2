"""`kafkalog compact`: plan log compaction; with `--apply` carry it out. Also what
`jobs/compact_topics.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.cli.runs import RunVerb, carry_out, planned_or_applied, run_options
from kafkalog.operations.clean_result import COMPACTED, WRITTEN, CleanResult, place_of
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import CompactionRun, Executor, apply_run, plan_run
from kafkalog.operations.compact_document import partition_statuses, run_document, status_table
from kafkalog.operations.compact_output import output_run
from kafkalog.operations.run_steps import Tell
from kafkalog.operations.worker_processes import clean_in_processes
from kafkalog.planning.compaction_plan import CLEAN, CompactionPlan
from kafkalog.planning.statuses import LEFT
from kafkalog.requests.run_request import CompactionOptions, compaction_request
from kafkalog.swap.swap_script import SCRIPT_FILE
from kafkalog.texts import format_bytes, format_count

# Measured: worker processes cost about what 32 MiB take, and a partition what 2 MiB take.
_SHORT_BYTES = 32 * 1024 * 1024
_BYTES_A_PARTITION = 2 * 1024 * 1024


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the work."""
    workers = args.workers or os.cpu_count() or 1

    def execute(plans: Sequence[CompactionPlan], run: CleanRun) -> Iterable[CleanResult]:
        sizes = {(plan.log_dir, str(plan.topic_partition)): plan.source_bytes for plan in plans}
        own = 1 if args.workers is None and _is_short(plans) else workers
        results = clean_in_processes(plans, run, own)
        # read twice, written, and read back: what stays of it is not known before
        return with_progress(results, sizes, place_of, "compact", passes=3)

    return run_with(args, execute, say_above, workers=workers)


def _is_short(plans: Sequence[CompactionPlan]) -> bool:
    """Is the work done before a second process would have begun?"""
    source_bytes = sum(plan.source_bytes for plan in plans)
    return source_bytes + len(plans) * _BYTES_A_PARTITION < _SHORT_BYTES


def run_with(
    args: argparse.Namespace,
    execute: Executor,
    tell: Tell = say,
    *,
    workers: int,
    on_spark: bool = False,
) -> ExitCode:
    """The same with whatever turns plans into results, so many of them at once; see
    `runs.carry_out`.
    """
    options: CompactionOptions = {
        **run_options(args),
        "dedupe_buffer_size": args.dedupe_buffer_size,
        "max_bytes": args.max_bytes,
        "max_minutes": args.max_minutes,
        "swap_per_group": args.swap_per_group,
        "memory": args.memory,
        "strategy": args.strategy,
        "output": args.output,
        "max_bytes_per_second": args.max_bytes_per_second,
        "verify": args.verify,
        "on_corrupt_batch": args.on_corrupt_batch,
        "estimate": args.estimate,
        "replicas": args.replicas,
        "require_replicas": args.require_replicas,
    }
    request = replace(compaction_request(args.log_dir, options), workers=workers, on_spark=on_spark)
    if args.apply and args.output is not None:
        raise UsageError("--output writes beside the log dirs, --apply into them: one of them")
    run = planned_or_applied(
        args,
        plan=lambda: plan_run(request),
        apply=lambda tell: apply_run(request, execute, tell),
    )
    verb = RunVerb(
        run=run if args.output is None else lambda tell: output_run(request, execute, tell),
        statuses=partition_statuses,
        document=run_document,
        table=status_table,
        summary=lambda run, seconds: _summary(run, seconds, looked=args.estimate),
    )
    return carry_out(args, verb, tell)


def _summary(run: CompactionRun, seconds: float, *, looked: bool) -> str:
    left = sum(plan.status == LEFT for plan in run.plans)
    left += sum(result.status == LEFT for result in run.results)
    beyond = f", {left} left for the next run" if left else ""
    if not run.is_carried_out:
        planned = f"{format_count(len(run.plans), 'partition')} planned in {seconds:.1f} s{beyond}"
        is_unread = not looked and any(plan.status == CLEAN for plan in run.plans)
        unread = "; records were not looked at: one without a key, or that cannot be read, would "
        unread += "be refused (--estimate looks)"
        takes = f", {run.estimate.explain()}" if run.estimate is not None else ""
        return f"{planned}; nothing was changed (--apply does{takes}){unread if is_unread else ''}"
    expected = f" (estimated {run.estimate.seconds:.1f} s)" if run.estimate is not None else ""
    done = [result for result in run.results if result.status in (COMPACTED, WRITTEN)]
    before = sum(result.stats.bytes_before for result in done)
    after = sum(result.stats.bytes_after for result in done)
    if run.output is not None:
        return (
            f"{len(done)} of {len(run.plans)} partitions written to {run.output} in {seconds:.1f} s"
            f"{expected}{beyond}: {before} bytes to {after}; nothing was changed, "
            f"{run.output}/{SCRIPT_FILE} swaps them in (run {run.run_id})"
        )
    count = (
        f"{len(done)} of {len(run.plans)} partitions compacted in {seconds:.1f} s{expected}{beyond}"
    )
    if not done:
        return f"{count} (run {run.run_id})"
    return (
        f"{count}: {before} bytes to {after}, "
        f"{format_bytes(int(before / max(seconds, 1e-3)))} a second (run {run.run_id})"
    )
