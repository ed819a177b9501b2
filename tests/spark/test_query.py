"""The verb sql on Spark, in a session that is there already: formats, several statements,
refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES
from kafkalog import query_on_spark
from kafkalog.cli.arguments import UsageError, parse_arguments
from kafkalog.cli.main import main
from kafkalog.cli.sql_output import TABLE_ROWS
from kafkalog.query_on_spark import work
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    log_dir = tmp_path_factory.mktemp("queried")
    log = LogBuilder(log_dir, "orders-0").batch(
        ("a", "one"), (b"\xff\x00", None), (None, "two\nlines")
    )
    log.write()
    return str(log_dir)


def run(spark: SparkSession, *arguments: str) -> list[str]:
    """What was said beside the data."""
    told: list[str] = []
    assert work(spark, parse_arguments(["sql", *arguments]), told.append) == 0
    return told


@pytest.mark.thorough
def test_rows_as_a_table(
    spark: SparkSession, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT offset, key, value FROM records ORDER BY offset"
    assert run(spark, path, "--sql", sql) == []
    assert capsys.readouterr().out.splitlines() == [
        "offset  key     value",
        "     0  a       one",
        "     1  0xff00  -",
        "     2  -       0x74776f0a6c696e6573",
    ]


@pytest.mark.thorough  # test_sql_engines has them of both engines
def test_rows_as_json_lines(
    spark: SparkSession, path: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    sql = (
        "CREATE OR REPLACE TEMPORARY VIEW few AS SELECT key, offset FROM record_keys;\n"
        "SELECT key, offset FROM few\nORDER BY offset;\nSELECT count(*) AS n FROM few"
    )
    assert run(spark, path, "--format", "json", "--sql", sql) == []
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert rows == [
        {"key": "YQ==", "offset": 0},
        {"key": "/wA=", "offset": 1},
        {"key": None, "offset": 2},
        {"n": 3},
    ]


def test_rows_as_parquet(spark: SparkSession, path: str, tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    sql = "SELECT topic, offset FROM records"
    told = run(spark, path, "--format", "parquet", "--output", output, "--sql", sql)
    assert told == [f"written to {output}"]
    assert pq.read_table(output)["offset"].to_pylist() == [0, 1, 2]
    with pytest.raises(UsageError, match="already exists"):
        run(spark, path, "--format", "parquet", "--output", output, "--sql", sql)


def test_long_table_ends_with_a_word(
    spark: SparkSession, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = run(spark, path, "--sql", f"SELECT * FROM range({TABLE_ROWS + 5})")
    assert told == ["the first 1000 rows; --format json, csv and parquet give all"]
    assert len(capsys.readouterr().out.splitlines()) == TABLE_ROWS + 1


def test_what_cannot_be_asked_is_refused(
    spark: SparkSession, path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a line, without what Spark itself would write of it."""
    for arguments, words in (
        ([path, "--sql", "SELECT nothing FROM records"], "nothing"),
        ([path, "--sql", "SELEC 1"], "SELEC"),
        (["--sql", "SELECT 1"], "needs a log dir"),
        ([path, "--format", "parquet", "--sql", "SELECT 1"], "needs --output"),
        ([path, "--output", "x", "--sql", "SELECT 1"], "--output is for"),
    ):
        with pytest.raises(UsageError, match=words):
            run(spark, *arguments)
    with pytest.raises(UsageError, match="no such file or directory"):
        run(spark, str(tmp_path / "absent"), "--sql", "SELECT count(*) FROM records")
    assert "SQLQueryContextLogger" not in capfd.readouterr().err


def test_without_java_it_is_usage(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(query_on_spark.shutil, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["sql", path, "--engine", "spark", "--sql", "SELECT 1"]) == 2
    assert "needs Java 17" in capsys.readouterr().err


@pytest.mark.thorough  # test_zookeeper has the tables
def test_a_dead_zookeepers_tables_are_views_too(
    spark: SparkSession, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a log dir's own views, and alone; one cluster of it, or all."""
    ensemble = ["--zookeeper-dir", str(SAMPLES / "zookeeper" / "ensemble")]
    sql = "SELECT count(DISTINCT clusterId) AS n FROM zookeeper_topics; SELECT 1 AS n -- a;\n;"
    for more, clusters in ((ensemble, 2), ([*ensemble, "--zk-root", "/second"], 1)):
        run(spark, *more, "--format", "json", "--sql", sql)
        found = [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()]
        assert found == [clusters, 1]
    run(spark, path, *ensemble, "--sql", "SELECT * FROM records, zookeeper_brokers LIMIT 1")
    with pytest.raises(UsageError, match="--zk-root is for"):
        run(spark, path, "--zk-root", "/second", "--sql", "SELECT 1")
