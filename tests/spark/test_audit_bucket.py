"""Remote storage looked at by Spark tasks: what the command line finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.cli.main import main
from kafkalog.columns.bucket_schemas import BUCKET_FINDINGS
from kafkalog.spark import bucket
from tests.bucket.tiered_cluster import COPIED_MS, NOW_MS, TieredCluster
from tests.jobs.submit import submit
from tests.remote.test_aiven import KEYS, TOPICS, flip

pytestmark = pytest.mark.spark

OTHER = "B" * 21 + "A"


def harmed(path: Path) -> TieredCluster:
    cluster = TieredCluster(path)
    cluster.again("a-lz4", OTHER, ("log",), COPIED_MS)
    flip(cluster.object("b-txn", 1159, "log"), 5000)
    return cluster


def words(cluster: TieredCluster, *more: str) -> list[str]:
    keys = [f"--remote-key={key_id}={file}" for key_id, file in KEYS.items()]
    topics = [f"--topic={topic}" for topic in TOPICS]
    return [
        str(cluster.broker), "--remote-dir", str(cluster.store), *keys, *topics,
        f"--now={NOW_MS}", "--deep", "--json", f"--run-dir={cluster.broker.parent}/runs", *more,
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_frame_has_what_the_command_line_finds(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = harmed(tmp_path)
    frame = bucket(
        spark,
        [str(cluster.broker)],
        [str(cluster.store)],
        remote_keys=KEYS,
        topics=TOPICS,
        now_ms=NOW_MS,
        deep=True,
        run_dir=str(tmp_path / "runs"),
        max_bytes_per_second=1e9,
    )
    assert frame.columns == [column.name for column in BUCKET_FINDINGS]
    rows = [row.asDict() for row in frame.collect()]
    assert [row["id"] for row in rows] == ["half-upload", "object-damaged"]
    capsys.readouterr()
    assert main(["bucket", *words(cluster, "--workers=1")]) == 1
    assert rows == json.loads(capsys.readouterr().out)["findings"]


@pytest.mark.thorough
def test_spark_submit_prints_one_document(tmp_path: Path) -> None:
    done = submit("audit_bucket.py", *words(harmed(tmp_path)))
    assert done.returncode == 1, done.stdout + done.stderr
    ids = [each["id"] for each in json.loads(done.stdout)["findings"]]
    assert ids == ["half-upload", "object-damaged"]
