"""spark-submit as an operator calls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[2]
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def submit(
    job: str, *arguments: str, timeout_seconds: int = 900
) -> subprocess.CompletedProcess[str]:
    """The job of `jobs/` on two local cores, with the project's settings file."""
    conf = ROOT / "spark_conf" / "spark-defaults.conf"
    return subprocess.run(
        [
            *(str(SPARK_SUBMIT), "--master", "local[2]", "--properties-file", str(conf)),
            *("--conf", "spark.ui.enabled=false", str(ROOT / "jobs" / job)),
            *arguments,
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
