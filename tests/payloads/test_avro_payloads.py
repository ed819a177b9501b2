"""Avro payloads: bytes by the specification's own rules, written by hand."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.avro_payloads import avro_decoder, with_named
from kafkalog.payloads.payload import decoded
from tests.support.registered import framed


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}


def read(schema: Any, body: bytes) -> tuple[pa.DataType, Any]:
    """Through Arrow, as a column has it."""
    decoder = avro_decoder({1: schema}, schema)
    (row,) = decoded(pa.array([framed(1, body)]), decoder).to_pylist()
    assert row["error"] is None
    return decoder.type, row["payload"]


UTC = pa.timestamp("us", tz="UTC")
SECOND = dt.datetime(1970, 1, 1, 0, 0, 1)
FIXED = {"type": "fixed", "name": "F", "size": 2}


@pytest.mark.parametrize(
    ("schema", "body", "kind", "value"),
    [
        ("int", b"\x03", pa.int32(), -2),
        ("boolean", b"\1", pa.bool_(), True),
        ("double", b"\0\0\0\0\0\0\xf8\x3f", pa.float64(), 1.5),
        ("bytes", b"\4\xff\0", pa.binary(), b"\xff\0"),
        (FIXED, b"ab", pa.binary(), b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\2", pa.string(), "B"),
        ({"type": "array", "items": "int"}, b"\4\2\4\0", pa.list_(pa.int32()), [1, 2]),
        (
            {"type": "map", "values": "int"},
            b"\2\2k\6\0",
            pa.map_(pa.string(), pa.int32()),
            [("k", 3)],
        ),
        (["null", "int"], b"\0", pa.int32(), None),
        (["int", "null"], b"\0\2", pa.int32(), 1),
        (["int", "string"], b"\2\2x", pa.string(), '"x"'),
        ({"type": "int", "logicalType": "date"}, b"\2", pa.date32(), dt.date(1970, 1, 2)),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xd0\x0f",
            UTC,
            SECOND.replace(tzinfo=dt.UTC),
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            b"\x80\x89\x7a",
            pa.timestamp("us"),
            SECOND,
        ),
        ({"type": "long", "logicalType": "time-micros"}, b"\2", pa.int64(), 1),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            b"\4\xff\x00",
            pa.decimal128(4, 2),
            Decimal("-2.56"),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, b"\2\1", pa.binary(), b"\1"),
        ({"type": "string", "logicalType": "uuid"}, b"\2u", pa.string(), "u"),
        (
            record(("a", FIXED), ("b", ["null", "F"])),
            b"ab\2cd",
            pa.struct([("a", pa.binary()), ("b", pa.binary())]),
            {"a": b"ab", "b": b"cd"},
        ),
    ],
)
def test_each_type_is_a_column(schema: Any, body: bytes, kind: pa.DataType, value: Any) -> None:
    assert read(schema, body) == (kind, value)


def test_a_time_outside_of_the_calendar_is_null() -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    assert read(schema, b"\xff" * 9 + b"\1")[1] is None


def test_a_payload_is_read_by_its_writers_schema_into_the_readers() -> None:
    old, new = record(("a", "int")), record(("b", "string"), ("a", "long"))
    new["fields"][0]["default"] = "none"
    decoder = avro_decoder({1: old, 2: new}, new)
    assert decoder.decode(1, b"\6") == {"b": "none", "a": 3}
    assert decoder.decode(2, b"\2x\6") == {"b": "x", "a": 3}


@pytest.mark.parametrize(
    ("schema_id", "body", "why"),
    [
        (2, b"\2", "no Avro schema has id 2"),
        (1, b"", "not Avro of schema 1"),
        (1, b"\2\2", "1 bytes are behind it"),
        (3, b"\2x", "not Avro of schema 3"),
        (4, b"", "not Avro of schema 4"),
    ],
)
def test_what_is_none_of_its_schema_says_why(schema_id: int, body: bytes, why: str) -> None:
    decoder = avro_decoder({1: "int", 3: "string", 4: {"type": "no"}}, "int")
    with pytest.raises(CorruptRecordError, match=why):
        decoder.decode(schema_id, body)


@pytest.mark.parametrize("schema", [{"type": "no"}, {"type": "record", "name": "R"}, 3, {}])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidConfigError, match="no Avro schema"):
        avro_decoder({}, schema)


def test_a_record_that_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="has no columns: R in R"):
        avro_decoder({}, record(("next", ["null", "R"])))


def test_types_of_other_subjects_stand_where_they_are_named_first() -> None:
    money = {
        "type": "record",
        "name": "Money",
        "namespace": "shop",
        "fields": [{"name": "c", "type": "int"}],
    }
    order = record(("a", "shop.Money"), ("b", ["null", "shop.Money"])) | {"namespace": "shop"}
    whole = with_named(order, {"shop.Money": money})
    assert whole["fields"] == [
        {"name": "a", "type": money},
        {"name": "b", "type": ["null", "shop.Money"]},
    ]
    assert avro_decoder({1: whole}, whole).decode(1, b"\2\2\4") == {"a": {"c": 1}, "b": {"c": 2}}
