"""Topics back from segments on Spark, offsets as they were; and, by the driver alone, the metadata
of a lost quorum, or of a fresh cluster over a bucket. With --apply driver and tasks see source and
target under the same paths.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/restore_topics.py SOURCE \\
    --into LOGDIR --topic NAME --apply
spark-submit … jobs/restore_topics.py attach LOGDIR… --in-place
spark-submit … jobs/restore_topics.py attach BUCKET --into LOGDIR --topic NAME --apply
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli import attach
from kafkalog.cli.restore import run_with
from kafkalog.job import Tell, run_driver_job, run_job
from kafkalog.spark.restore_topics import spark_executor


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Restore with Spark tasks."""
    return run_with(args, tell, spark_executor(spark))


if __name__ == "__main__":
    if sys.argv[1:2] == ["attach"]:
        sys.exit(run_driver_job("attach", __file__, sys.argv[2:], attach.run))
    sys.exit(run_job("restore", __file__, sys.argv[1:], work))
