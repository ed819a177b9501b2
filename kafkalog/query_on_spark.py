"""`kafkalog sql --engine spark` and `jobs/query_segments.py`: SQL over all views of a log, in a
Spark session of its own, for clusters and for disks that only executors see.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say, write_bytes
from kafkalog.cli.sql import check_arguments, given_statements, source_options
from kafkalog.cli.sql_output import TABLE_ROWS, ShownRows, write_csv, write_shown
from kafkalog.errors import KafkaLogError
from kafkalog.job import Tell, in_session
from kafkalog.spark import create_topic_views, create_views, zookeeper_views
from kafkalog.spark.releases import arrow_from_spark, quiet_query_errors

_CHUNK_ROWS = 1000


def run_on_spark(args: argparse.Namespace) -> int:
    """The verb: a local session, whose own log stays quiet, and the queries."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise UsageError(
            "--engine spark needs Java 17: install it, or set JAVA_HOME; --engine duckdb needs none"
        )
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
    check_arguments(args)
    quiet_query_errors()
    names: list[str] = []
    if args.paths:
        names += create_views(spark, args.paths, **source_options(args))
    if args.paths and args.decode:
        names += create_topic_views(spark, args.paths, mode=args.mode, now_ms=args.now, decode=True)
    if args.zookeeper_dir:
        names += zookeeper_views(spark, args.zookeeper_dir, zk_root=args.zk_root, mode="PERMISSIVE")
    queries = given_statements(args)
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
    elif args.format == "csv":
        schema = arrow_from_spark(found.schema)
        write_csv(pa.RecordBatchReader.from_batches(schema, _batches(found, schema)))
    else:
        rows = found.limit(TABLE_ROWS + 1).collect()
        write_shown(ShownRows(found.columns, [tuple(row) for row in rows]), tell)


def _batches(found: DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = found.toLocalIterator()
    while chunk := list(islice(rows, _CHUNK_ROWS)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
