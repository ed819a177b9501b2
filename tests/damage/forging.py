"""Ways to damage a batch: its bytes, the fields of its header, the varints of its records, its
compressed stream.

A forgery that should reach the decoder has its length and CRC set right again, as an attacker
would. Everything is made with the plain-Python codecs of `kafkalog.format`, which have their own
tests.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import lz4.frame
import zstandard

from kafkalog.format.compression import compress
from kafkalog.format.compression_framing import XERIAL_HEADER
from kafkalog.format.constants import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, CompressionType
from kafkalog.format.record import Record, pack_records
from kafkalog.format.record_batch import (
    CRC_START,
    HEADER,
    field_position,
    pack_batch,
    with_crc,
)
from kafkalog.format.varint import (
    pack_unsigned_varint,
    pack_varint,
    pack_varlong,
    parse_varint,
    parse_varlong,
)

MIB = 1024 * 1024
RECORDS = [
    Record(10, 1_700_000_000_000, b"key", b"value", ((b"header", b"h"), (b"null", None))),
    Record(12, 1_699_999_999_000, b"tombstone", None),
    Record(13, 1_700_000_000_500, None, b"keyless", ((b"", b""),)),
    Record(200, 1_700_000_100_000, b"", b"empty key, two-byte lengths" * 4),
]


FIRST = pack_batch([Record(0, 1, b"key", b"old"), Record(1, 2, b"first", b"1")])
LAST = pack_batch([Record(300, 3, b"last", b"2")])


@dataclass(frozen=True, slots=True)
class Forgery:
    """A damaged batch (offsets 10 to 200 if its header still says so) and what was done to it."""

    name: str
    batch: bytes


def sound_batch(codec: int = CompressionType.NONE) -> bytes:
    """The batch that forgeries start from."""
    return pack_batch(RECORDS, codec=codec, producer_id=5, producer_epoch=0, base_sequence=0)


def with_payload(payload: bytes, codec: int = 0, *, records_count: int = len(RECORDS)) -> bytes:
    """The header of the sound batch in front of any (compressed) payload, length and CRC right."""
    header = bytearray(sound_batch(codec)[:RECORD_BATCH_OVERHEAD])
    struct.pack_into(">i", header, field_position("records_count"), records_count)
    length = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(payload)
    struct.pack_into(">i", header, field_position("batch_length"), length)
    return with_crc(bytes(header) + payload)


def around(batch: bytes) -> bytes:
    """A segment with a damaged batch in the middle."""
    return FIRST + batch + LAST


# -- the header ------------------------------------------------------------------------------------


def forged_headers(codec: int = CompressionType.NONE) -> Iterator[Forgery]:
    """Every field as 0, -1, its largest, its smallest and an odd value, with a right CRC and with a
    wrong one.
    """
    sound = sound_batch(codec)
    for name in HEADER.names or ():
        position, size = field_position(name), HEADER[name].itemsize
        odd = 0x5DEECE66D5A5A5A5
        values = {
            "0": bytes(size),
            "-1": b"\xff" * size,
            "max": b"\x7f" + b"\xff" * (size - 1),
            "min": b"\x80" + bytes(size - 1),
            "odd": odd.to_bytes(8, "big")[-size:],
            "high byte": bytes([sound[position] ^ 0x40]) + sound[position + 1 : position + size],
        }
        for text, value in values.items():
            batch = sound[:position] + value + sound[position + size :]
            if batch == sound:
                continue
            yield Forgery(f"{name} {text}", batch)
            if position >= CRC_START:
                yield Forgery(f"{name} {text}, CRC right", with_crc(batch))


# -- the records -----------------------------------------------------------------------------------


def varint_places(payload: bytes, count: int) -> Iterator[tuple[str, int, int, bool]]:
    """(name, start, end, is 64 bits) of every varint of the records in `payload`."""
    at = 0
    for number in range(count):

        def place(name: str, start: int, *, wide: bool = False) -> tuple[int, int]:
            value, end = (parse_varlong if wide else parse_varint)(payload, start)
            places.append((f"record {number} {name}", start, end, wide))  # noqa: B023
            return value, end

        places: list[tuple[str, int, int, bool]] = []
        length, body = place("length", at)
        _, cursor = place("timestamp delta", body + 1, wide=True)
        _, cursor = place("offset delta", cursor)
        for name in ("key", "value"):
            size, cursor = place(f"{name} length", cursor)
            cursor += max(size, 0)
        headers, cursor = place("header count", cursor)
        for header in range(headers):
            for name in ("key", "value"):
                size, cursor = place(f"header {header} {name} length", cursor)
                cursor += max(size, 0)
        yield from places
        at = body + length


def forged_varints(codec: int = CompressionType.NONE) -> Iterator[Forgery]:
    """Every varint of the first and the last record as 0, -1, -2, the extremes, one more, one less,
    too long, never ending.
    """
    payload = pack_records(RECORDS, RECORDS[0].offset, RECORDS[0].timestamp)
    for name, start, end, wide in varint_places(payload, len(RECORDS)):
        if name.startswith("record 1"):
            continue
        parse, pack, bits = (
            (parse_varlong, pack_varlong, 64) if wide else (parse_varint, pack_varint, 32)
        )
        value, _ = parse(payload, start)
        forged = {
            str(n): pack(n)
            for n in (0, -1, -2, value + 1, value - 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
            if n != value
        }
        longest = 10 if wide else 5
        forged["too long"] = b"\xff" * longest + b"\x01"
        forged["never ending"] = b"\xff" * 300
        for text, data in forged.items():
            damaged = payload[:start] + data + payload[end:]
            yield Forgery(f"{name} = {text}", with_payload(compress(codec, damaged), codec))


def forged_counts(codec: int = CompressionType.NONE) -> Iterator[Forgery]:
    """Records cut, doubled, followed by more, counted wrong."""
    payload = pack_records(RECORDS, RECORDS[0].offset, RECORDS[0].timestamp)
    for cut in (0, 1, 2, 7, len(payload) // 2, len(payload) - 1):
        yield Forgery(f"records cut at {cut}", with_payload(compress(codec, payload[:cut]), codec))
    yield Forgery("trailing byte", with_payload(compress(codec, payload + b"\0"), codec))
    yield Forgery("records twice", with_payload(compress(codec, payload * 2), codec))
    for count in (1, 3, 5, 1000, 2**31 - 1):
        batch = with_payload(compress(codec, payload), codec, records_count=count)
        yield Forgery(f"{count} records", batch)


# -- the compressed stream -------------------------------------------------------------------------


def forged_streams() -> Iterator[Forgery]:
    """For each codec: cut, every byte of its framing forged, lengths inside that promise too
    much."""
    payload = pack_records(RECORDS, RECORDS[0].offset, RECORDS[0].timestamp)
    for codec in (1, 2, 3, 4):
        name = CompressionType(codec).name.lower()
        stream = compress(codec, payload)
        for cut in sorted({0, 1, 4, 7, 12, 17, 20, len(stream) // 2, len(stream) - 1}):
            yield Forgery(f"{name} cut at {cut}", with_payload(stream[:cut], codec))
        for at in (*range(min(24, len(stream))), *range(len(stream) - 8, len(stream))):
            for value in (0x00, 0x7F, 0xFF):
                if stream[at] != value:
                    damaged = stream[:at] + bytes([value]) + stream[at + 1 :]
                    yield Forgery(f"{name} byte {at} {value:#x}", with_payload(damaged, codec))
        for other in {0, 1, 2, 3, 4, 5, 6, 7} - {codec}:
            batch = bytearray(with_payload(stream, codec))
            batch[field_position("attributes") + 1] = other
            yield Forgery(f"{name} called codec {other}", with_crc(batch))
    huge = pack_unsigned_varint(2**32 - 1)
    for length in (0, -1, 2**31 - 1, MIB):
        block = struct.pack(">i", length)
        yield Forgery(f"snappy block length {length}", with_payload(XERIAL_HEADER + block, 2))
    yield Forgery("raw snappy of 4 GiB", with_payload(huge + b"\x00a", 2))
    inner = struct.pack(">i", len(huge) + 2) + huge + b"\x00a"
    yield Forgery("xerial block of 4 GiB", with_payload(XERIAL_HEADER + inner, 2))
    lz4_header = compress(3, b"")[:7]
    for size in (2**31 - 1, 2**32 - 1, 65537, 0x80000000 | 65536):
        block = struct.pack("<I", size) + b"x" * 40
        yield Forgery(f"lz4 block size {size:#x}", with_payload(lz4_header + block, 3))
    for size in (2**62, 2**32, MIB):
        frame = bytes.fromhex("28b52ffde0") + struct.pack("<Q", size) + bytes.fromhex("010000")
        yield Forgery(f"zstd content size {size}", with_payload(frame, 4))
    window = bytes.fromhex("28b52ffd00f8010000")
    yield Forgery("zstd window of terabytes", with_payload(window, 4))


def bombs() -> Iterator[Forgery]:
    """A few bytes that grow far past the cap, and some that stay below it and promise as many
    records as they could hold.
    """
    sizes = ((256 * MIB, 1, "one record"), (60 * MIB, 60 * MIB // 7, "as many records as fit"))
    for size, count, text in sizes:
        zeros = bytes(size)
        streams = {
            1: compress(1, bytes(4 * MIB)) * (size // (4 * MIB)),
            2: compress(2, zeros[: 96 * MIB]),
            3: lz4.frame.compress(zeros, block_linked=False, store_size=False),
            4: zstandard.ZstdCompressor(level=1).compress(zeros),
        }
        for codec, stream in streams.items():
            name = f"{CompressionType(codec).name.lower()} bomb of {size} bytes, {text}"
            yield Forgery(name, with_payload(stream, codec, records_count=count))


# -- anything --------------------------------------------------------------------------------------


def random_damage(rnd: random.Random, count: int) -> dict[str, bytes]:
    """Segments of a few batches with random bytes changed, cut out, put in; the CRCs of most are
    then made right, so that the damage goes deeper.
    """
    found = {}
    for number in range(count):
        codec = rnd.choice(list(CompressionType))
        payload = bytearray(pack_records(RECORDS, RECORDS[0].offset, RECORDS[0].timestamp))
        kind = rnd.choice(("records", "stream", "header", "segment"))
        if kind == "records":
            payload = _changed(rnd, payload)
        stream = bytearray(compress(codec, bytes(payload)))
        if kind == "stream":
            stream = _changed(rnd, stream)
        batch = bytearray(with_payload(bytes(stream), codec))
        if kind == "header":
            at = rnd.randrange(8, RECORD_BATCH_OVERHEAD)
            batch[at] = rnd.choice((0, 1, 0x7F, 0x80, 0xFF, rnd.randrange(256)))
            if rnd.random() < 0.7:
                batch = bytearray(with_crc(bytes(batch)))
        segment = bytearray(around(bytes(batch)))
        if kind == "segment":
            segment = _changed(rnd, segment)
        found[f"{number} {kind} of codec {codec}"] = bytes(segment)
    return found


def _changed(rnd: random.Random, data: bytearray) -> bytearray:
    data = bytearray(data)
    for _ in range(rnd.choice((1, 1, 2, 5))):
        at = rnd.randrange(len(data)) if data else 0
        how = rnd.randrange(4)
        if how == 0:
            data[at : at + 1] = bytes([rnd.choice((0, 1, 0x7F, 0x80, 0xFF))])
        elif how == 1:
            data[at : at + rnd.randrange(1, 9)] = b""
        elif how == 2:
            data[at:at] = rnd.randbytes(rnd.randrange(1, 9))
        else:
            data[at : at + 8] = rnd.randbytes(8)
    return data
