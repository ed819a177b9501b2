"""Spark and the engines without a JVM have the same function views: names, columns, types, rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import kafkalog.spark as room
from data.copy_samples import SAMPLES
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.function_views.table import (
    FUNCTION_VIEWS,
    RECORD_VIEWS,
    TOPIC_VIEWS,
)
from tests.support.coordinator_logs import write_coordinator_logs
from tests.support.function_views import rows_of
from tests.support.log_builder import START_MS

pytestmark = pytest.mark.spark

LOG_DIRS = {"broker": SAMPLES / "broker", "groups": SAMPLES / "groups" / "data"}
NOW_MS = START_MS + 5_000


def plain(value: Any) -> Any:
    """Comparable and sortable, whichever engine it is from."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC)  # Spark's are of the local time and do not say so
    return bytes(value) if isinstance(value, bytearray) else value


def sorted_rows(rows: Iterable[dict[str, Any]]) -> list[Any]:
    return sorted((plain(row) for row in rows), key=repr)


def types_of(schema: pa.Schema) -> list[tuple[str, str]]:
    """What Spark makes of it, whether it can be null left aside."""
    return [
        (field.name, field.dataType.simpleString()) for field in from_arrow_schema(schema).fields
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("sample", ["random", *LOG_DIRS])
def test_both_engines_have_the_same_rows(spark: SparkSession, sample: str, tmp_path: Path) -> None:
    """Of random logs of the internal topics, and of a broker's."""
    write_coordinator_logs(tmp_path, seed=8)
    path = str(LOG_DIRS.get(sample, tmp_path))
    reads = SharedReads([path], FunctionOptions(now_ms=NOW_MS))
    compared = 0
    for name in (*RECORD_VIEWS, *TOPIC_VIEWS):
        view = FUNCTION_VIEWS[name]
        now = {"now_ms": NOW_MS} if name in ("group_offsets", "open_transactions") else {}
        frame = getattr(room, name)(spark, path, **now)
        its = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        assert its == types_of(view.schema), name
        found = sorted_rows(row.asDict(recursive=True) for row in frame.collect())
        expected = sorted_rows(rows_of(view, reads).to_pylist())
        assert found == expected, name
        compared += len(found)
    assert compared > 50


def test_ages_of_open_transactions_go_by_option_now(spark: SparkSession, tmp_path: Path) -> None:
    write_coordinator_logs(tmp_path, seed=8)
    reader = spark.read.format("kafkalog").options(view="open_transactions", now=str(NOW_MS))
    rows = reader.option("columns", "lastTimestampMs,ageMs").load(str(tmp_path)).collect()
    assert rows
    assert {row.lastTimestampMs + row.ageMs for row in rows} == {NOW_MS}
