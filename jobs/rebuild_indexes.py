"""Find indexes and producer snapshots that are not right, on Spark; with --apply rebuild them. One
task per partition.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/rebuild_indexes.py --log-dir DIR
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.main import report_error
from kafkalog.cli.output import say, say_nothing
from kafkalog.cli.recover import run_with
from kafkalog.spark import configure_spark
from kafkalog.spark.recovery import spark_rebuild_executor


def main(argv: list[str]) -> int:
    """Arguments, session, one call, one summary line; the exit code of `kafkalog recover`."""
    try:
        args = parse_verb_arguments("recover", argv, prog="rebuild_indexes.py")
        spark = configure_spark(SparkSession.builder.appName("kafkalog recover")).getOrCreate()
        try:
            # spark-submit merges a Python driver's stderr into its stdout: with --json nothing else
            # is said.
            return run_with(args, spark_rebuild_executor(spark), say_nothing if args.json else say)
        finally:
            spark.stop()
    except Exception as error:
        return report_error(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
