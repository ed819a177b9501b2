from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.java_properties import pack_properties, parse_properties
from kafkalog.format.meta_properties import (
    MetaProperties,
    pack_meta_properties,
    parse_meta_properties,
)

TOPIC_ID = "4L6g3nShT-eMCtK--X86sw"
BROKER_FILE = (
    b"#\n#Fri Nov 27 22:04:52 UTC 2026\nnode.id=1\ndirectory.id=aMlluLhQIw4ZCbzFubEoXQ\n"
    b"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
)


def test_meta_properties_of_a_broker_are_read() -> None:
    assert parse_meta_properties(BROKER_FILE) == MetaProperties(
        1, TOPIC_ID, 1, "aMlluLhQIw4ZCbzFubEoXQ"
    )


def test_zookeeper_file_needs_no_id() -> None:
    assert parse_meta_properties(b"version=0\n") == MetaProperties(0, None, None, None)
    assert parse_meta_properties(b"version=0\nbroker.id=5\ncluster.id=any text\\=\\=\n") == (
        MetaProperties(0, "any text==", 5, None)
    )


@pytest.mark.parametrize(
    "meta",
    [
        MetaProperties(1, "abc==", 3, None),
        MetaProperties(1, TOPIC_ID, 0, TOPIC_ID),
        MetaProperties(0, None, 7, None),
    ],
)
def test_meta_properties_round_trip(meta: MetaProperties) -> None:
    assert parse_meta_properties(pack_meta_properties(meta)) == meta


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no version and no broker.id, no node.id, no cluster.id: the file is empty or cut"),
        (bytes(100), "no version"),
        (b"cluster.id=c\nnode.id=1\n", "no version and no broker.id: the file"),
        (b"version=2\n", "version 2 is not known"),
        (b"version=x\n", "version 'x' is no number"),
        (b"version=1\nnode.id=1\n", "required"),
        (b"version=1\ncluster.id=c\n", "required"),
        (b"version=1\ncluster.id=c\nnode.id=-1\n", "node id -1 is negative"),
        (b"version=1\ncluster.id=c\nnode.id=99999999999\n", "is no number"),
        (b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=zz\n", "directory.id 'zz' is no id"),
        (b"version=0\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "is reserved"),
        (b"version=1\ncluster.id=\\u12\n", "line 2"),
    ],
)
def test_malformed_meta_properties_are_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        parse_meta_properties(data, "d/meta.properties")
    assert caught.value.path == "d/meta.properties"


# -- the text they are written in ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (b"a=1\nb:2\nc 3\nd\te\n", {"a": "1", "b": "2", "c": "3", "d": "e"}),
        (b"  a  =  1 2 \n", {"a": "1 2 "}),
        (b"a\nb=\n=c\n", {"a": "", "b": "", "": "c"}),
        (b"# c\n  ! d\n\n \t\na=#1\n", {"a": "#1"}),
        (b"a=1\\\n   2\nb\\\n=3\n", {"a": "12", "b": "3"}),
        (b"a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        (b"a\\=b\\:c\\ d=\\t\\n\\q\\u0041\\u00e9", {"a=b:c d": "\t\nqA\u00e9"}),
        (b"a==1\r\na=2\rb=\xe9", {"a": "2", "b": "\u00e9"}),
        (b"a= = 1", {"a": "= 1"}),
        (b"a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: bytes, pairs: dict[str, str]) -> None:
    assert parse_properties(text) == pairs


@given(st.dictionaries(st.text(st.characters(max_codepoint=0xFFFF)), st.text(max_size=20)))
def test_properties_round_trip(pairs: dict[str, str]) -> None:
    def java(text: str) -> str:  # UTF-16 units, as Java's strings are
        units = text.encode("utf-16-be", "surrogatepass")
        return "".join(chr(high << 8 | low) for high, low in zip(*[iter(units)] * 2, strict=True))

    expected = {java(key): java(value) for key, value in pairs.items()}
    assert parse_properties(pack_properties(expected)) == expected


@given(st.binary(max_size=60))
def test_garbage_is_parsed_or_corrupt(data: bytes) -> None:
    with contextlib.suppress(CorruptCheckpointError):
        parse_meta_properties(data)
