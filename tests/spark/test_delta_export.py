"""Export into a real Delta table: every record once, whatever happened to the runs before."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.errors import InvalidConfigError, LogChangedError
from kafkalog.spark import delta_export, export_to_delta
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def logs(log_dir: Path) -> list[LogBuilder]:
    """Two partitions of eleven records each in two segments."""
    made = [LogBuilder(log_dir / "logs", f"orders-{number}") for number in range(2)]
    for log in made:
        log.segment().batch(*((f"k{n % 4}", str(n)) for n in range(10)))
        log.segment().batch(("k0", None)).write()
    return made


def written_again(log: LogBuilder) -> None:
    shutil.rmtree(log.path)
    log.write()


def rows(spark: SparkSession, table: Path) -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(table))
    return sorted((r.partition, r.offset, r.key, r.value) for r in found.collect())


def in_log(logs: list[LogBuilder]) -> list[tuple[Any, ...]]:
    return [(p, r.offset, r.key, r.value) for p, log in enumerate(logs) for r in log.records]


@pytest.mark.thorough  # the examples of the guide append and merge
def test_append_has_every_record_once_whatever_befell_its_runs(
    spark: SparkSession, logs: list[LogBuilder], log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table = str(log_dir / "logs"), log_dir / "table"
    # the second partition breaks midway: nothing of the first one may stay
    broken = logs[1].path / "00000000000000000010.log"
    sound = broken.read_bytes()
    broken.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(PySparkException, match="checksum"):
        export_to_delta(spark, path, str(table))
    broken.write_bytes(sound)

    job = runpy.run_path(str(ROOT / "jobs" / "export_to_delta.py"))
    said: list[str] = []
    words = ["--log-dir", path, "--topic", "ord*", "--table", str(table), "--json"]
    assert job["work"](spark, parse_verb_arguments("export", words), said.append) == 0
    assert said == [f"22 rows, version 0 of {table}"]
    assert rows(spark, table) == in_log(logs)
    again = export_to_delta(spark, path, str(table))
    assert (again.rows, again.version) == (0, None)

    for log in logs:
        log.batch(("k9", "more"), ("k9", "and more"))
        written_again(log)
    # a run that went by the same version as one that was quicker
    monkeypatch.setattr(delta_export, "_version", lambda *_: None)
    with pytest.raises(LogChangedError, match="another export"):
        export_to_delta(spark, path, str(table))
    monkeypatch.undo()
    done = export_to_delta(spark, path, str(table))
    assert (done.rows, done.next_offsets) == (4, {"orders": {0: 13, 1: 13}})
    assert rows(spark, table) == in_log(logs)
    assert spark.read.option("versionAsOf", 0).format("delta").load(str(table)).count() == 22


@pytest.mark.thorough
def test_merge_has_the_latest_of_each_key_and_goes_on(
    spark: SparkSession, logs: list[LogBuilder], log_dir: Path
) -> None:
    path, table = str(log_dir / "logs"), log_dir / "table"
    first = export_to_delta(spark, path, str(table), mode="merge", assign='{"orders": [0]}')
    assert (first.rows, first.next_offsets) == (4, {"orders": {0: 11}})
    assert rows(spark, table) == [
        (0, 6, b"k2", b"6"), (0, 7, b"k3", b"7"), (0, 9, b"k1", b"9"), (0, 10, b"k0", None),
    ]  # fmt: skip
    logs[0].batch(("k0", "back"), ("k2", None), (None, "no key"), ("new", "1"))
    written_again(logs[0])
    done = export_to_delta(spark, path, str(table), mode="merge", assign='{"orders": [0]}')
    assert (done.rows, done.next_offsets) == (3, {"orders": {0: 15}})
    assert rows(spark, table) == [
        (0, 7, b"k3", b"7"), (0, 9, b"k1", b"9"), (0, 11, b"k0", b"back"), (0, 12, b"k2", None),
        (0, 14, b"new", b"1"),
    ]  # fmt: skip


def test_what_would_lose_or_repeat_records_is_refused(
    spark: SparkSession, logs: list[LogBuilder], log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(log_dir / "logs")
    for mode, options, why in (
        ("overwrite", {}, "mode is one of append, merge"),
        ("append", {"startingOffsets": "earliest"}, "no option startingOffsets"),
        ("append", {"columns": "key,value"}, "needs the columns topic, partition, offset"),
        ("append", {"mode": "permissive"}, "FAILFAST or DROPMALFORMED"),
    ):
        # `mode` is the export's own, as an argument
        with pytest.raises(InvalidConfigError, match=why):
            delta_export._options(options) if mode == "append" else export_to_delta(
                spark, path, "t", mode=mode
            )
    shutil.copytree(log_dir / "logs", log_dir / "replica")
    with pytest.raises(InvalidConfigError, match="two of orders-0"):
        export_to_delta(spark, [path, str(log_dir / "replica")], str(log_dir / "table"))
    # a table that is further than the log: a topic made anew under its name
    monkeypatch.setattr(delta_export, "_version", lambda *_: 3)
    monkeypatch.setattr(delta_export, "_next_offsets", lambda *_: {"orders": {0: 12, 1: 11}})
    with pytest.raises(PySparkException, match=r"OffsetOutOfRangeError.*offset 12.*0 to 11"):
        export_to_delta(spark, path, str(log_dir / "table"))


def test_a_session_without_delta_is_told_what_brings_it(log_dir: Path) -> None:
    class WithoutDelta:
        def sql(self, _: str) -> None:
            raise ParseException("[PARSE_SYNTAX_ERROR] Syntax error at or near 'LIMIT'")

    with pytest.raises(InvalidConfigError, match=r"no Delta: io\.delta:delta-spark.* is missing"):
        export_to_delta(WithoutDelta(), str(log_dir), "/lake/orders")  # type: ignore[arg-type]
