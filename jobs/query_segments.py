"""SQL over all views of a log on a cluster: `kafkalog sql` for disks that only executors see.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/query_segments.py DIR --sql "…"
"""

from __future__ import annotations

import sys

from kafkalog.job import run_job
from kafkalog.query_on_spark import work

if __name__ == "__main__":
    sys.exit(run_job("sql", __file__, sys.argv[1:], work))
