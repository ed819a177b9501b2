"""A file of a KiB that claims 2 GiB costs neither memory nor time: in a process that reads such
files alone, whose peak is measured of each.
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
# Reads the logs named, one after the other, and says of each how much memory that took at its peak,
# how long, and how it ended. A 5 in clear_refs has the peak begin anew (proc(5)).
PROBE = """
import json, sys, time
from pathlib import Path
import kafkalog
from kafkalog.errors import KafkaLogError
from tests.support.peak_memory import peak_mib

def cost(log):
    Path("/proc/self/clear_refs").write_text("5")
    before, started, error = peak_mib(), time.process_time(), None
    try:
        kafkalog.read_records(log, verify_checksums=False).read_all()
        kafkalog.read_view("segments", log).num_rows
    except KafkaLogError as found:
        error = type(found).__name__
    return peak_mib() - before, time.process_time() - started, error

sound, *claiming = sys.argv[1:]
cost(sound)  # what is imported and loaded once
print(json.dumps({log: cost(log) for log in claiming}))
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


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, float, str | None]]:
    """What each claim costs a process that reads nothing but them: MiB, seconds, the error."""
    logs = tmp_path_factory.mktemp("claims")
    paths = {what: logs / str(number) / "claiming-0" for number, what in enumerate(CLAIMS)}
    # a batch behind it, so that it is no torn tail
    behind = pack_batch([Record(5_000, 1, b"k", b"v")])
    for what, path in paths.items():
        data = CLAIMS[what]()
        assert len(data) < 1024
        _write(path, data + behind)
    _write(logs / "sound-0", pack_batch([RECORD]))
    command = [sys.executable, "-c", PROBE, *map(str, (logs / "sound-0", *paths.values()))]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600, cwd=ROOT)
    found = json.loads(done.stdout)
    return {what: found[str(path)] for what, path in paths.items()}


def _write(partition: Path, data: bytes) -> None:
    partition.mkdir(parents=True)
    (partition / f"{0:020d}.log").write_bytes(data)


@pytest.mark.parametrize("what", CLAIMS)
def test_a_small_file_that_claims_2_gib_costs_neither_memory_nor_time(
    costs: dict[str, tuple[float, float, str | None]], what: str
) -> None:
    peak_mib, seconds, error = costs[what]
    assert peak_mib < ROOM_MIB
    assert seconds < MOST_SECONDS
    # a length past the file's end, and a batch behind it, is no torn tail
    assert error in {"CorruptRecordError", "RecordTooLargeError"}
