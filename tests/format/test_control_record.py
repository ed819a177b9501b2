from __future__ import annotations

import pytest

from kafkalog.errors import CorruptRecordError
from kafkalog.format.control_record import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from kafkalog.format.record_batch import parse_batch
from tests.format.vectors import SPEC_COMMIT_BATCH
from tests.support.packing import pack_control_key, pack_end_transaction_marker, pack_marker_batch

NAMED = [kind for kind in ControlRecordType if kind != ControlRecordType.UNKNOWN]


def test_commit_marker_of_the_specification_parses_and_packs() -> None:
    header, (marker,) = parse_batch(SPEC_COMMIT_BATCH)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert parse_control_type(marker.key) == ControlRecordType.COMMIT
    assert parse_end_transaction_marker(marker.value) == 9
    packed = pack_marker_batch(
        ControlRecordType.COMMIT,
        200,
        5000,
        producer_id=7,
        producer_epoch=3,
        coordinator_epoch=9,
        partition_leader_epoch=5,
    )
    assert packed == SPEC_COMMIT_BATCH


@pytest.mark.parametrize("kind", NAMED)
def test_type_round_trip(kind: ControlRecordType) -> None:
    key = pack_control_key(kind)
    assert parse_control_type(key) == kind


def test_higher_versions_and_extra_bytes_are_read_as_version_0() -> None:
    assert parse_control_type(bytes.fromhex("00090001ffff")) == ControlRecordType.COMMIT
    assert parse_end_transaction_marker(bytes.fromhex("000900000007ffff")) == 7
    assert parse_end_transaction_marker(pack_end_transaction_marker(-1)) == -1


@pytest.mark.parametrize("key", ["00000007", "00007fff", "0000ffff"])
def test_type_without_a_name_is_unknown_not_an_error(key: str) -> None:
    assert parse_control_type(bytes.fromhex(key)) == ControlRecordType.UNKNOWN


@pytest.mark.parametrize(
    ("key", "reason"),
    [(None, "is null"), (b"", "0 bytes"), (b"\0\0\0", "3 bytes"), (b"\xff\xff\0\0", "version -1")],
)
def test_malformed_control_key_is_corrupt(key: bytes | None, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        parse_control_type(key, path="t-0/0.log", position=4, offset=5)
    assert (caught.value.path, caught.value.position, caught.value.offset) == ("t-0/0.log", 4, 5)


@pytest.mark.parametrize(
    ("value", "reason"),
    [(None, "is null"), (b"\0" * 5, "5 bytes"), (b"\x80\0" + bytes(4), "version -32768")],
)
def test_malformed_marker_is_corrupt(value: bytes | None, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        parse_end_transaction_marker(value, position=4)
    assert caught.value.position == 4
