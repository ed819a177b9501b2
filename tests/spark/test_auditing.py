"""Audits on Spark: the same document as without it, its lists as DataFrames, the job, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.audit_retention import work
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import audit_request
from kafkalog.auditing.whole import Extras, whole_audit
from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.output import ExitCode
from kafkalog.errors import InvalidConfigError
from kafkalog.spark import audit
from tests.auditing.documents import validate
from tests.support.log_builder import START_MS, LogBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000
NOW_MS = START_MS + 30 * DAY_MS
OPTIONS: dict[str, Any] = {"now_ms": NOW_MS, "config": ["cleanup.policy=delete"]}
POLICY = "version: 1\nrules:\n  - {name: young, topics: ['*'], limits: {max-age: 7d}}\n"


def write_many(*log_dirs: Path) -> list[str]:
    """40 topics of 2 partitions over the log dirs, one of them with a time in the future."""
    for number in range(80):
        log_dir = log_dirs[number % len(log_dirs)]
        log = LogBuilder(log_dir, f"many{number // 2:02}-{number % 2}").segment()
        log.batch(("k", "v" * 40), ("l", "w" * 40))
        if number == 7:
            log.batch(("k", "x"), timestamp=NOW_MS + 400 * DAY_MS)
        log.segment().batch(("k", "1")).segment().batch(("k", "2")).write()
    return [str(log_dir) for log_dir in log_dirs]


@pytest.mark.spark
def test_many_log_dirs_are_one_document_and_its_frames(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    log_dirs = write_many(log_dir / "a", log_dir / "b", log_dir / "c")
    done = audit(spark, log_dirs, run_dir=str(tmp_path), **OPTIONS)
    validate(json.loads(json.dumps(done.document)))
    alone = whole_audit(
        audit_request(log_dirs, OPTIONS),  # type: ignore[arg-type]
        Extras(keeps=False),
        lambda tasks: map(audit_partition, tasks),
        lambda: NOW_MS,
    )
    assert {**done.document, "seconds": 0} == {**alone.document, "seconds": 0}
    again = audit(spark, log_dirs, run_dir=str(tmp_path), **{**OPTIONS, "now_ms": NOW_MS + 1})
    assert again.document["topics"] == done.document["topics"]
    assert again.document["history"]["runs"] == 1
    assert {"topics", "partitions", "segments", "findings", "timeline", "logDirs"} <= {*done.names}
    for name in ("topics", "findings", "logDirs", "partitions", "whatIf"):
        rows = [row.asDict(recursive=True) for row in done.frame(name).collect()]
        assert rows == done.document[name], name
    assert done.frame("segments").where("isActive").count() == 80
    assert done.frame("topics").selectExpr("sum(bytesByKind['log'])").first() is not None
    with pytest.raises(InvalidConfigError, match="no list 'nonsense'; there are"):
        done.frame("nonsense")
    assert done._repr_html_().startswith("<iframe srcdoc=")


@pytest.mark.spark
def test_the_job_writes_the_page_and_fails_on_violations(
    spark: SparkSession, log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(log_dir, "old-0").segment().batch(("k", "v")).segment().batch(("k", "w")).write()
    policy, page = tmp_path / "policy.yaml", tmp_path / "audit.html"
    policy.write_text(POLICY)
    words = ["--log-dir", str(log_dir), "--now", str(NOW_MS), "--config", "cleanup.policy=delete"]
    words += ["--policy", str(policy), "--report", str(page), "--run-dir", str(tmp_path / "runs")]
    args = parse_verb_arguments("audit", [*words, "--capacity", "1GiB", "--json"])
    assert work(spark, args, lambda _: None) == ExitCode.FINDINGS
    document = json.loads(capsys.readouterr().out)
    assert document["policy"]["violations"] == 1
    assert document["logDirs"][0]["capacityBytes"] == 1 << 30
    assert "old-0: rule young: max-age 7d" in page.read_text("utf-8")
