"""Find indexes and producer snapshots that are not right, on Spark; with --apply rebuild them. One
task per partition.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/rebuild_indexes.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.recover import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.recover import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Rebuild with Spark tasks."""
    return run_with(args, spark_executor(spark), tell)


if __name__ == "__main__":
    sys.exit(run_job("recover", __file__, sys.argv[1:], work))
