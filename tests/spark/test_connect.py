"""The functions of `kafkalog.spark` in a Spark Connect session give what they give in a classic
one: its own process, because a process has one kind of session.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.spark.sessions import run_session
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark

FEW = {
    "records": [0, 1, 2, 3],
    "decoded": list(range(12)),
    "scan": 12,
    "compacted": ["compacted"],
    "left": [8, 9, 10, 11],
    "module": "pyspark.sql.connect.session",
}
OTHERS = {
    "batches": 3,
    "segments": 3,
    "partitions": 2,
    "latest": [9, 10, 11],
    "gaps": [],
    "keys": 4,
    "views": True,
    "sql": 14,
    "exports": [12, 0, 3],
    "table": list(range(12)),
    "bars": 2,
    "points": 2,
    "findings": 1,  # a log dir without the cluster's metadata
    "topics": 11,
    "deleted": [1],  # segments, by a plan
    "streamed": 14,
}


def answers(log_dir: Path, how_many: str) -> dict[str, Any]:
    """Of a log with 12 records of 3 keys in two segments, and another topic with two."""
    logs = log_dir / "logs"
    log = LogBuilder(logs, "orders-0")
    log.segment().batch(*((f"k{n % 3}", f'{{"n": {n}}}') for n in range(11)))
    log.segment().batch(("k2", '{"n": 11}')).write()
    LogBuilder(logs, "other-0").batch(("k", "1"), ("k", "2")).write()
    shutil.copytree(logs, log_dir / "copy")
    words = (str(logs), str(log_dir / "copy"), str(log_dir / "work"), how_many)
    done = run_session("tests.spark.connect_session", *words)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.thorough
def test_source_scan_and_jobs_run_in_a_connect_session(log_dir: Path) -> None:
    assert answers(log_dir, "few") == FEW


@pytest.mark.soak
def test_every_function_runs_in_a_connect_session(log_dir: Path) -> None:
    assert answers(log_dir, "all") == FEW | OTHERS
