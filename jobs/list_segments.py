"""List the segments below log dirs on Spark: `kafkalog segments` for disks that only executors see.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/list_segments.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import date_format

from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.segments import CHOSEN
from kafkalog.cli.tables import show_table
from kafkalog.errors import InvalidConfigError
from kafkalog.job import Tell, run_job
from kafkalog.spark import list_segments


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Print the segments, those with an error make it FINDINGS."""
    # Both are of the machine that asks, and its `kafkalog segments` takes them.
    for name, value in (("run-dir", args.run_dir), ("remote-dir", args.remote_dir)):
        if value:
            raise InvalidConfigError(f"--{name} is not for segments that executors list")
    found = list_segments(spark, args.log_dir, args.topic, args.topic_partition)
    time = date_format("modificationTime", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    rows = [row.asDict() for row in found.withColumn("modificationTime", time).collect()]
    if args.json:
        write_json({"segments": rows, "problems": []})
    else:
        show_table(rows, found.columns, chosen=CHOSEN, tell=tell)
    bad = sum(row["error"] is not None for row in rows)
    tell(f"{len(rows)} segments, {bad} with errors")
    return ExitCode.FINDINGS if bad else ExitCode.DONE


if __name__ == "__main__":
    sys.exit(run_job("segments", __file__, sys.argv[1:], work))
