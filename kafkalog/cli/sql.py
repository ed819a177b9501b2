"""`kafkalog sql DIR…` on embedded DuckDB: statements of `--sql` or standard input, or a prompt."""

from __future__ import annotations

import argparse
import glob
import os
import signal
import sys

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, finish_output, say
from kafkalog.cli.scan_progress import ScanProgress
from kafkalog.cli.sql_output import first_rows, write_all, write_shown
from kafkalog.cli.statements import split_statements
from kafkalog.duckdb.connection import MEMORY_LIMIT, usable_cores
from kafkalog.duckdb.session import SqlSession
from kafkalog.duckdb.tables import LogTables
from kafkalog.errors import KafkaLogError
from kafkalog.remote.stores import local_path
from kafkalog.runs.run_dir import default_run_dir


def check_arguments(args: argparse.Namespace) -> None:
    """UsageError for what contradicts itself, whatever engine it is for."""
    if not args.paths and not args.zookeeper_dir:
        raise UsageError("sql needs a log dir, a partition directory or a .log file")
    for path in args.paths:
        # Told now, not by the first statement that reads: a prompt may be far from that.
        if path and "://" not in path and not _is_there(local_path(path)):
            if len(path.split()) > 1:
                raise UsageError(
                    f"{path!r} is not there; if it is a statement: --sql in front of it"
                )
            raise UsageError(f"{path}: no such file or directory")
    if args.zk_root is not None and not args.zookeeper_dir:
        raise UsageError("--zk-root is for --zookeeper-dir")
    if args.format == "parquet" and args.output is None:
        raise UsageError("--format parquet needs --output DIR")
    if args.format != "parquet" and args.output is not None:
        raise UsageError("--output is for --format parquet; redirect the others")
    if args.engine == "spark" and args.memory is not None:
        raise UsageError("--memory is for --engine duckdb; Spark has spark.driver.memory")


def _is_there(path: str) -> bool:
    return os.path.lexists(path) or bool(glob.glob(path))  # noqa: PTH207 - it may be absolute


def given_statements(args: argparse.Namespace) -> list[str]:
    """Those of `--sql`, or of standard input where it is no terminal."""
    text = args.sql if args.sql is not None else "" if sys.stdin.isatty() else sys.stdin.read()
    return list(split_statements(text))


def run_on_duckdb(args: argparse.Namespace) -> int:
    """The statements one after the other, of which the first that fails ends it; or a prompt."""
    progress = ScanProgress()
    log = _log(args, progress)
    if args.sql is None and sys.stdin.isatty() and sys.stdout.isatty():
        return _prompt(log, args, progress)
    statements = given_statements(args)
    if not statements:
        say("views: " + ", ".join(log.names()))
    with SqlSession(log, memory_limit=args.memory or MEMORY_LIMIT) as session:
        for statement in statements:
            _answer(session, statement, args, progress)
    return ExitCode.DONE


def _answer(
    session: SqlSession, statement: str, args: argparse.Namespace, progress: ScanProgress
) -> None:
    try:
        found = session.run(statement)
        if found is not None and args.format == "table":
            shown = first_rows(found)
            progress.end()
            write_shown(shown, say)
        elif found is not None:
            write_all(found, args.format, args.output, say)
    finally:
        progress.end()


def _prompt(log: LogTables, args: argparse.Namespace, progress: ScanProgress) -> int:
    """What is wrong with a statement, or with a log, ends that statement and not the prompt."""
    from kafkalog.cli.sql_prompt import prompted_statements

    # Whoever started us in a shell's background, or by a script, may have told us to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    say("Statements end with a semicolon; Tab completes, Ctrl-C interrupts, Ctrl-D leaves.")
    say("views: " + ", ".join(log.names()))
    history_file = default_run_dir().parent / "sql_history"
    with SqlSession(log, memory_limit=args.memory or MEMORY_LIMIT) as session:
        for statement in prompted_statements(lambda: session.schemas, history_file):
            try:
                _answer(session, statement, args, progress)
                finish_output()
            except KeyboardInterrupt:
                say("interrupted")
            except (KafkaLogError, UsageError, OSError) as error:
                say(str(error))
    return ExitCode.DONE


def source_options(args: argparse.Namespace) -> dict[str, str]:
    """The arguments that are options of the data source, as far as they are given."""
    given = {
        "keyFilterDir": args.key_filter_dir or "",
        "maxBatchBytes": str(args.max_batch_bytes),
        "mode": args.mode,
        "now": "" if args.now is None else str(args.now),
        "replicas": args.replicas or "",
        "remoteDir": ",".join(args.remote_dir),
        "remoteLayout": args.remote_layout or "",
        "remoteKey": ",".join(f"{key_id}={file}" for key_id, file in args.remote_key),
    }
    return {name: text for name, text in given.items() if text}


def _log(args: argparse.Namespace, progress: ScanProgress) -> LogTables:
    log = LogTables(
        paths=tuple(args.paths),
        options=source_options(args),
        threads=usable_cores(),
        zookeeper_dir=tuple(args.zookeeper_dir),
        zk_root=args.zk_root,
        # Rows that go to the terminal at once would stand between the line's own states.
        progress=None if args.format in ("json", "csv") and sys.stdout.isatty() else progress,
    )
    return log.with_topics() if args.decode else log
