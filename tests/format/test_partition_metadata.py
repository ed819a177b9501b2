from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.partition_metadata import pack_partition_metadata, parse_partition_metadata
from kafkalog.format.uuid_text import parse_uuid

TOPIC_ID = "4L6g3nShT-eMCtK--X86sw"


def test_partition_metadata_has_kafkas_bytes() -> None:
    packed = pack_partition_metadata(TOPIC_ID)
    assert packed == b"version: 0\ntopic_id: 4L6g3nShT-eMCtK--X86sw"
    assert parse_partition_metadata(packed) == TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"version: 0\r\ntopic_id: %s\r\n",
        b"version:   7\ntopic_id:\t%s\nmore: lines\n",
        b"version: 0\ntopic_id: %s==",
    ],
)
def test_partition_metadata_that_kafka_accepts_is_accepted(data: bytes) -> None:
    assert parse_partition_metadata(data % TOPIC_ID.encode()).rstrip("=") == TOPIC_ID


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "one line"),
        (b"version: 0\n", "line 2"),
        (b"version: x\ntopic_id: 4L6g3nShT-eMCtK--X86sw", "line 1"),
        (b"version: -1\ntopic_id: 4L6g3nShT-eMCtK--X86sw", "line 1"),
        (b"version:0\ntopic_id: 4L6g3nShT-eMCtK--X86sw", "line 1"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "line 2"),
        (b"version: 0\ntopic_id: short", "line 2"),
        (b"version: 0\ntopic_id: 4L6g3nShT+eMCtK//X86sw", "line 2"),
        (b"version: 0\ntopic_id: " + b"A" * 5000, "line 2"),
        (b"version: 0\ntopic_id", "line 2"),
    ],
)
def test_malformed_partition_metadata_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        parse_partition_metadata(data, "t-0/partition.metadata")
    assert caught.value.path == "t-0/partition.metadata"


def test_uuid_is_16_bytes_of_url_safe_base64() -> None:
    assert parse_uuid(TOPIC_ID) == bytes.fromhex("e0bea0de74a14fe78c0ad2bef97f3ab3")
    assert parse_uuid(TOPIC_ID[:-1]) is None
    assert parse_uuid("é" * 22) is None


@given(st.binary(max_size=60))
def test_garbage_is_parsed_or_corrupt(data: bytes) -> None:
    with contextlib.suppress(CorruptCheckpointError):
        parse_partition_metadata(data)
