"""Look at remote storage on Spark: what lies there against what the cluster says of it.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/audit_bucket.py DIR \\
    --remote-dir URI
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.bucket import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.audit_bucket import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Look with Spark tasks."""
    return run_with(args, spark_executor(spark, args.max_bytes_per_second), tell)


if __name__ == "__main__":
    sys.exit(run_job("bucket", __file__, sys.argv[1:], work))
