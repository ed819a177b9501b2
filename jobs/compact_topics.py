"""Plan log compaction on Spark; with --apply carry it out, one task per partition.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/compact_topics.py --log-dir DIR
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.compact import run_with
from kafkalog.job import Tell, run_job
from kafkalog.spark.compact_topics import spark_executor
from kafkalog.spark.tasks import usual_tasks


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Clean with Spark tasks."""
    workers = usual_tasks(spark)
    return run_with(args, spark_executor(spark), tell, workers=workers, on_spark=True)


if __name__ == "__main__":
    sys.exit(run_job("compact", __file__, sys.argv[1:], work))
