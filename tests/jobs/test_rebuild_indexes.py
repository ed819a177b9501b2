"""The job as an operator starts it: spark-submit, settings file, exit code, one JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs.submit import submit
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark


@pytest.mark.thorough
def test_spark_submit_rebuilds_and_prints_one_document(log_dir: Path) -> None:
    right = {}
    for name in ("orders-0", "orders-1"):
        log = LogBuilder(log_dir, name, index_interval_bytes=50)
        for key in "abc":
            log.segment().batch((key, "v"), timestamp=START_MS).batch((key, "w" * 60))
        path = log.write()
        right |= {p: p.read_bytes() for p in path.iterdir() if p.suffix in (".index", ".timeindex")}
    for path in right:
        path.unlink()
    done = submit(
        "rebuild_indexes.py",
        *("--log-dir", str(log_dir), "--topic", "orders", "--apply", "--json"),
        *("--config", "index.interval.bytes=50", "--now", str(START_MS)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    partitions = json.loads(done.stdout)["partitions"]
    assert [partition["status"] for partition in partitions] == ["rebuilt", "rebuilt"]
    assert {path: path.read_bytes() for path in right} == right
