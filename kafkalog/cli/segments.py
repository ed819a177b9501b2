"""`kafkalog segments`: every segment below the log dirs, in the columns of the view `segments`."""

from __future__ import annotations

import argparse
from typing import Any

from kafkalog.cli.arguments import select_partitions
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.columns.schemas import view_columns
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.log_views import read_segments, segment_tasks
from kafkalog.reading.request import ReadRequest

# Columns that say the same in nearly every row: left out of the table where they do.
_USUAL = {"kind": "live", "error": None}


def run(args: argparse.Namespace) -> ExitCode:
    """Print the segments; FINDINGS if something could not be read as a broker would."""
    inventory = open_log_dir(*args.log_dir)
    partitions = select_partitions(inventory, args)
    request = ReadRequest.of(view_columns("segments"))
    rows: list[dict[str, Any]] = []
    for batch in read_segments(segment_tasks(partitions), request):
        rows.extend(batch.to_pylist())
    problems = list(inventory.problems)
    for partition in partitions:
        said = (problem for problem in partition.problems if problem not in problems)
        problems.extend(f"{partition.path}: {problem}" for problem in said)
    if args.json:
        write_json({"segments": rows, "problems": problems})
    else:
        write_table(_table_columns(request.names, rows), rows)
        for problem in problems:
            say(problem)
    has_findings = bool(problems) or any(row["error"] is not None for row in rows)
    return ExitCode.FINDINGS if has_findings else ExitCode.DONE


def _table_columns(names: list[str], rows: list[dict[str, Any]]) -> list[str]:
    return [
        name
        for name in names
        if name not in _USUAL or any(row[name] != _USUAL[name] for row in rows)
    ]
