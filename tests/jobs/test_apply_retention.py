"""The job as an operator starts it: spark-submit, settings file, exit code, one JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_spark_submit_deletes_and_prints_one_document(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for _ in range(3):
        log.segment().batch(("k", "v"), timestamp=START_MS)
    path = log.write()
    done = submit(
        "apply_retention.py",
        *("--log-dir", str(log_dir), "--topic", "orders", "--apply", "--json"),
        *("--config", "cleanup.policy=delete", "--config", "retention.ms=1"),
        *("--now", str(START_MS + 2)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    (partition,) = document["partitions"]
    assert (partition["status"], partition["deletedBaseOffsets"]) == ("deleted", [0, 1, 2])
    assert (partition["logStartOffset"], partition["rollOffset"]) == (3, 3)
    assert [file.name for file in path.glob("*.log")] == [f"{3:020d}.log"]
