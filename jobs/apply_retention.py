"""Plan retention; with --apply delete what it allows. The driver does it all: a deletion is a few
renames, so no Spark session is started and the driver must see the log dirs.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/apply_retention.py --log-dir DIR
"""

from __future__ import annotations

import sys

from kafkalog.cli.retain import run
from kafkalog.job import run_driver_job

if __name__ == "__main__":
    sys.exit(run_driver_job("retain", __file__, sys.argv[1:], run))
