"""The job as an operator starts it: spark-submit, JSON lines and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.support.log_builder import LogBuilder

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_spark_submit_prints_the_rows(log_dir: Path) -> None:
    LogBuilder(log_dir, "orders-0").batch(("a", "1"), ("b", None)).write()
    sql = "SELECT topic, count(*) AS records FROM record_offsets GROUP BY topic"
    done = submit("query_segments.py", str(log_dir), "--format", "json", "--sql", sql)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"topic": "orders", "records": 2}
