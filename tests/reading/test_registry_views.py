"""The view of Schema Registry's topic."""

from __future__ import annotations

from pathlib import Path

from kafkalog import read_view
from tests.support.client_records import write_client_topics
from tests.support.log_builder import LogBuilder


def test_schemas_and_what_deletes_them_are_told(log_dir: Path) -> None:
    write_client_topics(log_dir)
    columns = ["keyType", "subject", "version", "schemaId", "schemaType", "isDeleted", "isLatest"]
    found = read_view("schema_registry", log_dir, columns=columns).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("NOOP", None, None, None, None, True, True),
        ("CONFIG", None, None, None, None, False, True),
        ("SCHEMA", "orders", 1, 1, "AVRO", True, False),
        ("SCHEMA", "orders", 2, 2, "PROTOBUF", True, True),
        ("DELETE_SUBJECT", "orders", 2, None, None, False, True),
        ("SCHEMA", "orders", 3, 1, "AVRO", False, True),
        ("SCHEMA", "clicks", 1, 3, "AVRO", False, False),
        ("SCHEMA", "clicks", 1, 3, "AVRO", True, True),
        ("SCHEMA", "orders", 1, None, None, True, True),
    ]
    columns = ["schema", "schemaReferences", "value"]
    shown = [
        tuple(r.values())
        for r in read_view("schema_registry", log_dir, columns=columns).to_pylist()
    ]
    assert shown[1] == (None, None, '{"compatibilityLevel":"FULL"}')
    assert shown[2] == ('"string"', None, None)
    assert shown[3][1] == '[{"name":"a","subject":"a","version":1}]'


def test_what_is_no_record_of_a_registry_is_a_row_with_an_error(log_dir: Path) -> None:
    schema = '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    records = [
        ("x", "{}"), (None, "{}"), ("{}", "{}"), ('{"keytype":"SCHEMA"}', "{}"), (schema, "{}"),
        (schema, '{"schema":1}'), (schema, '{"schema":"s","id":"1"}'), (schema, "[]"),
        (schema, '{"schema":"s","deleted":1}'),
    ]  # fmt: skip
    LogBuilder(log_dir, "_schemas-0").batch(*records).write()
    table = read_view("schema_registry", log_dir, columns=["error"], mode="PERMISSIVE")
    expected = [
        "not JSON", "key is null", "no keytype", "no subject", "no schema", "not a string",
        "not a whole number", "not an object", "not true or false",
    ]  # fmt: skip
    errors = table["error"].to_pylist()
    assert all(text in error for text, error in zip(expected, errors, strict=True)), errors
