"""`kafkalog sql DIR…` and `jobs/query_segments.py`: SQL over all views of a log, in a Spark session
of its own.

Above the command line and Spark, as `job` is: the one verb that needs a JVM.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say, write_bytes, write_table
from kafkalog.cli.statements import split_statements
from kafkalog.errors import KafkaLogError
from kafkalog.job import Tell, in_session
from kafkalog.spark import create_views, zookeeper_views

# More rows than anybody reads are a mistake as a table; the other formats give all.
TABLE_ROWS = 1000


def run(args: argparse.Namespace) -> int:
    """The verb: a local session, whose own log stays quiet, and the queries."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise UsageError("sql starts Spark, which needs Java 17: install it, or set JAVA_HOME")
    # For a broker's host: no port to the outside, nothing on the console but errors.
    settings = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "8",
        "spark.log.level": "ERROR",
    }
    return in_session("sql", args, say, work, settings)


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Run the queries of `--sql`, or of standard input, over the views of the paths."""
    if not args.paths and not args.zookeeper_dir:
        raise UsageError("sql needs a log dir, a partition directory or a .log file")
    if args.zk_root is not None and not args.zookeeper_dir:
        raise UsageError("--zk-root is for --zookeeper-dir")
    if args.format == "parquet" and args.output is None:
        raise UsageError("--format parquet needs --output DIR")
    if args.format != "parquet" and args.output is not None:
        raise UsageError("--output is for --format parquet; redirect the others")
    names: list[str] = []
    if args.paths:
        replicas = {} if args.replicas is None else {"replicas": args.replicas}
        limit = str(args.max_batch_bytes)
        names += create_views(spark, args.paths, maxBatchBytes=limit, **replicas)
    if args.zookeeper_dir:
        names += zookeeper_views(spark, args.zookeeper_dir, zk_root=args.zk_root, mode="PERMISSIVE")
    queries = list(_queries(args))
    if not queries:
        tell("views: " + ", ".join(names))
    for query in queries:
        try:
            _write(spark.sql(query), args, tell)
        except AnalysisException as error:
            raise UsageError(_own_words(error)) from None
        except PySparkException as error:
            raise KafkaLogError(_own_words(error)) from None
    return ExitCode.DONE


def _own_words(error: PySparkException) -> str:
    """What our reader said, out of the traceback that Spark makes of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("kafkalog.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]


def _queries(args: argparse.Namespace) -> Iterator[str]:
    text = args.sql if args.sql is not None else "" if sys.stdin.isatty() else sys.stdin.read()
    return split_statements(text)


def _write(found: DataFrame, args: argparse.Namespace, tell: Tell) -> None:
    if not found.columns:
        return  # a statement that gives no rows: CREATE VIEW, SET …
    if args.format == "parquet":
        found.write.parquet(args.output)
        tell(f"written to {args.output}")
    elif args.format == "json":
        document = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        for row in found.select(document).toLocalIterator():
            write_bytes(row[0].encode() + b"\n")
    else:
        rows = found.limit(TABLE_ROWS + 1).collect()
        shown = [
            dict(zip(found.columns, map(_cell, row), strict=True)) for row in rows[:TABLE_ROWS]
        ]
        write_table(found.columns, shown)
        if len(rows) > TABLE_ROWS:
            tell(f"the first {TABLE_ROWS} rows; --format json and parquet give all")


def _cell(value: Any) -> Any:
    """Bytes as text where they are, else in hex; a line break would break the table."""
    if isinstance(value, bytes | bytearray):
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            return "0x" + bytes(value).hex()
        return text if text.isprintable() else "0x" + bytes(value).hex()
    if isinstance(value, str):
        return value if value.isprintable() else repr(value)[1:-1]
    return value
