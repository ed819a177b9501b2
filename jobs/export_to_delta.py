"""Bring a Delta table up to the log: append its records, or merge the latest of each key.

spark-submit --properties-file spark_conf/packages.conf jobs/export_to_delta.py --log-dir DIR \
  --topic orders --table /lake/orders
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import SparkSession

from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.tables import show_table
from kafkalog.job import Tell, run_job
from kafkalog.spark import export_to_delta
from kafkalog.spark.views import assigning


def work(spark: SparkSession, args: argparse.Namespace, tell: Tell) -> int:
    """Export, and print how far the table has each partition."""
    options = assigning(args.log_dir, args.topic, args.topic_partition) | dict(args.option)
    done = export_to_delta(spark, args.log_dir, args.table, mode=args.mode, **options)
    if args.json:
        write_json(done.to_json())
    else:
        rows = [
            {"topic": topic, "partition": partition, "nextOffset": offset}
            for topic, partitions in done.next_offsets.items()
            for partition, offset in partitions.items()
        ]
        show_table(rows, ["topic", "partition", "nextOffset"], tell=tell)
    version = "nothing new" if done.version is None else f"version {done.version}"
    tell(f"{done.rows} rows, {version} of {done.table}")
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(run_job("export", __file__, sys.argv[1:], work))
