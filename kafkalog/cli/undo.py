"""`kafkalog undo RUN`: put back what a run replaced. Also the frame of `kafkalog purge`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkalog.bucket.deletion_run import KIND
from kafkalog.bucket.undo_deletions import undo_deletions
from kafkalog.cli.arguments import UsageError
from kafkalog.cli.held_runs import run_path
from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.earlier_run import NOTHING, UndoResult, UndoRun
from kafkalog.operations.run_history import Place
from kafkalog.operations.run_steps import Tell
from kafkalog.operations.undo import undo_run
from kafkalog.planning.statuses import FAILED, REFUSED
from kafkalog.runs.run_dir import open_run

COLUMNS = ("topic", "partition", "status", "files", "freedBytes", "reason", "path")


def run(args: argparse.Namespace) -> ExitCode:
    """DONE if all of the run is undone; UNSAFE if nothing is."""
    return carry_out(args, _undo)


def _undo(run_dir: Path, run_id: str, tell: Tell) -> UndoRun:
    """Of a run over log dirs, or over objects of remote storage."""
    if open_run(run_dir, run_id).facts.get("kind") != KIND:
        return undo_run(run_dir, run_id, tell)
    results = []
    for each in undo_deletions(run_dir, run_id):
        name = TopicPartition(each.topic, each.partition)
        place = Place(name, each.place, log_dir="")
        results.append(UndoResult(place, each.status, each.reason, each.objects_count))
        said = f"{each.objects_count} objects are back" if not each.reason else each.reason
        tell(f"{name}: {said}")
    return UndoRun(run_id, tuple(results))


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
