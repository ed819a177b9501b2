"""`kafkalog runs`: every run, and what each still holds; with RUN what one of them did."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafkalog.cli.output import ExitCode, say, write_json
from kafkalog.cli.tables import show_table
from kafkalog.operations.run_history import held_runs
from kafkalog.runs.journal import read_events
from kafkalog.runs.run_dir import default_run_dir, open_run

COLUMNS = ("run", "kind", "started", "state", "partitions", "held", "heldBytes")


def run(args: argparse.Namespace) -> ExitCode:
    """Print the runs, or the journals of those that are named."""
    run_dir = run_path(args)
    if args.paths:
        found = [open_run(run_dir, run_id) for run_id in args.paths]
        write_json(
            {"runs": [{**run.facts, "events": list(read_events(run.path))} for run in found]}
        )
        return ExitCode.DONE
    runs, problems = held_runs(run_dir)
    if args.log_dir:
        wanted = {Path(log_dir).resolve() for log_dir in args.log_dir}
        runs = [held for held in runs if wanted & {Path(d).resolve() for d in held.log_dirs}]
    rows = [
        {
            "run": held.run_id,
            "kind": held.kind,
            "started": held.started,
            "state": "cut off" if held.finished is None else "finished",
            "partitions": held.partitions,
            "held": held.held_partitions,
            "heldBytes": held.held_bytes,
        }
        for held in runs
    ]
    if args.json:
        write_json({"runs": rows, "problems": problems})
    else:
        show_table(rows, COLUMNS)
    for problem in problems:
        say(problem)
    if not rows and not args.json:
        of = f" of {', '.join(args.log_dir)}" if args.log_dir else ""
        say(f"no runs{of} in {run_dir}")
    return ExitCode.FINDINGS if problems else ExitCode.DONE


def run_path(args: argparse.Namespace) -> Path:
    """The run dir that the arguments name."""
    return default_run_dir() if args.run_dir is None else Path(args.run_dir)
