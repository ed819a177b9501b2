"""A file of a KiB that claims 2 GiB costs neither memory nor time: each claim in a process of its
own, whose peak is measured.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.format.compression import compress
from kafkalog.format.compression_framing import XERIAL_HEADER
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.limits import LIMITS, MAX_BATCH_RECORDS
from kafkalog.format.record import Record
from kafkalog.format.record_batch import field_position, pack_batch, with_crc
from kafkalog.format.varint import pack_unsigned_varint, pack_varint
from tests.damage.forging import with_payload
from tests.support.packing import pack_legacy_entries

TWO_GIB = 2**31 - 1
ROOM_MIB = 48
ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 5.0

# Reads the log named, then says how much memory that took at its peak, and how long.
# The peak of its own memory: what getrusage(2) says begins with its parent's.
PROBE = """
import json, sys, time
import kafkalog
from tests.support.peak_memory import peak_mib
from kafkalog.errors import KafkaLogError
sound, claiming = sys.argv[1:]
assert kafkalog.read_records(sound).read_all().num_rows == 1
before, started = peak_mib(), time.process_time()
error = None
try:
    kafkalog.read_records(claiming, verify_checksums=False).read_all()
    kafkalog.read_view("segments", claiming).num_rows
except KafkaLogError as found:
    error = type(found).__name__
print(json.dumps([peak_mib() - before, time.process_time() - started, error]))
"""

RECORD = Record(0, 1, b"key", b"value " * 100)


def _patched(name: str, value: int) -> bytes:
    batch = bytearray(pack_batch([RECORD]))
    struct.pack_into(">i", batch, field_position(name), value)
    return with_crc(batch)


def _record(body: bytes) -> bytes:
    return with_payload(pack_varint(len(body)) + body, records_count=1)


def _legacy_value() -> bytes:
    entry = bytearray(pack_legacy_entries([RECORD], magic=1, codec=0))
    struct.pack_into(">i", entry, len(entry) - len(RECORD.value or b"") - 4, TWO_GIB)
    return bytes(entry)


CLAIMS: dict[str, Callable[[], bytes]] = {
    "batch length": lambda: _patched("batch_length", TWO_GIB),
    "records count": lambda: _patched("records_count", TWO_GIB),
    "record length": lambda: with_payload(pack_varint(TWO_GIB) + b"\0" * 40, records_count=1),
    "key length": lambda: _record(b"\0\0\0" + pack_varint(TWO_GIB) + b"k" * 40),
    "value length": lambda: _record(b"\0\0\0\1" + pack_varint(TWO_GIB) + b"v" * 40),
    "header count": lambda: _record(b"\0\0\0\1\1" + pack_varint(TWO_GIB) + b"h" * 40),
    "header length": lambda: _record(b"\0\0\0\1\1\2" + pack_varint(TWO_GIB) + b"h" * 40),
    "snappy raw": lambda: with_payload(pack_unsigned_varint(TWO_GIB) + b"\0a" * 40, 2),
    "snappy block": lambda: with_payload(XERIAL_HEADER + struct.pack(">i", TWO_GIB), 2),
    "lz4 block": lambda: with_payload(compress(3, b"")[:7] + struct.pack("<I", TWO_GIB), 3),
    "zstd content size": lambda: with_payload(
        bytes.fromhex("28b52ffde0") + struct.pack("<Q", TWO_GIB) + bytes.fromhex("010000"), 4
    ),
    "legacy value length": _legacy_value,
}


def test_every_limit_has_a_reason() -> None:
    assert {limit.most > 0 and bool(limit.reason and limit.held_by) for limit in LIMITS} == {True}
    assert MAX_BATCH_RECORDS * 7 <= MAX_BATCH_BYTES


@pytest.mark.parametrize("what", CLAIMS)
def test_a_small_file_that_claims_2_gib_costs_neither_memory_nor_time(
    tmp_path: Path, what: str
) -> None:
    for name, data in (("sound-0", pack_batch([RECORD])), ("claiming-0", CLAIMS[what]())):
        (tmp_path / name).mkdir()
        assert len(data) < 1024
        # a batch behind it, so that it is no torn tail
        behind = b"" if name == "sound-0" else pack_batch([Record(5_000, 1, b"k", b"v")])
        (tmp_path / name / f"{0:020d}.log").write_bytes(data + behind)
    command = [sys.executable, "-c", PROBE, str(tmp_path / "sound-0"), str(tmp_path / "claiming-0")]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600, cwd=ROOT)
    peak_mib, seconds, error = json.loads(done.stdout)
    assert peak_mib < ROOM_MIB
    assert seconds < MOST_SECONDS
    # a length past the file's end, and a batch behind it, is no torn tail
    assert error in {"CorruptRecordError", "RecordTooLargeError"}
