"""List the segments below log dirs on Spark: `kafkalog segments` for disks that only executors see.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/list_segments.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import date_format

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.main import report_error
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.spark import configure_spark, list_segments


def main(argv: list[str]) -> int:
    """Arguments, session, one call, one summary line; the exit code of `kafkalog segments`."""
    try:
        args = parse_verb_arguments("segments", argv, prog="list_segments.py")
        spark = configure_spark(SparkSession.builder.appName("kafkalog segments")).getOrCreate()
        try:
            return run(spark, args)
        finally:
            spark.stop()
    except Exception as error:
        return report_error(error)


def run(spark: SparkSession, args: argparse.Namespace) -> ExitCode:
    """Print the segments, those with an error make it FINDINGS."""
    found = list_segments(spark, args.log_dir, args.topic, args.topic_partition)
    time = date_format("modificationTime", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    rows = [row.asDict() for row in found.withColumn("modificationTime", time).collect()]
    if args.json:
        write_json({"segments": rows, "problems": []})
    else:
        write_table(found.columns, rows)
    bad = sum(row["error"] is not None for row in rows)
    say(f"{len(rows)} segments, {bad} with errors")
    return ExitCode.FINDINGS if bad else ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
