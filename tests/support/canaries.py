"""A log dir whose records are full of canaries: words that must not be in any output where
`--redact` is asked for, and a search for them in whatever an output may be.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.format.constants import MAGIC_VALUE_V1, CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Header, Record
from kafkalog.messages.coordinator_record import RecordType
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.messages.schema import Array, FieldType, Message, Primitive, Struct
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_LOG
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.message_encoder import encode_key, encode_value
from tests.support.packing import pack_legacy_entries

_CANARY = "QZkanari"
CODECS = (CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4)


def canary(what: str) -> str:
    """A word that says where it was."""
    return f"{_CANARY}-{what}-canary"


def write_canaries(log_dir: Path) -> None:
    """Records of all kinds, and the coordinators' topics; some of them damaged."""
    _plain_topic(log_dir)
    _old_topic(log_dir)
    _damaged_topic(log_dir)
    _offsets(log_dir)
    _transactions(log_dir)
    _share_state(log_dir)


def _spec(number: int) -> tuple[str | None, str | None, tuple[Header, ...]]:
    headers = (
        (canary("headerkey").encode(), canary("headervalue").encode()),
        (canary("headerkey-null").encode(), None),
    )
    key = None if number % 7 == 6 else f"{canary('key')}{number % 5}"
    value = None if number % 4 == 3 else canary("value")
    return key, value, headers


def _plain_topic(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "plain-0")
    for codec in CODECS:
        log.segment().batch(*(_spec(n) for n in range(9)), codec=codec)
    log.batch(_spec(1), _spec(2), producer_id=7, is_transactional=True)
    log.marker(ControlRecordType.ABORT, 7)
    log.batch(_spec(1), _spec(2), producer_id=8, is_transactional=True)  # and nothing ends it
    log.segment().batch(*(_spec(n) for n in range(9)))
    log.write()
    keyed = LogBuilder(log_dir, "keyed-0")
    for _ in range(3):
        keyed.segment().batch(*(_spec(n) for n in range(6)), codec=CompressionType.GZIP)
    keyed.segment().batch(_spec(1))
    keyed.log_start_offset(4).write()


def _old_topic(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "old-0").segment()
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        base = log.next_offset
        records = [
            Record(base + n, START_MS, canary("key").encode(), canary("value").encode())
            for n in range(3)
        ]
        log.raw(pack_legacy_entries(records, MAGIC_VALUE_V1, codec=codec))
        log.next_offset = base + len(records)
    log.segment().batch(_spec(1))
    log.write()


def _damaged_topic(log_dir: Path) -> None:
    """A wrong checksum, records that break the format under a right one, and a torn tail."""
    log = LogBuilder(log_dir, "damaged-0").segment()
    log.batch(_spec(1), _spec(2)).batch(_spec(1), _spec(2)).batch(_spec(3))
    log.segment().batch(_spec(1)).torn(70).raw(canary("value").encode() * 9)
    path = log.write()
    first = path / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    _, second = log.segments[0].batches[1]
    at = log.segments[0].batches[1][0]
    data[at + second.size_in_bytes - 30] ^= 0x55
    first.write_bytes(data)


# -- the coordinators' topics ----------------------------------------------------------------------


def _offsets(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    records = [_coordinated(known) for known in OFFSETS_TYPES.values()]
    records += [_commit("plain", 0, offset) for offset in (3, 1_000_000)]
    records += [_commit("keyed", 0, 1)]
    busy = [_commit("keyed", 0, 1)] * 1001
    undecodable = [
        (b"\x00\x01" + canary("key").encode(), canary("value").encode()),
        (b"\x00\x63" + canary("key").encode(), canary("value").encode()),
        (encode_key(OFFSETS_TYPES[1].key, _COMMIT), b"\x00\x63" + canary("value").encode()),
        (encode_key(OFFSETS_TYPES[2].key, {"group": canary("group")}), b"\x00\x01\x7f"),
        (canary("key").encode(), None),
    ]
    log.segment().batch(*records, *undecodable)
    log.batch(*busy, timestamp=START_MS)
    log.segment().batch(*records)
    log.write()


_COMMIT = {"group": canary("group"), "topic": "plain", "partition": 0}


def _commit(topic: str, partition: int, offset: int) -> tuple[bytes, bytes]:
    known = OFFSETS_TYPES[1]
    key = {"group": canary("group"), "topic": topic, "partition": partition}
    value = {"offset": offset, "metadata": canary("metadata"), "commitTimestamp": START_MS}
    return encode_key(known.key, key), encode_value(known.value, 3, value)


def _coordinated(known: RecordType) -> tuple[bytes, bytes]:
    """A record of a type with a canary in each text and in all bytes."""
    version = known.value.versions.last
    return (
        encode_key(known.key, _filled(known.key, 0)),
        encode_value(known.value, version, _filled(known.value, version)),
    )


def _filled(message: Message, version: int) -> dict[str, object]:
    return {f.name: _value(f.name, f.type) for f in message.body.fields if version in f.versions}


def _value(name: str, kind: FieldType) -> object:
    if isinstance(kind, Struct):
        return {field.name: _value(field.name, field.type) for field in kind.fields}
    if isinstance(kind, Array):
        return [_value(name, kind.item)]
    if kind is Primitive.STRING:
        return "plain" if "topic" in name.lower() else canary(name)
    if kind is Primitive.BYTES:
        return base64.b64encode(canary(name).encode()).decode()
    if kind is Primitive.UUID:
        return "4L6g3nShT-eMCtK--X86sw"
    return False if kind is Primitive.BOOL else 1


def _transactions(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "__transaction_state-0")
    ongoing = {
        **_filled(TRANSACTION_LOG.value, 1), "producerId": 8, "producerEpoch": 0,
        "transactionTimeoutMs": 60_000, "transactionLastUpdateTimestampMs": START_MS,
        "transactionStartTimestampMs": START_MS,
        "transactionPartitions": [{"topic": "plain", "partitionIds": [0]}],
    }  # fmt: skip
    hangs = (
        encode_key(TRANSACTION_LOG.key, {"transactionalId": canary("transactionalId-open")}),
        encode_value(TRANSACTION_LOG.value, 1, ongoing),
    )
    log.segment().batch(_coordinated(TRANSACTION_LOG), hangs)
    log.segment().batch((canary("key"), None))
    log.write()


def _share_state(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "__share_group_state-0").segment()
    log.batch(*(_coordinated(known) for known in SHARE_STATE_TYPES.values()))
    log.write()


# -- the search ------------------------------------------------------------------------------------


def canaries_in(data: bytes) -> set[str]:
    """The canaries in an output: plain, as hex, as base64, or in a Parquet file."""
    found = set()
    if data[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(data))
        data = repr([table.schema, table.to_pydict()]).encode() + b"".join(_binaries(table))
    for name, pattern in _patterns():
        if pattern in data:
            found.add(name)
    return found


def _binaries(table: pa.Table) -> Iterator[bytes]:
    for column in table.columns:
        if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
            for cell in column.to_pylist():
                yield cell.encode() if isinstance(cell, str) else cell or b""


def _patterns() -> Iterator[tuple[str, bytes]]:
    word = _CANARY.encode()
    yield "plain", word
    yield "hex", word.hex().encode()
    yield "HEX", word.hex().upper().encode()
    yield "hex with blanks", word.hex(" ").encode()
    yield "escaped", "".join(f"\\x{byte:02x}" for byte in word).encode()
    for shift in range(3):
        # The letters that no neighbour takes part in.
        text = base64.b64encode(b"\0" * shift + word)
        yield f"base64 at {shift}", text[4 if shift else 0 : (len(word) + shift) // 3 * 4]
