"""Small tables whose values are nasty: keys that are no UTF-8, nulls, NaN, times before 1970."""

from __future__ import annotations

import random

import pyarrow as pa

from kafkalog.columns.schemas import HEADERS

TIMESTAMP = pa.timestamp("us", "UTC")
KEYS = (
    None, b"", b"k", b"a", b"K1", b"k1", "é".encode(), "käse".encode(), "😀x".encode(), b"\xff\xfe",
    b"\xe2\x82", b"\xed\xa0\x80", b"a\xc3", b"\xf0\x9f\x98", b"\x80\x80b", b"\xf4\x90\x80\x80z",
    b"\xc0\xaf", b"\xe0\x80\x80", b"customer-011", b"12", b" 7 ", b"-3.5", b"2147483648", b"abc",
    b"%a_", b"a\\b", "ß".encode(), "İ".encode(), "ΑΣ".encode(), b"true", b"a\nb\r", b"A\x00B",
    b"\xef\xbf\xbd", b"2024-02-29 12:00:00.5",
)  # fmt: skip
VALUES = (
    None, b"", b'{"order":{"id":7,"ok":true},"tags":["x","y"],"n":null,"status":"new"}',
    '{"status":"dün","a b":1,"order":5}'.encode(), b"not json", b"[1,2,3]", b'{"status":',
    b"\xff{}", b"x y z", b'"text"', b"17", b'{"status":"q\\"uo\\u00e9te\\n","n":12345678901}',
    b' {"status" : true , "n":[{"id":1},{"id":-2}]}', b"{}", b"null",
)  # fmt: skip
TIMES = (
    None, 0, -1, 1, -62_135_596_800_000_000, 253_402_300_799_999_999, 1_709_211_845_123_456,
    1_709_211_845_120_000, 1_709_211_845_000_000, -1_500_000, 951_782_400_000_000,
    1_711_846_800_000_000, 1_735_689_599_999_999, -2_208_988_800_000_001,
)  # fmt: skip
HEADER_LISTS = (
    None,
    [],
    [{"key": "h", "value": b"v"}],
    [{"key": "a", "value": None}, {"key": "ü", "value": b"\xff"}, {"key": "a", "value": b"2"}],
)
DOUBLES = (
    None, 0.0, -0.0, 1.5, 0.1, float("nan"), float("inf"), -1e300, 2.5, 3.4999999, 1e-7,
    123456789.125, -2.5, 0.285, 1.005,
)  # fmt: skip
LONGS = (None, 0, -1, 1, 2**63 - 1, -(2**63), 2**31, 2**53 + 1, 1_709_211_845_123)


def records(rows: int = 60, seed: int = 1) -> pa.Table:
    """As the view of that name; `offset` is unique, so that there is an order."""
    chosen = random.Random(seed)
    columns = {
        "key": [KEYS[row] if row < len(KEYS) else chosen.choice(KEYS) for row in range(rows)],
        "value": [chosen.choice(VALUES) for _ in range(rows)],
        "topic": [chosen.choice(("orders", "accounts", "ünï")) for _ in range(rows)],
        "partition": [chosen.choice((0, 1, 2, 7)) for _ in range(rows)],
        "offset": chosen.sample(range(200), rows),
        "timestamp": [chosen.choice(TIMES) for _ in range(rows)],
        "timestampType": [chosen.choice((0, 1, -1)) for _ in range(rows)],
        "headers": [chosen.choice(HEADER_LISTS) for _ in range(rows)],
    }
    return pa.table(
        columns,
        schema=pa.schema(
            [
                pa.field("key", pa.binary()),
                pa.field("value", pa.binary()),
                pa.field("topic", pa.string(), nullable=False),
                pa.field("partition", pa.int32(), nullable=False),
                pa.field("offset", pa.int64(), nullable=False),
                pa.field("timestamp", TIMESTAMP),
                pa.field("timestampType", pa.int32(), nullable=False),
                pa.field("headers", HEADERS),
            ]
        ),
    )


def batches(rows: int = 40, seed: int = 2) -> pa.Table:
    """As the view of that name, with doubles and the extremes of whole numbers beside."""
    chosen = random.Random(seed)
    columns = {
        "topic": [chosen.choice(("orders", "accounts", "logs")) for _ in range(rows)],
        "partition": [chosen.choice((0, 1, 2)) for _ in range(rows)],
        "baseOffset": [row * 10 for row in range(rows)],
        "recordsCount": [chosen.choice((0, 1, 5, -7, 1_000_003, None)) for _ in range(rows)],
        "codec": [chosen.choice(("none", "gzip", "zstd", None, "Zstd")) for _ in range(rows)],
        "magic": [chosen.choice((0, 1, 2)) for _ in range(rows)],
        "producerEpoch": [chosen.choice((None, 0, 3, 32_000, -1)) for _ in range(rows)],
        "isValid": [chosen.choice((None, True, False)) for _ in range(rows)],
        "share": [DOUBLES[row % len(DOUBLES)] for row in range(rows)],
        "part": [chosen.choice((None, 0.0, 0.5, -1.25, 3.75, 12.0)) for _ in range(rows)],
        "extreme": [LONGS[row % len(LONGS)] for row in range(rows)],
        "crc": [chosen.choice((None, 1, 4_294_967_295)) for _ in range(rows)],
        "maxTimestampMs": [
            chosen.choice((-1, 0, 1_709_211_845_123, 1_709_211_845_999)) for _ in range(rows)
        ],
    }
    types = (
        pa.string(), pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.int8(), pa.int16(),
        pa.bool_(), pa.float64(), pa.float64(), pa.int64(), pa.int64(), pa.int64(),
    )  # fmt: skip
    return pa.table(columns, schema=pa.schema(list(zip(columns, types, strict=True))))


TABLES = {"records": records(), "batches": batches()}
SCHEMAS = {name: table.schema for name, table in TABLES.items()}
