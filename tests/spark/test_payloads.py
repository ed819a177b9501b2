"""Payloads as columns: what other writers of the formats wrote, and what is none of it."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from kafkalog.errors import InvalidConfigError
from kafkalog.spark import decode

pytestmark = pytest.mark.spark

V1 = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "status", "type": ["null", "string"]}],
}  # fmt: skip
V2 = {**V1, "fields": [*V1["fields"], {"name": "total", "type": "long", "default": 7}]}


def values(spark: SparkSession, *payloads: bytes | None) -> DataFrame:
    rows = list(enumerate(payloads))
    return spark.createDataFrame(rows, "n int, value binary").repartition(1)


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def decoded(df: DataFrame) -> list[tuple[Any, ...]]:
    """(struct as a dict or None, error, schema id if there is one) in the order of the rows."""
    names = [name for name in ("decoded", "decodedError", "decodedSchemaId") if name in df.columns]
    rows = [row.asDict(recursive=True) for row in df.orderBy("n").collect()]
    return [tuple(row[name] for name in names) for row in rows]


def test_json_is_a_struct_or_null_with_a_reason(spark: SparkSession) -> None:
    bad = "not JSON of the schema"
    df = values(
        spark, b'{"id": 1, "more": {}}', b"{}", b'{"id": 1', b'{"id": "x"}', b"\xff", b"", None
    )
    assert decoded(decode(df, "json", "id INT, status STRING")) == [
        ({"id": 1, "status": None}, None), ({"id": None, "status": None}, None),
        (None, bad), (None, bad), (None, bad), (None, bad), (None, None),
    ]  # fmt: skip
    df = values(spark, framed(3, b'{"id": 2}'), b'{"id": 2}', b"\0\0\0", None)
    frameless = (None, "no frame of a schema registry", None)
    schema = spark.createDataFrame([], "id INT").schema
    assert decoded(decode(df, "json", schema, schema_registry=True)) == [
        ({"id": 2}, None, 3), frameless, frameless, (None, None, None),
    ]  # fmt: skip


def test_avro_is_whole_or_null_with_a_reason(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "new"), (300, None)], "id int, status string")
    by_spark = [
        bytes(row[0])
        for row in rows.select(to_avro(F.struct("id", "status"), json.dumps(V1))).collect()
    ]
    assert by_spark == [b"\2\2\6new", b"\xd8\4\0"]
    bad = "not Avro of the schema"
    df = values(spark, *by_spark, b"\2\2\6ne", b"\xd8\4\0\0", b"\xd8\4\4", b"", None)
    assert decoded(decode(df, "avro", json.dumps(V1))) == [
        ({"id": 1, "status": "new"}, None), ({"id": 300, "status": None}, None),
        (None, bad), (None, bad), (None, bad), (None, bad), (None, None),
    ]  # fmt: skip
    df = values(
        spark, framed(1, by_spark[0]), framed(2, by_spark[1] + b"\x12"), framed(9, by_spark[0]),
        framed(2, by_spark[0]), by_spark[0], None,
    )  # fmt: skip
    writers = {1: json.dumps(V1), 2: json.dumps(V2)}
    found = decode(df, "avro", json.dumps(V2), schema_registry=True, writer_schemas=writers)
    assert decoded(found) == [
        ({"id": 1, "status": "new", "total": 7}, None, 1),
        ({"id": 300, "status": None, "total": 9}, None, 2),
        (None, "no schema is given for id 9", 9),
        (None, bad, 2),
        (None, "no frame of a schema registry", None),
        (None, None, None),
    ]


def descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    """shop.proto: message First {}, message Order { …, message Line }."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="First")
    order = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    plain = (("id", kinds.TYPE_INT32), ("big", kinds.TYPE_UINT64), ("raw", kinds.TYPE_BYTES))
    for number, (name, kind) in enumerate(plain, 1):
        order.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    order.nested_type.add(name="Line").field.add(
        name="sku", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL
    )
    color = order.enum_type.add(name="Color")
    color.value.add(name="RED", number=0)
    color.value.add(name="BLUE", number=1)
    add = order.field.add
    add(name="lines", number=4, type=11, label=3, type_name=".shop.Order.Line")
    add(name="color", number=5, type=14, label=1, type_name=".shop.Order.Color")
    add(name="at", number=6, type=11, label=1, type_name=".google.protobuf.Timestamp")
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=1)
    add(name="tags", number=7, type=11, label=3, type_name=".shop.Order.TagsEntry")
    timestamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp)
    return descriptor_pb2.FileDescriptorSet(file=[file, timestamp])  # not in order


def test_protobuf_is_a_struct_or_null_with_a_reason(spark: SparkSession) -> None:
    found = descriptor_set()
    pool = descriptor_pool.DescriptorPool()
    for file in reversed(found.file):
        pool.Add(file)
    order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))(
        id=-5, big=2**64 - 1, raw=b"\xff", lines=[{"sku": "a"}, {}], color=1, tags={"t": 3}
    )
    order.at.seconds = 1_700_000_000
    payload = order.SerializeToString()
    whole = {
        "id": -5, "big": -1, "raw": b"\xff", "lines": [{"sku": "a"}, {"sku": ""}],
        "color": "BLUE", "tags": {"t": 3},
    }  # fmt: skip
    empty = {"id": 0, "big": 0, "raw": b"", "lines": [], "color": "RED", "at": None, "tags": {}}
    schema = found.SerializeToString()
    df = values(spark, payload, b"", payload[:-1], b"\x28\x07", None)
    first, *others = decoded(decode(df, "protobuf", schema, message="shop.Order"))
    assert first[0].pop("at").timestamp() == 1_700_000_000
    assert first == (whole, None)
    assert others == [
        (empty, None), (None, "not Protobuf of shop.Order"), ({**empty, "color": "7"}, None),
        (None, None),
    ]  # fmt: skip
    # Order is message 1 of the file, its Line message 0 of it
    df = values(spark, *(framed(4, b) for b in (b"\2\2", b"\0", b"\4\2\0\x0a\1x", b"", b"\2")))
    indexed = decode(df, "protobuf", schema, message="shop.Order", schema_registry=True)
    errors = [row[1] for row in decoded(indexed)]
    assert errors[:3] == [
        None,
        *(f"message {i} of its schema's file, not [1]" for i in ([0], [1, 0])),
    ]
    assert all(errors[3:])
    nested = decode(df, "protobuf", schema, message="shop.Order.Line", schema_registry=True)
    assert decoded(nested)[2] == ({"sku": "x"}, None, 4)


def test_schemas_that_are_none_are_refused(spark: SparkSession) -> None:
    df = values(spark, b"")
    schema = descriptor_set().SerializeToString()
    itself = descriptor_pb2.FileDescriptorProto(name="a.proto")
    itself.message_type.add(name="A").field.add(
        name="a", number=1, type=11, label=1, type_name=".A"
    )
    circle = descriptor_pb2.FileDescriptorSet(file=[itself]).SerializeToString()
    alone = descriptor_pb2.FileDescriptorSet(file=[descriptor_set().file[0]]).SerializeToString()
    for payload, given, message, why in (
        ("xml", "", None, "payloads are json, avro, protobuf"),
        ("json", b"", None, "a DDL string or a StructType"),
        ("json", "id INT", "shop.Order", "a message is named for protobuf"),
        ("avro", "record", None, "its JSON, an object"),
        ("protobuf", schema, "shop.Nothing", "shop.Nothing is not in the descriptor set"),
        ("protobuf", b"\xff", "shop.Order", "is no descriptor set"),
        ("protobuf", alone, "shop.Order", "lacks google/protobuf/timestamp.proto"),
        ("protobuf", circle, "A", "holds itself has no columns: A in A"),
    ):
        with pytest.raises(InvalidConfigError, match=why):
            decode(df, payload, given, message=message)
    with pytest.raises(InvalidConfigError, match="writer_schemas are for avro"):
        decode(df, "json", "id INT", schema_registry=True, writer_schemas={1: "{}"})
