"""The published schema of the audit's document, as Spark's types: a list of it is a table.

integer is LONG, number DOUBLE; an object with named properties is a struct, one with any names a
map. Whatever may be null or left out is nullable.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kafkalog.auditing.audit_schema import audit_schema

_PLAIN: dict[str, DataType] = {
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
    "boolean": BooleanType(),
}


@cache
def list_schemas() -> dict[str, StructType]:
    """The schema of the rows of each list at the top of the document."""
    found = {}
    for name, schema in audit_schema()["properties"].items():
        if _resolved(schema).get("type") == "array":
            found[name] = _type(_resolved(schema)["items"])
    return {name: kind for name, kind in found.items() if isinstance(kind, StructType)}


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if reference is not None:
        schema = audit_schema()["$defs"][reference.removeprefix("#/$defs/")]
    for choice in schema.get("anyOf", ()):
        if _resolved(choice).get("type") != "null":
            return _resolved(choice)
    return schema


def _type(schema: dict[str, Any]) -> DataType:
    schema = _resolved(schema)
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next(each for each in kind if each != "null")
    if kind == "array":
        return ArrayType(_type(schema["items"]))
    if kind != "object":
        return _PLAIN[kind]
    if "properties" in schema and not schema.get("additionalProperties"):
        return StructType([StructField(n, _type(s)) for n, s in schema["properties"].items()])
    return MapType(StringType(), _type(schema["additionalProperties"]))
