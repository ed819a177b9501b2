"""Columns as text against Python's own, row by row."""

from __future__ import annotations

import base64
import hashlib
import json

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.columns.texts import (
    JSON_ESCAPES,
    TEXT_ESCAPES,
    base64_text,
    bool_text,
    digest_text,
    escape,
    hex_text,
    join,
    join_lists,
    join_unless_null,
    lines_of,
    number_text,
)

SPECIAL = st.sampled_from([b"\n", b"\\", b'"', b"\x00", b"\x7f", b"plain", b"\xc3\xa9", b"\xff"])
ROWS = st.lists(
    st.none() | st.binary(max_size=9) | st.lists(SPECIAL, max_size=6).map(b"".join), max_size=12
)


def column(rows: list[bytes | None]) -> pa.Array:
    """With an offset, as a slice has one."""
    return pa.array([b"before", *rows, b"behind"], pa.binary())[1 : len(rows) + 1]


@given(ROWS)
def test_hex_and_base64_are_pythons(rows: list[bytes | None]) -> None:
    assert hex_text(column(rows)).to_pylist() == [
        r if r is None else r.hex().encode() for r in rows
    ]
    assert base64_text(column(rows)).to_pylist() == [
        row if row is None else base64.b64encode(row) for row in rows
    ]


@given(ROWS)
def test_escaped_text_says_each_byte_and_breaks_no_line(rows: list[bytes | None]) -> None:
    found = escape(column(rows), TEXT_ESCAPES).to_pylist()
    for row, text in zip(rows, found, strict=True):
        if row is None or text is None:
            assert row == text
            continue
        assert not any(byte < 32 or byte == 127 for byte in text)
        # unicode_escape reads our escapes, and leaves all other bytes (as Latin-1)
        assert text.decode("unicode_escape").encode("latin-1") == row


@given(ROWS)
def test_escaped_json_is_read_back(rows: list[bytes | None]) -> None:
    found = escape(column(rows), JSON_ESCAPES).to_pylist()
    for row, text in zip(rows, found, strict=True):
        if row is not None:
            quoted = '"' + text.decode("utf-8", "surrogateescape") + '"'
            assert json.loads(quoted).encode("utf-8", "surrogateescape") == row


def test_many_kinds_of_special_bytes_are_escaped_like_few() -> None:
    everything = bytes(range(256))
    rows = [everything, b"", everything[::-1], b"a\\b"]
    found = escape(column(rows), TEXT_ESCAPES).to_pylist()
    assert [text.decode("unicode_escape").encode("latin-1") for text in found] == rows


def test_joins_take_nulls_as_told() -> None:
    keys = pa.array([b"a", None, b""], pa.binary())
    assert join(b"<", keys, b">").to_pylist() == [b"<a>", b"<>", b"<>"]
    assert join_unless_null(b"<", keys, b">").to_pylist() == [b"<a>", None, b"<>"]
    items = pa.array([b"a", b"b", b"c"], pa.binary())
    assert join_lists(items, np.array([0, 2, 2, 3], np.int32)).to_pylist() == [b"a,b", b"", b"c"]
    assert bytes(lines_of(join(keys, b"\n")[1:])) == b"\n\n"
    assert bytes(lines_of(pa.array([], pa.binary()))) == b""


def test_numbers_flags_and_digests() -> None:
    assert number_text(np.array([-(2**63), 0], np.int64)).to_pylist() == [
        b"-9223372036854775808",
        b"0",
    ]
    assert bool_text(np.array([True, False])).to_pylist() == [b"true", b"false"]
    digests = digest_text(pa.array([b"k", None, b"k"], pa.binary())).to_pylist()
    assert digests[1] is None
    assert digests[0] == digests[2] == b"sha256:" + hashlib.sha256(b"k").hexdigest()[:16].encode()
