"""Tiered topics on Spark: streams to where the log ends now and exports to Delta begin in remote
storage, beside a log dir or without one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark.delta_export import export_to_delta
from tests.support.streams import run_to_end

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

TIERED = Path("data/samples/tiered")
FIRST_LOCAL = 382


def consumed(level: str) -> list[tuple[int, bytes]]:
    rows = json.loads((TIERED / "consumed.json").read_text())[level]
    return [(offset, value.encode()) for offset, _, _, value in rows]


def written(spark: SparkSession, place: Path) -> list[tuple[int, bytes]]:
    rows = spark.read.parquet(str(place)).select("offset", "value").collect()
    return sorted((row.offset, bytes(row.value)) for row in rows)


def stream(spark: SparkSession, path: str, work: Path, **options: str) -> int:
    """How many batches had rows."""
    frame = spark.readStream.format("kafkalog").options(
        maxOffsetsPerTrigger="150", columns="offset,value", **options
    )
    writer = frame.load(path).writeStream.format("parquet").option("path", str(work / "out"))
    query = run_to_end(writer.option("checkpointLocation", str(work / "checkpoint")))
    assert query.exception() is None
    return sum(progress.numInputRows > 0 for progress in query.recentProgress)


def test_a_stream_of_a_tiered_topic_begins_in_remote_storage(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"subscribe": "tiered", "remoteDir": str(TIERED / "remote")}
    assert stream(spark, str(TIERED / "data"), tmp_path, **options) >= 2
    assert written(spark, tmp_path / "out") == consumed("read_uncommitted")


def test_a_stream_of_remote_storage_alone_ends_with_what_was_uploaded(
    spark: SparkSession, tmp_path: Path
) -> None:
    options = {"remoteLayout": "kafka", "isolationLevel": "read_committed"}
    assert stream(spark, str(TIERED / "remote"), tmp_path, **options) >= 2
    expected = [row for row in consumed("read_committed") if row[0] < FIRST_LOCAL]
    assert written(spark, tmp_path / "out") == expected


def test_an_export_to_delta_has_what_is_in_remote_storage(
    spark: SparkSession, tmp_path: Path
) -> None:
    def rows() -> list[tuple[int, bytes]]:
        found: Any = spark.read.format("delta").load(str(tmp_path / "table")).collect()
        return sorted((row.offset, bytes(row.value)) for row in found)

    table = str(tmp_path / "table")
    alone = export_to_delta(spark, str(TIERED / "remote"), table, remoteLayout="kafka")
    expected = consumed("read_committed")
    assert rows() == [row for row in expected if row[0] < FIRST_LOCAL]
    assert alone.next_offsets["tiered"][0] <= FIRST_LOCAL
    # It goes on with the log dir: one table of the one log.
    both = export_to_delta(
        spark, str(TIERED / "data"), table, subscribe="tiered", remoteDir=str(TIERED / "remote")
    )
    assert rows() == expected
    assert both.rows == len([row for row in expected if row[0] >= FIRST_LOCAL])
