"""The job as an operator starts it: spark-submit, JSON lines and nothing else on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.support.log_builder import LogBuilder

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_spark_submit_prints_the_rows_and_says_what_is_missing(log_dir: Path) -> None:
    """What was passed over when a query was planned is said once, by the process that plans."""
    log = LogBuilder(log_dir, "orders-0")
    for value in ("1", "2", "3"):
        log.segment().batch(("a", value), ("b", None))
    (log.write() / f"{2:020}.log").unlink()
    sql = "SELECT topic, count(*) AS records FROM record_offsets GROUP BY topic"
    arguments = (str(log_dir), "--format", "json", "--mode", "DROPMALFORMED", "--sql", sql)
    done = submit("query_segments.py", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"topic": "orders", "records": 4}
    assert done.stderr.count("offsets 2 to 3 are not here") == 1
