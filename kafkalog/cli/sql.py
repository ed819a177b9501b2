"""`kafkalog sql DIR…` on embedded DuckDB: statements of `--sql` or standard input, or a prompt."""

from __future__ import annotations

import argparse
import sys

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say
from kafkalog.cli.sql_output import write_result
from kafkalog.cli.statements import split_statements
from kafkalog.duckdb.connection import usable_cores
from kafkalog.duckdb.session import SqlSession
from kafkalog.duckdb.tables import LogTables


def check_arguments(args: argparse.Namespace) -> None:
    """UsageError for what contradicts itself, whatever engine it is for."""
    if not args.paths and not args.zookeeper_dir:
        raise UsageError("sql needs a log dir, a partition directory or a .log file")
    if args.zk_root is not None and not args.zookeeper_dir:
        raise UsageError("--zk-root is for --zookeeper-dir")
    if args.format == "parquet" and args.output is None:
        raise UsageError("--format parquet needs --output DIR")
    if args.format != "parquet" and args.output is not None:
        raise UsageError("--output is for --format parquet; redirect the others")


def given_statements(args: argparse.Namespace) -> list[str]:
    """Those of `--sql`, or of standard input where it is no terminal."""
    text = args.sql if args.sql is not None else "" if sys.stdin.isatty() else sys.stdin.read()
    return list(split_statements(text))


def run_on_duckdb(args: argparse.Namespace) -> int:
    """The statements one after the other; the first that fails ends it."""
    log = _log(args)
    statements = given_statements(args)
    if not statements:
        say("views: " + ", ".join(log.names()))
        return ExitCode.DONE
    with SqlSession(log, for_text="\n".join(statements)) as session:
        for statement in statements:
            found = session.run(statement)
            if found is not None:
                write_result(found, args.format, args.output, say)
    return ExitCode.DONE


def _log(args: argparse.Namespace) -> LogTables:
    replicas = {} if args.replicas is None else {"replicas": args.replicas}
    return LogTables(
        paths=tuple(args.paths),
        options={"maxBatchBytes": str(args.max_batch_bytes), **replicas},
        threads=usable_cores(),
        zookeeper_dir=tuple(args.zookeeper_dir),
        zk_root=args.zk_root,
    )
