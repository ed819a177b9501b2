"""The job as an operator starts it: spark-submit, settings file, exit code, one JSON document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    conf = ROOT / "spark_conf" / "spark-defaults.conf"
    return subprocess.run(
        [
            *(str(SPARK_SUBMIT), "--master", "local[2]", "--properties-file", str(conf)),
            *("--conf", "spark.ui.enabled=false", str(ROOT / "jobs" / "compact_topics.py")),
            *arguments,
        ],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_spark_submit_compacts_and_prints_one_document(log_dir: Path) -> None:
    builder = LogBuilder(log_dir, "orders-0")
    builder.segment().batch(("a", "1"), ("b", "1"), ("a", "2"))
    builder.segment().batch(("b", "2")).segment().batch(("c", "1"))
    builder.write()
    done = submit(
        *("--log-dir", str(log_dir), "--topic", "orders", "--apply", "--json"),
        *("--config", "cleanup.policy=compact"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    (partition,) = document["partitions"]
    assert document["applied"]
    assert partition["status"] == "compacted"
    assert (partition["recordsRead"], partition["recordsRetained"]) == (4, 2)
    assert partition["removed"]["superseded"] == 2
    assert "cannot be undone" in document["notes"][0]
