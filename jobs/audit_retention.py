"""Findings per partition, what-if, report: many log dirs, partitions packed over tasks.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/audit_retention.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.audit import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.audit_retention import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Audit with Spark tasks."""
    return run_with(args, spark_executor(spark, tell), tell)


if __name__ == "__main__":
    sys.exit(run_job("audit", __file__, sys.argv[1:], work))
