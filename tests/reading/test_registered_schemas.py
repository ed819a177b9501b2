"""Topics as tables, by the schemas in `_schemas`: `kafkalog.sql(…, decode=True)`."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.proto_files import descriptor_set
from kafkalog.payloads.registered import subject_payloads
from kafkalog.reading.registered_schemas import registered_schemas
from tests.support.log_builder import LogBuilder
from tests.support.registered import (
    PART,
    PAYMENT_V1,
    registered,
    schema_records,
    write_registered_topics,
)


@pytest.fixture
def written(log_dir: Path) -> Path:
    write_registered_topics(log_dir)
    return log_dir


def rows(path: Path, query: str, **options: Any) -> list[tuple[Any, ...]]:
    found = kafkalog.sql(path, query, decode=True, **options).to_pylist()
    return [tuple(row.values()) for row in found]


def test_avro_is_read_by_the_schema_it_was_written_with(written: Path) -> None:
    columns = "offset, key, value.id, value.status, value.total, valueSchemaId, valueError"
    found = rows(written, f"SELECT {columns} FROM topic_orders ORDER BY offset")
    assert [row[:-1] for row in found] == [
        (0, "a", 1, "new", 7, 1), (1, "b", 2, None, 9, 3), (2, None, None, None, None, 3),
        (3, None, None, None, None, 9), (4, "d", None, None, None, None),
    ]  # fmt: skip
    errors = [row[-1] for row in found]
    assert errors[:2] == [None, None]
    assert "not Avro of schema 3" in errors[2]
    assert errors[3:] == ["no Avro schema has id 9", None]
    keys = rows(written, "SELECT keyError FROM topic_orders WHERE offset = 2")
    assert keys == [("no frame of a schema registry",)]


def test_json_is_read_by_its_schema(written: Path) -> None:
    query = (
        "SELECT value.user, value.clicks, value.tags, value.any, valueError FROM topic_click_stream"
    )
    found = rows(written, f"{query} ORDER BY offset")
    assert found[:2] == [("u", 3, ["a"], '{"x": [1]}', None), (None,) * 5]
    assert [row[-1] for row in found[2:]] == [
        "not JSON of the schema: $.clicks is str, not integer", "not JSON", "not JSON",
    ]  # fmt: skip


def test_protobuf_is_read_by_the_files_in_the_topic(written: Path) -> None:
    """Into the newest version's first message, by the fields' numbers."""
    query = (
        "SELECT value.id, value.amount.cents, value.at, value.done, valueError FROM topic_payments"
    )
    found = rows(written, f"{query} ORDER BY offset")
    at = dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=dt.UTC)
    assert found[:2] == [("p", 5, at, False, None), ("", None, None, True, None)]
    assert [row[-1] for row in found[2:-1]] == [
        "message shop.Payment.Part, not shop.Payment", "message shop.Refund, not shop.Payment",
        "no Protobuf schema of the subject has id 5", "not Protobuf of shop.Payment",
        "message [3] is not in its schema's file",
    ]  # fmt: skip
    assert found[-1][-1]


def test_a_nested_message_is_read_where_it_is_named(written: Path) -> None:
    payloads = subject_payloads(
        registered_schemas(written), "payments-value", message="shop.Payment.Part"
    )
    assert payloads.decoder().decode(6, PART) == {"sums": [("a", 1)], "state": "DONE"}
    with pytest.raises(CorruptRecordError, match=r"message shop\.Payment, not shop\.Payment\.Part"):
        payloads.decoder().decode(6, PAYMENT_V1)


def test_conditions_on_places_reach_the_reader_and_those_on_payloads_do_not(written: Path) -> None:
    query = "SELECT offset FROM topic_orders WHERE key = 'b' AND offset < 2"
    assert rows(written, query, subscribe="payments") == [(1,)]


def test_deleted_schemas_are_read_and_do_not_count_as_the_latest(log_dir: Path) -> None:
    gone = registered("orders-value", 2, 3, '"int"', deleted=True)
    records = [*schema_records()[:3], gone, (schema_records()[1][0], None)]
    LogBuilder(log_dir, "_schemas-0").batch(*records).write()
    schemas = registered_schemas(log_dir)
    assert schemas.latest("orders-value").schema_id == 1
    assert schemas.subjects() == ["orders-value"]
    assert {v.schema_id for v in schemas.versions} == {1, 2, 3}
    with pytest.raises(InvalidConfigError, match="'orders-key' has no schema; there are: orders-v"):
        schemas.latest("orders-key")


def test_a_schema_that_has_no_columns_leaves_its_side_binary(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = {"references": [{"name": "x", "subject": "x", "version": 1}]}
    itself = {"type": "record", "name": "E", "fields": [{"name": "e", "type": "E"}]}
    bad = [
        registered("a-value", 1, 1, "{"), registered("b-value", 1, 2, "x", schemaType="XML"),
        registered("c-value", 1, 3, "message {", schemaType="PROTOBUF"),
        registered("d-value", 1, 4, '"int"', **missing),
        registered("e-value", 1, 5, json.dumps(itself)),
    ]  # fmt: skip
    LogBuilder(log_dir, "_schemas-0").batch(*bad).write()
    for topic in "abcde":
        LogBuilder(log_dir, f"{topic}-0").batch(("k", "v")).write()
    with caplog.at_level(logging.WARNING):
        assert rows(log_dir, "SELECT value FROM topic_c") == [(b"v",)]
    why = ("is not JSON", "XML, which is not decoded", "not Protobuf", "not there", "holds itself")
    assert all(text in caplog.text for text in why), caplog.text


def test_what_cannot_be_told_apart_or_is_not_there_is_refused(log_dir: Path) -> None:
    LogBuilder(log_dir, "a.b-0").batch(("k", "v")).write()
    with pytest.raises(InvalidConfigError, match="no topic _schemas is there"):
        rows(log_dir, "SELECT 1")
    both = [registered("a.b-value", 1, 1, '"int"'), registered("a_b-value", 1, 1, '"int"')]
    LogBuilder(log_dir, "_schemas-0").batch(*both).write()
    LogBuilder(log_dir, "a_b-0").batch(("k", "v")).write()
    with pytest.raises(InvalidConfigError, match=r"a\.b and a_b would both be table topic_a_b"):
        rows(log_dir, "SELECT 1")


def test_a_bad_batch_is_a_row_of_its_own_in_mode_permissive(written: Path) -> None:
    path = written / "orders-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    ((key, value_error, error),) = rows(
        written, "SELECT key, valueError, error FROM topic_orders", mode="permissive"
    )
    assert (key, value_error) == (None, None)
    assert "checksum" in error


@pytest.mark.parametrize("name", ["../x.proto", "/x.proto", ""])
def test_an_import_does_not_lead_out_of_its_folder(name: str) -> None:
    with pytest.raises(InvalidConfigError, match="no name of a file"):
        descriptor_set('syntax = "proto3";', {name: ""})


def test_a_library_that_is_not_installed_is_named(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    payloads = subject_payloads(registered_schemas(written), "orders-value")
    with pytest.raises(InvalidConfigError, match=r"AVRO needs fastavro: pip install 'kafkalog\[r"):
        payloads.decoder()
