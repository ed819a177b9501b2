"""Topics as tables, by the schemas in `_schemas`: `kafkalog.sql(…, decode=True)`."""

from __future__ import annotations

import datetime as dt
import json
import logging
import struct
import sys
from hashlib import md5
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kafkalog
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from kafkalog.payloads.proto_files import descriptor_set
from kafkalog.payloads.registered import subject_payloads
from kafkalog.reading.registered_schemas import registered_schemas
from tests.support.log_builder import LogBuilder
from tests.support.registered import (
    AVRO_V1,
    PART,
    PAYMENT_V1,
    framed,
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


PROTO = (
    'syntax = "proto3"; package shop; message Payment { string id = 1; }'
    " message Cents { int64 n = 1; } message Nothing {}"
    " message Refund { string reason = 1; int64 cents = 2; }"
)
ORDER_GUID = UUID(md5(json.dumps(AVRO_V1).encode()).hexdigest()).bytes


def test_a_schema_is_named_in_a_header_by_its_guid_or_id(written: Path) -> None:
    """As serializers write it with a header's serializer of ids: the payload has no frame then."""
    order, named = b"\2\2\6new", b"__value_schema_id"
    headers = [
        [(named, b"\1" + ORDER_GUID)],
        [(b"trace", b"x"), (named, b"\1" + bytes(16)), (named, struct.pack(">bI", 0, 1))],
        [(named, b"\1" + bytes(16))],
        [(named, None), (b"__key_schema_id", struct.pack(">bI", 0, 2))],
    ]
    log = LogBuilder(written, "orders-1")
    log.batch(*((framed(2, b"\2a"), order, each) for each in headers[:3]))
    log.batch((b"\2a", framed(1, order), headers[3]), (None, b"\1" + ORDER_GUID + order)).write()
    columns = "value.id, value.status, valueSchemaId, valueError, key, keyError"
    found = rows(written, f"SELECT {columns} FROM topic_orders WHERE partition = 1 ORDER BY offset")
    unknown = "no schema of the subject's kind has GUID 00000000-0000-0000-0000-000000000000"
    assert found == [
        (1, "new", 1, None, "a", None), (1, "new", 1, None, "a", None),
        (None, None, None, unknown, "a", None), (1, "new", 1, None, "a", None),
        (1, "new", 1, None, None, None),
    ]  # fmt: skip


# What the serializers of Confluent's client for Python 2.16 wrote, with its header's serializer of
# ids, in a registry that gave the schemas these GUIDs.
WRITTEN = {
    "orders": (
        ("db113eba-e6d5-4f80-afa8-ab4559abd9b3", "AVRO", json.dumps(AVRO_V1)),
        b"\x02\x02\x06new",
        b"\x01\xdb\x11>\xba\xe6\xd5O\x80\xaf\xa8\xabEY\xab\xd9\xb3",
    ),
    "refunds": (
        ("e6c4dcd9-f469-4b70-85a4-ac2ae51cd094", "PROTOBUF", PROTO),
        b"\n\x01r\x10\x07",
        b"\x01\xe6\xc4\xdc\xd9\xf4iKp\x85\xa4\xac*\xe5\x1c\xd0\x94\x02\x06",
    ),
    "clicks": (
        (
            "71e5e862-4397-49a3-9468-e176894a080d",
            "JSON",
            '{"type": "object", "properties": {"user": {"type": "string"}}}',
        ),
        b'{"user":"u"}',
        b"\x01q\xe5\xe8bC\x97I\xa3\x94h\xe1v\x89J\x08\r",
    ),
}


def test_payloads_of_confluents_serializers_are_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "_schemas-0")
    for number, (topic, (schema, payload, frame)) in enumerate(WRITTEN.items(), 1):
        guid, kind, text = schema
        log.batch(registered(f"{topic}-value", 1, number, text, schemaType=kind, guid=guid))
        named = [(b"__value_schema_id", frame)]
        LogBuilder(log_dir, f"{topic}-0").batch((None, payload, named)).write()
    log.write()
    assert rows(log_dir, "SELECT value.id, value.status FROM topic_orders") == [(1, "new")]
    assert rows(log_dir, "SELECT value.reason, value.cents FROM topic_refunds_shop_Refund") == [
        ("r", 7)
    ]
    assert rows(log_dir, "SELECT value.user FROM topic_clicks") == [("u",)]


def test_further_messages_of_a_file_have_tables_of_their_own(log_dir: Path) -> None:
    """Not the ones that are parts of others, or have no fields; the place of the message in its
    file stands behind the schema's id, in a header too."""
    text = PROTO.replace("int64 cents = 2", "Cents sum = 2")
    record = registered("payments-value", 1, 6, text, schemaType="PROTOBUF")
    LogBuilder(log_dir, "_schemas-0").batch(record).write()
    guid = UUID(md5(text.encode()).hexdigest()).bytes
    in_header = [(b"__value_schema_id", b"\1" + guid + b"\2\6")]
    refund = b"\x0a\1r" + b"\x12\2\x08\7"
    LogBuilder(log_dir, "payments-0").batch(
        (None, framed(6, b"\0\x0a\1p")), (None, framed(6, b"\2\6" + refund)),
        (None, refund, in_header),
    ).write()  # fmt: skip
    other = "message shop.Payment, not shop.Refund"
    query = "SELECT value.reason, value.sum.n, valueError FROM topic_payments_shop_Refund"
    expected = [(None, None, other), ("r", 7, None), ("r", 7, None)]
    assert rows(log_dir, f"{query} ORDER BY offset") == expected
    assert rows(log_dir, "SELECT value.id FROM topic_payments WHERE valueError IS NULL") == [("p",)]
    tables = [name for _, name, _ in rows(log_dir, "SHOW TABLES") if name.startswith("topic_")]
    assert tables == ["topic_payments", "topic_payments_shop_Refund"]


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
