"""Check segments, indexes and what lies beside them on Spark, work spread by segment bytes.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/check_segments.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.verify import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.check_segments import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Check with Spark tasks."""
    return run_with(args, spark_executor(spark, tell), tell)


if __name__ == "__main__":
    sys.exit(run_job("verify", __file__, sys.argv[1:], work))
