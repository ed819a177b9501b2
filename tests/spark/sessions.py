"""A Spark session of its own, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_session(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE WORDS…`, from the project's folder."""
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
