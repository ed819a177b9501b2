"""`kafkalog undo RUN`: put back what a run replaced. Also the frame of `kafkalog purge`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.held_runs import run_path
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.operations.earlier_run import NOTHING, UndoRun
from kafkalog.operations.run_steps import Tell
from kafkalog.operations.undo import undo_run
from kafkalog.planning.statuses import FAILED, REFUSED

COLUMNS = ("topic", "partition", "status", "files", "freedBytes", "reason", "path")


def run(args: argparse.Namespace) -> ExitCode:
    """DONE if all of the run is undone; UNSAFE if nothing is."""
    return carry_out(args, undo_run)


def carry_out(args: argparse.Namespace, work: Callable[[Path, str, Tell], UndoRun]) -> ExitCode:
    """Undo or purge the run that is named, print what became of its partitions."""
    if len(args.paths) != 1:
        raise UsageError(f"{args.verb} needs one RUN, as kafkalog runs lists them")
    done = work(run_path(args), args.paths[0], say)
    rows = [_row(done, number) for number in range(len(done.results))]
    if args.json:
        write_json(
            {
                "runId": done.run_id,
                "resolved": list(done.resolved),
                "problems": list(done.problems),
                "faults": list(done.faults),
                "partitions": rows,
            }
        )
    else:
        show_table(rows, COLUMNS, chosen=("topic", "partition", "status", "reason", "files"))
    for fault in done.faults:
        say(f"this is a fault of kafkalog, please report it: {fault}")
    if done.faults:
        return ExitCode.FAULT
    statuses = {result.status for result in done.results}
    if statuses and statuses <= {REFUSED, NOTHING}:
        return ExitCode.UNSAFE
    is_well = not done.problems and not statuses & {REFUSED, FAILED}
    return ExitCode.DONE if is_well else ExitCode.FINDINGS


def _row(done: UndoRun, number: int) -> dict[str, Any]:
    result = done.results[number]
    return {
        "topic": result.place.topic_partition.topic,
        "partition": result.place.topic_partition.partition,
        "status": result.status,
        "files": result.files,
        "freedBytes": result.freed_bytes,
        "reason": result.reason,
        "path": result.place.path,
    }
