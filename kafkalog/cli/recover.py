"""`kafkalog recover`: find, and with `--apply` rebuild, indexes and producer snapshots. Also what
`jobs/rebuild_indexes.py` parses and prints.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence

from kafkalog.cleaner.rebuild_document import (
    is_well,
    rebuild_document,
    rebuild_statuses,
    rebuild_table,
)
from kafkalog.cleaner.rebuild_result import REFUSED, RebuildResult, RebuildTask
from kafkalog.cleaner.rebuild_run import (
    RebuildExecutor,
    RebuildRun,
    look_run,
    rebuild_in_processes,
    rebuild_run,
)
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.cli.runs import request_of


def run(args: argparse.Namespace) -> ExitCode:
    """The verb: worker processes of this machine do the work."""
    workers = args.workers or os.cpu_count() or 1

    def execute(tasks: Sequence[RebuildTask]) -> Iterable[RebuildResult]:
        return rebuild_in_processes(tasks, workers)

    return run_with(args, execute)


def run_with(
    args: argparse.Namespace, execute: RebuildExecutor, tell: Callable[[str], None] = say
) -> ExitCode:
    """Look, or look and rebuild, then print the run and choose the exit code; see `compact`."""
    started = time.monotonic()
    request = request_of(args)
    done = (rebuild_run if args.apply else look_run)(request, execute, tell)
    seconds = time.monotonic() - started
    if args.json:
        write_json(rebuild_document(done, seconds))
    else:
        rows = rebuild_table(done)
        if rows:
            write_table(list(rows[0]), rows)
        for note in done.notes:
            tell(note)
        tell(_summary(done, seconds))
    return exit_code(done, rebuild_statuses(done, request.topics))


def exit_code(run: RebuildRun, statuses: Sequence[str]) -> ExitCode:
    """DONE if all is as it should be now, UNSAFE if rules forbade all that was asked for, else
    FINDINGS: a dry run that found something to rebuild is one.
    """
    if not run.problems and all(map(is_well, statuses)):
        return ExitCode.DONE
    if run.applied and statuses and all(status == REFUSED for status in statuses):
        return ExitCode.UNSAFE
    return ExitCode.FINDINGS


def _summary(run: RebuildRun, seconds: float) -> str:
    count, files = len(run.results), sum(len(result.files) for result in run.results)
    read = sum(result.bytes_read for result in run.results)
    did = "rebuilt" if run.applied else "to rebuild; nothing was changed (--apply does)"
    return f"{count} partitions, {read} bytes checked in {seconds:.1f} s: {files} files {did}"
