"""Plan log compaction on Spark; with --apply carry it out, one task per partition.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/compact_topics.py --log-dir DIR
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.compact import run_with
from kafkalog.cli.main import report_error
from kafkalog.cli.output import say, say_nothing
from kafkalog.spark import configure_spark
from kafkalog.spark.compact import spark_executor


def main(argv: list[str]) -> int:
    """Arguments, session, one call, one summary line; the exit code of `kafkalog compact`."""
    try:
        args = parse_verb_arguments("compact", argv, prog="compact_topics.py")
        spark = configure_spark(SparkSession.builder.appName("kafkalog compact")).getOrCreate()
        try:
            # spark-submit merges a Python driver's stderr into its stdout: with --json nothing else
            # is said.
            return run_with(args, spark_executor(spark), say_nothing if args.json else say)
        finally:
            spark.stop()
    except Exception as error:
        return report_error(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
