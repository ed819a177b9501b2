"""JSON payloads into the columns of a JSON Schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.json_payloads import json_decoder
from kafkalog.payloads.payload import decoded
from tests.support.registered import framed

TEXT = pa.string()
REF = {"$ref": "#/$defs/n"}


@pytest.mark.parametrize(
    ("schema", "body", "kind", "value"),
    [
        ({"type": "integer"}, b"3.0", pa.int64(), 3),
        ({"type": "number"}, b"3", pa.float64(), 3.0),
        ({"type": ["null", "string"]}, b"null", TEXT, None),
        ({"type": "boolean"}, b"true", pa.bool_(), True),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, b"1", pa.int64(), 1),
        ({"type": ["string", "integer"]}, b"1", TEXT, "1"),
        ({}, b'{"a": "\xc3\xa9"}', TEXT, '{"a": "\u00e9"}'),
        (True, b"[1]", TEXT, "[1]"),
        ({"type": "object"}, b'{"a":1}', TEXT, '{"a": 1}'),
        (
            {"type": "array", "items": {"type": "integer"}},
            b"[1,null]",
            pa.list_(pa.int64()),
            [1, None],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            b'{"a":1}',
            pa.map_(TEXT, pa.int64()),
            [("a", 1)],
        ),
        ({**REF, "$defs": {"n": {"type": "integer"}}}, b"1", pa.int64(), 1),
        (
            {"type": "object", "properties": {"next": {"$ref": "#"}}},
            b'{"next":{"next":null}}',
            pa.struct([("next", pa.struct([("next", TEXT)]))]),
            {"next": {"next": None}},
        ),
        ({"$ref": "other.json"}, b"1", pa.float64(), 1.0),
        ({"$ref": "gone.json"}, b"1", TEXT, "1"),
    ],
)
def test_each_type_is_a_column(schema: Any, body: bytes, kind: pa.DataType, value: Any) -> None:
    decoder = json_decoder({1}, schema, {"other.json": {"type": "number"}})
    (row,) = decoded(pa.array([framed(1, body)]), decoder).to_pylist()
    assert (decoder.type, row) == (kind, {"payload": value, "error": None, "schemaId": 1})


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"NaN", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", r"\$ is list, not object"),
        (b'{"n":true}', r"\$\.n is bool, not integer"),
        (b'{"n":1.5}', r"\$\.n is float, not integer"),
        (b'{"n":9223372036854775808}', "64 bits"),
        (b'{"a":[{}]}', r"\$\.a\[0\] is dict, not string"),
        (b'{"x":1' + b"0" * 400 + b"}", "a double"),
    ],
)
def test_what_is_none_of_its_schema_says_why(body: bytes, why: str) -> None:
    properties = {
        "n": {"type": "integer"},
        "a": {"type": "array", "items": {"type": "string"}},
        "x": {"type": "number"},
    }
    decoder = json_decoder({1}, {"type": "object", "properties": properties})
    with pytest.raises(CorruptRecordError, match=why):
        decoder.decode(1, body)
    with pytest.raises(CorruptRecordError, match="no JSON Schema has id 2"):
        decoder.decode(2, b"{}")


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="no JSON Schema"):
        json_decoder({1}, [])
