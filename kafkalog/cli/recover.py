"""`kafkalog recover`: find, and with `--apply` rebuild, indexes and producer snapshots. Also what
`jobs/rebuild_indexes.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence

from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.cli.runs import RunVerb, carry_out, planned_or_applied, run_options
from kafkalog.operations.recover import (
    RecoverExecutor,
    RecoverRun,
    look_run,
    recover_in_processes,
    recover_run,
)
from kafkalog.operations.recover_document import (
    is_well,
    recover_document,
    recover_statuses,
    recover_table,
)
from kafkalog.operations.run_steps import Tell
from kafkalog.repair.recover_result import RecoverResult, RecoverTask
from kafkalog.requests.run_request import run_request
from kafkalog.texts import format_count


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the work."""
    workers = args.workers or os.cpu_count() or 1

    def execute(tasks: Sequence[RecoverTask]) -> Iterable[RecoverResult]:
        sizes = {task.partition.path: task.partition.size_in_bytes for task in tasks}
        results = recover_in_processes(tasks, workers)
        return with_progress(results, sizes, lambda result: result.path, "recover")

    return run_with(args, execute, say_above)


def run_with(args: argparse.Namespace, execute: RecoverExecutor, tell: Tell = say) -> ExitCode:
    """The same with whatever turns tasks into results; see `runs.carry_out`. A dry run that found
    something to rebuild has a finding.
    """
    request = run_request(args.log_dir, run_options(args))
    run = planned_or_applied(
        args,
        plan=lambda: look_run(request, execute, tell),
        apply=lambda tell: recover_run(request, execute, tell),
    )
    verb = RunVerb(
        run=run,
        statuses=recover_statuses,
        document=recover_document,
        table=recover_table,
        summary=_summary,
        is_done=lambda status, _: is_well(status),
    )
    return carry_out(args, verb, tell)


def _summary(run: RecoverRun, seconds: float) -> str:
    count, files = len(run.results), sum(len(result.files) for result in run.results)
    read = sum(result.bytes_read for result in run.results)
    did = "rebuilt" if run.applied else "to rebuild; nothing was changed (--apply does)"
    return (
        f"{format_count(count, 'partition')}, {read} bytes checked in {seconds:.1f} s: "
        f"{format_count(files, 'file')} {did}"
    )
