"""A topic `_schemas` and topics of its payloads, as a registry's clients write them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from tests.support.log_builder import LogBuilder

AVRO_V1 = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "status", "type": ["null", "string"]}],
}  # fmt: skip
AVRO_V2 = {
    **AVRO_V1,
    "fields": [*AVRO_V1["fields"], {"name": "total", "type": "long", "default": 7}],
}  # type: ignore[misc]
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "user": {"type": "string"}, "clicks": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}}, "any": {},
    },
}  # fmt: skip
COMMON_PROTO = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
PROTO_V1 = """
syntax = "proto3";
package shop;
import "common/money.proto";
import "google/protobuf/timestamp.proto";
message Payment {
  string id = 1; Money amount = 2; google.protobuf.Timestamp at = 3;
  message Part { map<string, int32> sums = 1; enum State { OPEN = 0; DONE = 1; } State state = 2; }
}
message Refund {}
"""
PROTO_V2 = PROTO_V1.replace("= 3;\n", "= 3; bool done = 4;\n")


def framed(schema_id: int, payload: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def registered(subject: str, version: int, id_: int, text: str, **more: Any) -> tuple[str, str]:
    """Key and value of a schema's record."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": id_, "schema": text, "deleted": False}
    return json.dumps(key), json.dumps({**value, **more})


def schema_records() -> list[tuple[str, str]]:
    money = {"name": "common/money.proto", "subject": "money", "version": 1}
    proto = {"schemaType": "PROTOBUF", "references": [money]}
    return [
        registered("orders-value", 1, 1, json.dumps(AVRO_V1)),
        registered("orders-key", 1, 2, '"string"'),
        registered("orders-value", 2, 3, json.dumps(AVRO_V2)),
        registered("click.stream-value", 1, 4, json.dumps(JSON_SCHEMA), schemaType="JSON"),
        registered("money", 1, 5, COMMON_PROTO, schemaType="PROTOBUF"),
        registered("payments-value", 1, 6, PROTO_V1, **proto),
        registered("payments-value", 2, 7, PROTO_V2, **proto),
    ]


# Payment(id="p", amount=Money(cents=5), at=1970-01-01 00:00:03), the file's message 0; of version 2
# Payment(done=true); Payment.Part(sums={"a": 1}, state=DONE), message 0 of that; Refund().
PAYMENT_V1 = b"\0" + b"\x0a\1p" + b"\x12\2\x08\5" + b"\x1a\2\x08\3"
PAYMENT_V2 = b"\0" + b"\x20\1"
PART, REFUND = b"\4\0\0" + b"\x0a\5\x0a\1a\x10\1" + b"\x10\1", b"\2\2"


def write_registered_topics(log_dir: Path) -> None:
    """`_schemas`, and topics `orders`, `click.stream` and `payments`: each has payloads that are
    right and ones that are not."""
    LogBuilder(log_dir, "_schemas-0").batch(*schema_records()).write()
    log = LogBuilder(log_dir, "orders-0")
    log.batch(
        (framed(2, b"\2a"), framed(1, b"\2\2\6new")), (framed(2, b"\2b"), framed(3, b"\4\0\x12")),
        ("c", framed(3, b"\2\2\6new")), (None, framed(9, b"\2")), (framed(2, b"\2d"), None),
    ).write()  # fmt: skip
    clicks = b'{"user": "u", "clicks": 3, "tags": ["a"], "any": {"x": [1]}, "more": 1}'
    wrong = (b'{"clicks": "3"}', b"{", b"\xff")
    log = LogBuilder(log_dir, "click.stream-0")
    log.batch(*((None, framed(4, body)) for body in (clicks, b"{}", *wrong))).write()
    log = LogBuilder(log_dir, "payments-0")
    log.batch(
        (None, framed(6, PAYMENT_V1)), (None, framed(7, PAYMENT_V2)), (None, framed(6, PART)),
        (None, framed(7, REFUND)), (None, framed(5, b"\0")), (None, framed(6, b"\0\x0a\5p")),
        (None, framed(6, b"\2\6")), (None, framed(6, b"")),
    ).write()  # fmt: skip
