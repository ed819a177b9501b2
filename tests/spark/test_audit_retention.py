"""Audits on Spark: the same document as without it, its lists as DataFrames, the job, the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.audit_retention import work
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import audit_request
from kafkalog.auditing.whole import AuditOptions, whole_audit
from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.output import ExitCode
from kafkalog.errors import InvalidConfigError
from kafkalog.spark import audit
from tests.auditing.documents import validate
from tests.auditing.test_pains_of_contents import commits, filled
from tests.support.documents import DOCS
from tests.support.log_builder import META, START_MS, LogBuilder

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


@pytest.mark.thorough
@pytest.mark.spark
def test_many_log_dirs_are_one_document_and_its_frames(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    log_dirs = write_many(log_dir / "a", log_dir / "b", log_dir / "c")
    done = audit(spark, log_dirs, run_dir=str(tmp_path), **OPTIONS)
    validate(json.loads(json.dumps(done.document)))
    alone = whole_audit(
        audit_request(log_dirs, OPTIONS),  # type: ignore[arg-type]
        AuditOptions(keeps=False),
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


@pytest.mark.spark
def test_frames_of_simulations_and_of_safe_offsets(spark: SparkSession, log_dir: Path) -> None:
    filled(log_dir, "orders-0")
    offsets = LogBuilder(log_dir, "__consumer_offsets-3").segment()
    commits(offsets, ("quick", "orders", 0, 39), ("slow", "orders", 0, 25))
    offsets.write()
    done = audit(
        spark, [str(log_dir)], keeps=False, contents=True, now_ms=START_MS + 1000,
        what_if=["retention.ms=1d", "segment.bytes=2MiB", "retention.ms=1h"],
        at_ms=[START_MS + DAY_MS], config=["cleanup.policy=delete"],
    )  # fmt: skip
    for name in ("whatIf", "safeDeleteOffsets"):
        rows = [row.asDict(recursive=True) for row in done.frame(name).collect()]
        assert rows == done.document[name], name
    (safe,) = done.frame("safeDeleteOffsets").collect()
    assert (safe.clusterId, safe.topic, safe.partition) == (META.cluster_id, "orders", 0)
    assert (safe.offset, safe["group"], safe.groups) == (25, "slow", 2)
    points = done.frame("whatIf").selectExpr("label", "settings", "inline(points)")
    kept = points.where("topic = 'orders'").orderBy("label", "atMs").collect()
    labels = ["", "retention.ms=3600000", "retention.ms=86400000, segment.bytes=2097152"]
    assert [row.label for row in kept] == [label for label in labels for _ in range(2)]
    size = kept[0].bytes
    assert [row.bytes for row in kept] == [size, size, size, 0, size, size]
    assert all(row.expectedBytes >= row.bytes for row in kept)
    assert kept[-1].settings == {"retention.ms": "86400000", "segment.bytes": "2097152"}


def scheduled_recipe() -> str:
    """The guide's line for cron, without its times; cron takes the backslashes off."""
    text = (DOCS / "guides" / "audit.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^15 3 \* \* \* (spark-submit .*\n.*)$", text, re.M)
    return str(line).replace("\\\n", " ").replace("\\%", "%")


@pytest.mark.spark
@pytest.mark.parametrize("days", [30, pytest.param(1, marks=pytest.mark.thorough)])
def test_the_scheduled_recipe(
    spark: SparkSession, tmp_path: Path, days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a shell runs it, with a spark-submit that takes down what it is asked for; the job is run
    here with that. The mail goes out when something is found.
    """
    log_dir = tmp_path / "data" / "one" / "kafka"
    log_dir.mkdir(parents=True)
    LogBuilder(log_dir, "old-0").segment().batch(("k", "v")).write()
    (tmp_path / "policy.yaml").write_text(POLICY)
    recipe = scheduled_recipe().replace("/data/", f"{tmp_path}/data/")
    recipe = recipe.replace("/srv/audit", str(tmp_path / "srv"))
    (tmp_path / "srv").mkdir()
    for name, text in (
        ("spark-submit", 'printf "%s\\n" "$@" > submitted; exit $(cat code 2>/dev/null || echo 0)'),
        ("mail", 'printf "%s" "$2" > mailed'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def play() -> list[str]:
        subprocess.run(["sh", "-c", recipe], cwd=tmp_path, env=path, check=True)
        words = (tmp_path / "submitted").read_text().splitlines()
        assert words[:3] == [
            "--properties-file", "spark_conf/spark-defaults.conf", "jobs/audit_retention.py",
        ]  # fmt: skip
        return words[3:]

    words = play()
    assert not (tmp_path / "mailed").exists()
    words[words.index("policy.yaml")] = str(tmp_path / "policy.yaml")
    config = ["--config", "cleanup.policy=delete", "--config", f"segment.ms={400 * DAY_MS}"]
    now_ms = START_MS + days * DAY_MS
    args = parse_verb_arguments("audit", [*words, *config, "--now", str(now_ms)])
    code = work(spark, args, lambda _: None)
    assert code == (ExitCode.FINDINGS if days > 7 else ExitCode.DONE), capsys.readouterr().out
    (page,) = (tmp_path / "srv").glob("20[0-9][0-9]-[01][0-9]-[0-3][0-9].html")
    assert "old-0" in page.read_text("utf-8") or days < 7
    assert list((tmp_path / "srv" / "runs").iterdir())
    (tmp_path / "code").write_text(str(int(code)))
    play()
    mailed = tmp_path / "mailed"
    assert (mailed.read_text() if mailed.exists() else "") == ("audit: 1" if days > 7 else "")
