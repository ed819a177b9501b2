"""The job as an operator starts it: spark-submit, exit code, one JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.spark.test_check_segments import FOUND, PARTITIONS, write_many

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_spark_submit_checks_and_prints_one_document(log_dir: Path, tmp_path: Path) -> None:
    write_many(log_dir)
    done = submit(
        "check_segments.py", "--log-dir", str(log_dir), "--json", "--run-dir", str(tmp_path)
    )
    assert done.returncode == 1, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert len(document["partitions"]) == PARTITIONS
    found = {f["partition"]: f["id"] for f in document["findings"] if f["severity"] != "info"}
    assert found == FOUND
    assert (tmp_path / document["runId"] / "segments.jsonl").exists()
