"""Compare the replicas of partitions on Spark: what consumers get from each, and which is right.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/compare_replicas.py DIR DIR…
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.compare import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.compare_replicas import heal_executor, spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Compare and heal with Spark tasks."""
    return run_with(args, spark_executor(spark, tell), tell, heal_executor(spark))


if __name__ == "__main__":
    sys.exit(run_job("compare", __file__, sys.argv[1:], work))
