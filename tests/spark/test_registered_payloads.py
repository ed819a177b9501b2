"""Payloads by the schemas in `_schemas` on Spark: the same rows as in SQL without it."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.errors import InvalidConfigError
from kafkalog.spark import create_topic_views, decode, records
from tests.spark.test_function_views import types_of
from tests.support.registered import AVRO_V1, write_registered_topics

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


def test_topics_are_typed_tables_with_the_rows_of_duckdb(
    spark: SparkSession, log_dir: Path
) -> None:
    write_registered_topics(log_dir)
    names = create_topic_views(spark, str(log_dir), prefix="r_", decode=True)
    tables = [name for name in names if name.startswith("r_topic_")]
    assert tables == ["r_topic_click_stream", "r_topic_orders", "r_topic_payments"]
    for name in tables:
        wanted = kafkalog.sql(log_dir, f"SELECT * FROM {name[2:]}", decode=True)
        frame = spark.table(name)
        assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == types_of(
            wanted.schema
        )
        rows = [row.asDict(recursive=True) for row in frame.orderBy("offset").collect()]
        assert _plain(rows) == _plain(wanted.sort_by("offset").to_pylist())


def test_decode_takes_the_schemas_of_the_disk(spark: SparkSession, log_dir: Path) -> None:
    write_registered_topics(log_dir)
    path = str(log_dir)
    orders = records(spark, path, subscribe="orders").select("offset", "value")
    disk = {"schemas": "disk", "path": path}
    found = decode(orders, subject="orders-value", **disk).orderBy("offset")
    assert found.columns == ["offset", "value", "decoded", "decodedError", "decodedSchemaId"]
    rows = [row.asDict(recursive=True) for row in found.collect()]
    assert [row["decoded"] for row in rows][:2] == [
        {"id": 1, "status": "new", "total": 7}, {"id": 2, "status": None, "total": 9},
    ]  # fmt: skip
    assert [row["decodedSchemaId"] for row in rows] == [1, 3, 3, 9, None]
    old = decode(orders, "avro", json.dumps(AVRO_V1), subject="orders-value", **disk)
    assert [row.decoded.asDict() for row in old.orderBy("offset").take(2)] == [
        {"id": 1, "status": "new"}, {"id": 2, "status": None},
    ]  # fmt: skip
    for options, why in (
        ({"path": path}, "needs path"), ({"path": path, "subject": "x"}, "'x' has no schema"),
        ({**disk, "subject": "orders-value", "payload": "json"}, "is AVRO, not json"),
        ({**disk, "subject": "orders-value", "message": "M"}, "has no messages"),
        ({**disk, "subject": "orders-value", "schema_registry": True}, "neither"),
        ({**disk, "subject": "payments-value", "schema": "x"}, "schema is for Avro"),
        ({"schemas": "registry"}, "not from 'registry'"),
    ):  # fmt: skip
        with pytest.raises(InvalidConfigError, match=why):
            decode(orders, **{"schemas": "disk", **options})  # type: ignore[arg-type]
    with pytest.raises(InvalidConfigError, match="path and subject are for"):
        decode(orders, "json", "id INT", subject="orders-value")


def _plain(rows: list[dict[str, Any]]) -> Any:
    """Without what the two have different Python values for: bytes, zones."""

    def text(value: object) -> str:
        if isinstance(value, dt.datetime):
            return value.replace(tzinfo=None).isoformat()
        return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)

    return json.loads(json.dumps(rows, default=text))
