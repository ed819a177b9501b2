"""Retention as `kafkalog.spark` offers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark import retain
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark


def test_retain_plans_and_applies(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for _ in range(3):
        log.segment().batch(("k", "v"), timestamp=START_MS)
    path = log.write()
    options = {
        "config": ["cleanup.policy=delete", "retention.ms=1"],
        "now_ms": START_MS + 2,
        "topics": ["orders"],
    }
    planned = retain(spark, [str(log_dir)], **options)  # type: ignore[arg-type]
    assert (planned.applied, len(planned.plans[0].deleted)) == (False, 3)
    assert len(list(path.glob("*.log"))) == 3
    unsaid = {"topics": ["orders"], "now_ms": START_MS + 10**9}
    for said, why in (
        ([], "cleanup.policy of orders is not known"),
        (["cleanup.policy=delete"], "no setting says how long to keep"),
    ):
        refused = retain(spark, [str(log_dir)], **unsaid, config=said, apply=True)  # type: ignore[arg-type]
        assert why in refused.plans[0].reason
    assert len(list(path.glob("*.log"))) == 3
    properties = tmp_path / "server.properties"
    properties.write_text("log.cleanup.policy=delete\nlog.retention.ms=1\n")
    told = retain(
        spark,
        [str(log_dir)],
        topics=["orders"],
        config=["cleanup.policy=delete"],
        now_ms=START_MS + 2,
        server_properties=str(properties),
    )
    assert len(told.plans[0].deleted) == 3
    assert told.notes
    done = retain(spark, [str(log_dir)], **options, apply=True)  # type: ignore[arg-type]
    assert [result.status for result in done.results] == ["deleted"]
    assert [file.name for file in path.glob("*.log")] == [f"{3:020d}.log"]
