"""The cluster's tables on Spark: the rows that plain Python has, as DataFrames and as views."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from data.copy_samples import SAMPLES
from data.maker.three_nodes import read_events
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.reading.cluster_tables import history_tables, read_histories
from kafkalog.spark import cluster_tables, configs, create_views, partition_changes
from kafkalog.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DIRS = [str(SAMPLES / "cluster" / name / "data") for name in "123"]
EVENTS = {event["step"]: event for event in read_events(SAMPLES / "cluster" / "events.json")}


def test_tables_are_the_histories_rows_under_their_columns(spark: SparkSession) -> None:
    plain = history_tables(read_histories(DIRS))
    frames = cluster_tables(spark, ",".join(DIRS))
    assert list(frames) == list(CLUSTER_TABLES)
    for name, frame in frames.items():
        assert frame.schema == spark_schema(CLUSTER_TABLES[name])
        rows = [row.asDict() for row in frame.collect()]
        told = [
            {key: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
             for key, value in row.items()}
            for row in plain[name].to_pylist()
        ]  # fmt: skip
        assert rows == told, name


def test_what_was_in_force_can_be_asked_for_by_offset_time_and_sql(spark: SparkSession) -> None:
    before, after = EVENTS["settings set"], EVENTS["settings changed"]
    wanted = "entity = 'orders' AND key = 'retention.ms'"
    at = configs(spark, DIRS, at_offset=before["endOffset"]).where(wanted).collect()
    assert [row.value for row in at] == ["86400000"]
    at = configs(spark, DIRS, at_time_ms=after["atMs"]).where(wanted).collect()
    assert [row.value for row in at] == ["172800000"]
    names = create_views(spark, DIRS, prefix="c_")
    assert {f"c_{name}" for name in CLUSTER_TABLES} <= set(names)
    end = before["endOffset"]
    found = spark.sql(
        f"SELECT value FROM c_configs WHERE {wanted} AND offset < {end} "
        f"AND (endOffset IS NULL OR endOffset >= {end})"
    )
    assert [row.value for row in found.collect()] == ["86400000"]
    unclean = spark.sql("SELECT DISTINCT topic FROM c_partition_changes WHERE isUnclean")
    assert "fragile" in {row.topic for row in unclean.collect()}


def test_damage_is_an_error_unless_it_may_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    log = SAMPLES / "cluster" / "1" / "data" / "__cluster_metadata-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[-5] ^= 1
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    (directory / log.name).write_bytes(data)
    with pytest.raises(CorruptRecordError, match="CRC does not agree"):
        partition_changes(spark, str(tmp_path))
    assert partition_changes(spark, str(tmp_path), mode="PERMISSIVE").count() > 50
    with pytest.raises(InvalidConfigError, match="mode 'LOUD'"):
        partition_changes(spark, str(tmp_path), mode="LOUD")
