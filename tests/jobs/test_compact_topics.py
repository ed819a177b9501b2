"""The job as an operator starts it: spark-submit, settings file, exit code, one JSON document on
stdout and a line for each partition on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark


def test_spark_submit_compacts_and_prints_one_document(log_dir: Path) -> None:
    builder = LogBuilder(log_dir, "orders-0")
    builder.segment().batch(("a", "1"), ("b", "1"), ("a", "2"))
    builder.segment().batch(("b", "2")).segment().batch(("c", "1"))
    builder.write()
    done = submit(
        "compact_topics.py",
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
    assert f"kafkalog undo {document['runId']}" in document["notes"][0]
    assert "orders-0: 4 records to 2" in done.stderr
