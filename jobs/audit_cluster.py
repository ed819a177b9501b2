"""Members, leaders, placement and drift of clusters, on the driver alone: metadata is small.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/audit_cluster.py --log-dir DIR
"""

from __future__ import annotations

import sys

from kafkalog.cli.cluster import run_with
from kafkalog.job import run_driver_job

if __name__ == "__main__":
    sys.exit(run_driver_job("cluster", __file__, sys.argv[1:], run_with))
