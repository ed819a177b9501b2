"""Check segments, indexes and what lies beside them on Spark, work spread by segment bytes.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/check_segments.py --log-dir DIR
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.main import report_error
from kafkalog.cli.output import say, say_nothing
from kafkalog.cli.verify import run_with
from kafkalog.spark import configure_spark
from kafkalog.spark.verification import spark_executor


def main(argv: list[str]) -> int:
    """Arguments, session, one call, one summary line; the exit code of `kafkalog verify`."""
    try:
        args = parse_verb_arguments("verify", argv, prog="check_segments.py")
        spark = configure_spark(SparkSession.builder.appName("kafkalog verify")).getOrCreate()
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
