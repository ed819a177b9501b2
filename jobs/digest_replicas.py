"""Digest the replicas of a host on Spark, for `compare` where hosts share no disk.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/digest_replicas.py DIR \\
    --output F --hash-key FILE
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.digest import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.digest_replicas import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Digest with Spark tasks."""
    return run_with(args, spark_executor(spark), tell)


if __name__ == "__main__":
    sys.exit(run_job("digest", __file__, sys.argv[1:], work))
