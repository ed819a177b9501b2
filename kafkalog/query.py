"""`kafkalog sql DIR…`: SQL over all views of a log, on DuckDB in this process, or on Spark.

Above the command line and Spark, as `job` is: with `--engine spark` it is the one verb that needs a
JVM.
"""

from __future__ import annotations

import argparse

from kafkalog.cli.sql import check_arguments, run_on_duckdb


def run(args: argparse.Namespace) -> int:
    """The verb on the engine that was chosen."""
    check_arguments(args)
    if args.engine == "duckdb":
        return run_on_duckdb(args)
    from kafkalog.query_on_spark import run_on_spark

    return run_on_spark(args)
