"""A header that rules its batch out is believed only where its checksum is right."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kafkalog import read_records
from kafkalog.errors import CorruptRecordError
from kafkalog.format.record_batch import field_position
from tests.support.log_builder import LogBuilder

_IS_CONTROL = 0x20


def with_control_bit(log_dir: Path) -> Path:
    """The second of three data batches says that it is one of control."""
    log = LogBuilder(log_dir, "orders-0").batch(("a", "1")).batch(("b", "2")).batch(("c", "3"))
    path = log.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    at = log.segments[0].batches[1][0] + field_position("attributes")
    (attributes,) = struct.unpack_from(">h", data, at)
    struct.pack_into(">h", data, at, attributes | _IS_CONTROL)
    path.write_bytes(data)
    return path.parent


def test_a_damaged_header_does_not_hide_records_without_a_word(log_dir: Path) -> None:
    path = with_control_bit(log_dir)
    with pytest.raises(CorruptRecordError, match="checksum") as caught:
        read_records(path).read_all()
    assert caught.value.offset == 1
    found = read_records(path, columns=["offset", "error"], mode="PERMISSIVE").read_all()
    assert [row["offset"] for row in found.to_pylist() if not row["error"]] == [0, 2]
    assert sum(1 for row in found.to_pylist() if row["error"]) == 1
    # Who does not want checksums believes the headers.
    assert read_records(path, verify_checksums=False).read_all().num_rows == 2
