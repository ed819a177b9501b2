"""The reader of generated messages against bytes written out by hand."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptRecordError, KafkaLogError, UnsupportedMessageVersionError
from kafkalog.messages.cluster_metadata import MESSAGES, decode_metadata_record
from kafkalog.messages.decoder import UNKNOWN_TAGS, decode_message
from kafkalog.messages.schema import ALL, Array, Field, Message, Primitive, Struct, Versions

P = Primitive
PAIR = Struct((Field("a", P.INT8, ""), Field("b", P.STRING, "", nullable=ALL)))
# Versions 0 and 1 classic, 2 and up flexible.
SAMPLE = Message(
    "Sample",
    1,
    Versions.parse("0-3"),
    Versions.parse("2+"),
    Struct(
        (
            Field("flag", P.BOOL, ""),
            Field("name", P.STRING, "", nullable=Versions.parse("1+")),
            Field("data", P.BYTES, "", nullable=ALL),
            Field("items", Array(P.INT16), "", nullable=ALL),
            Field("pairs", Array(PAIR), ""),
            Field("late", P.UINT16, "", versions=Versions.parse("1+"), default=7),
            Field("one", PAIR, "", nullable=ALL, versions=Versions.parse("3")),
            Field("t", P.INT32, "", tag=0, versions=Versions.parse("2+"), default=-1),
            Field("u", PAIR, "", tag=5, versions=Versions.parse("3"), nullable=ALL),
        )
    ),
    "",
    "",
)
DEFAULTS = {"late": 7, "one": {"a": 0, "b": ""}, "t": -1, "u": {"a": 0, "b": ""}}

CLASSIC = "01 0002 6869 00000001 ff 00000002 0001 ffff 00000001 05 0001 78"
FLEXIBLE = "02 03 6869 02 ff 03 0001 ffff 02 05 02 78 00"
VALUES: dict[str, Any] = {
    "flag": True,
    "name": "hi",
    "data": b"\xff",
    "items": [1, -1],
    "pairs": [{"a": 5, "b": "x"}],
}


@pytest.mark.parametrize(
    ("version", "text", "expected"),
    [
        (0, CLASSIC, {}),
        (1, CLASSIC + "fffe", {"late": 65534}),
        (1, "00 ffff ffffffff ffffffff 00000000 0000",
         {"flag": False, "name": None, "data": None, "items": None, "pairs": [], "late": 0}),
        (2, FLEXIBLE + "0001 00", {"late": 1}),
        (2, FLEXIBLE + "0001 01 00 04 00000009", {"late": 1, "t": 9}),
        # the last of a repeated tag counts, unknown ones are kept, order does not matter
        (2, FLEXIBLE + "0001 03 63 02 abcd 00 04 00000008 00 04 00000009",
         {"late": 1, "t": 9, UNKNOWN_TAGS: ((99, b"\xab\xcd"),)}),
        (2, "00 00 00 00 01 0000 00",
         {"flag": False, "name": None, "data": None, "items": None, "pairs": [], "late": 0}),
        (3, FLEXIBLE + "0001 ff 00", {"late": 1, "one": None}),
        (3, FLEXIBLE + "0001 01 04 00 00 00", {"late": 1, "one": {"a": 4, "b": None}}),
        (3, FLEXIBLE + "0001 ff 01 05 01 00", {"late": 1, "one": None, "u": None}),
        (3, FLEXIBLE + "0001 ff 01 05 05 01 06 02 79 00",
         {"late": 1, "one": None, "u": {"a": 6, "b": "y"}}),
        # the stated size of a tagged field rules
        (2, FLEXIBLE + "0001 01 00 06 00000009 dead", {"late": 1, "t": 9}),
    ],
)  # fmt: skip
def test_fields_are_read_in_every_version(
    version: int, text: str, expected: dict[str, Any]
) -> None:
    decoded = decode_message(SAMPLE, version, bytes.fromhex(text))
    assert decoded == DEFAULTS | VALUES | expected


@pytest.mark.parametrize(
    ("version", "text", "reason"),
    [
        (0, "01 ffff 00000000 00000000 00000000", "name is null"),
        (0, CLASSIC + "00", "1 bytes are left after the last field"),
        (0, CLASSIC[:-3], "string of 1 bytes, but 0 bytes are left"),
        (0, "01 0002 6869 7fffffff", "bytes of 2147483647 bytes"),
        (0, "01 0000 00000000 7fffffff", "2147483647 items, but 0"),
        (2, "02 03 6869 00 ffffffff07", "2147483646 items, but 0"),
        (2, "02 ffffffffff", "longer than 5 bytes"),
        (2, FLEXIBLE + "0001 01 05 01 00", r"tag 5 \(u\) is not in version 2"),
        (2, FLEXIBLE + "0001 01 00 04 0000", "tag 0 of 4 bytes"),
        (2, FLEXIBLE + "0001 01 00 02 00000009", "int32 of 4 bytes, but 2"),
        (2, FLEXIBLE + "0001 ffffffff07", "tagged fields, but 0"),
        (2, "02 838001" + "61" * 20, "string of 16386 bytes, but 20"),
        (2, "02 818002" + "61" * 32768, "string of 32768 bytes"),
    ],
)
def test_bytes_that_are_no_message_say_where_and_why(version: int, text: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        decode_message(SAMPLE, version, bytes.fromhex(text))
    assert caught.value.position is not None


def test_a_version_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedMessageVersionError, match="Sample version 4"):
        decode_message(SAMPLE, 4, b"")


def test_malformed_utf8_is_read() -> None:
    decoded = decode_message(MESSAGES[25], 0, bytes.fromhex("01 00 03 03 61ff"))
    assert decoded == {"reason": "a\ufffd"}


def test_a_count_with_bit_31_is_null() -> None:
    text = "00 00 00 8080808008 01 0000 00"
    assert decode_message(SAMPLE, 2, bytes.fromhex(text))["items"] is None


def test_versions_are_written_as_in_kafkas_definitions() -> None:
    for text, inside, outside in (
        ("0", [0], [1]),
        ("1-2", [1, 2], [0, 3]),
        ("2+", [2, 9], [1]),
        ("none", [], [0, 1]),
    ):
        versions = Versions.parse(text)
        assert all(version in versions for version in inside)
        assert not any(version in versions for version in outside)


@given(st.binary(max_size=60), st.sampled_from(sorted(MESSAGES)), st.integers(0, 3))
def test_any_garbage_is_read_or_refused_by_name(body: bytes, api_key: int, version: int) -> None:
    with contextlib.suppress(KafkaLogError):
        decode_metadata_record(bytes([1, api_key, version]) + body)
