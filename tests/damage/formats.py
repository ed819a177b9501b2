"""Every format of a file on the disk: sound samples, and what is done to read one.

Whatever the bytes are, reading ends in a value, in "need more data" (a value, too), or in a
KafkaLogError; `read` raises nothing else. Logs go both ways: through the plain codec, and through
the kernels.
"""

from __future__ import annotations

import functools
import random
import struct
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.copy_samples import SAMPLES
from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.record_areas import iterate_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.format.checksum import crc32, crc32c
from kafkalog.format.clean_shutdown import parse_clean_shutdown
from kafkalog.format.constants import (
    HEADER_SIZE_UP_TO_MAGIC,
    LEGACY_CRC_START,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    CompressionType,
)
from kafkalog.format.control_record import (
    ControlRecordType,
    parse_control_type,
    parse_end_transaction_marker,
)
from kafkalog.format.file_names import parse_file_name
from kafkalog.format.legacy_record import parse_legacy_entry
from kafkalog.format.meta_properties import parse_meta_properties
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.producer_snapshot import parse_producer_snapshot
from kafkalog.format.quorum_state import parse_quorum_state
from kafkalog.format.record import Record
from kafkalog.format.record_batch import CRC_POSITION, CRC_START, pack_batch
from kafkalog.format.time_index import parse_time_index
from kafkalog.format.transaction_index import parse_transaction_index
from kafkalog.log.index_condition import offset_index_state, time_index_state
from kafkalog.log.metadata_log import read_cluster_settings
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.topic_partition import parse_partition_dir_name
from kafkalog.messages.cluster_metadata import decode_metadata_record
from tests.damage import zookeeper_formats
from tests.damage.forging import RECORDS, around, sound_batch
from tests.format.test_quorum_state import VERSION_0, VERSION_1
from tests.support.packing import pack_legacy_entries, pack_marker_batch
from tests.support.reference.batches import parse_batches

BROKER = SAMPLES / "broker"
MOST_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Format:
    """One format: sound files, how to read a file, and how to make a damaged one's checksum right,
    so that the damage is looked at.
    """

    name: str
    samples: tuple[bytes, ...]
    read: Callable[[bytes], None]
    with_checksum: Callable[[bytes], bytes] = bytes


# -- reading ---------------------------------------------------------------------------------------


@functools.cache
def _scratch() -> Path:
    """A directory in memory, removed when the process ends."""
    memory = Path("/dev/shm")
    keep = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
    _KEPT.append(keep)
    return Path(keep.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
_BUFFERS = ChunkBuffers()
_ARENA = Arena()
_SPANS: list[RecordSpans | None] = [None]


def read_log(data: bytes) -> None:
    """The headers, the chunks with their checksums, and each batch's records whatever its CRC."""
    path = _scratch() / f"{0:020d}.log"
    path.write_bytes(data)
    scan_headers(str(path))
    with suppress(KafkaLogError):
        for chunk in read_chunks(str(path), buffers=_BUFFERS):
            verify_checksums(chunk.buf, chunk.position, chunk.rows)
            for number in range(len(chunk.rows)):
                rows = chunk.rows[number : number + 1]
                with suppress(KafkaLogError):
                    areas = iterate_record_areas(
                        chunk.buf, chunk.position, rows, _ARENA, path=str(path), arena_bytes=1 << 20
                    )
                    for _, area in areas:
                        _SPANS[0] = decode_spans(area, area.rows, str(path), reuse=_SPANS[0])


def read_current_log(data: bytes) -> None:
    read_log(data)
    for _, header, records in parse_batches(data):
        if header.is_control:
            for record in records:
                if parse_control_type(record.key) <= ControlRecordType.COMMIT:
                    parse_end_transaction_marker(record.value)


def read_legacy_log(data: bytes) -> None:
    read_log(data)
    position = 0
    while position + HEADER_SIZE_UP_TO_MAGIC < len(data):
        message, _ = parse_legacy_entry(data, position, verify_inner_checksums=True)
        position += message.size_in_bytes


def read_metadata_snapshot(data: bytes) -> None:
    directory = _scratch() / "__cluster_metadata-0"
    directory.mkdir(exist_ok=True)
    (directory / f"{100:020d}-{1:010d}.checkpoint").write_bytes(data)
    read_cluster_settings(directory)  # says what is wrong, never raises
    for _, header, records in parse_batches(data):
        if not header.is_control:
            for record in records:
                decode_metadata_record(record.value)


def read_offset_index(data: bytes) -> None:
    path = _scratch() / f"{0:020d}.index"
    path.write_bytes(data)
    offset_index_state(path, 0, np.array([0, 100, 5000], np.int64), 10_000)
    parse_offset_index(data, 0).lookup(500)


def read_time_index(data: bytes) -> None:
    path = _scratch() / f"{0:020d}.timeindex"
    path.write_bytes(data)
    time_index_state(path, 0, 1000)
    parse_time_index(data, 0).lookup(500)


def read_names(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    parse_file_name(text)
    parse_partition_dir_name(text)


# -- checksums made right --------------------------------------------------------------------------


def with_batch_checksums(data: bytes) -> bytes:
    """Every batch, as far as lengths lead to one, with the CRC its bytes ask for."""
    patched = bytearray(data)
    position = 0
    while position + RECORD_BATCH_OVERHEAD <= len(patched):
        (length,) = struct.unpack_from(">i", patched, position + 8)
        end = position + LOG_OVERHEAD + length
        if length <= HEADER_SIZE_UP_TO_MAGIC or end > len(patched):
            break
        if patched[position + HEADER_SIZE_UP_TO_MAGIC - 1] >= MAGIC_VALUE_V2:
            crc = crc32c(patched[position + CRC_START : end])
            struct.pack_into(">I", patched, position + CRC_POSITION, crc)
        else:
            crc = crc32(patched[position + LEGACY_CRC_START : end])
            struct.pack_into(">I", patched, position + LOG_OVERHEAD, crc)
        position = end
    return bytes(patched)


def with_snapshot_checksum(data: bytes) -> bytes:
    if len(data) < 6:
        return data
    return data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]


# -- the table -------------------------------------------------------------------------------------


def _typical(paths: Iterable[Path], count: int = 3) -> tuple[bytes, ...]:
    """Of a broker's own files the largest small one, and smaller ones down to the smallest."""
    sizes = {path.stat().st_size: path for path in paths if 0 < path.stat().st_size <= 1024}
    ordered = [sizes[size].read_bytes() for size in sorted(sizes, reverse=True)]
    return tuple(ordered[:: max(1, len(ordered) // count)])


def _legacy(magic: int, codec: int) -> bytes:
    records = [Record(r.offset, r.timestamp, r.key, r.value) for r in RECORDS]
    return b"".join(
        pack_legacy_entries(part, magic=magic, codec=codec) for part in (records[:2], records[2:])
    )


def _logs() -> Iterable[Format]:
    for codec in CompressionType:
        name = f"log magic 2 {codec.name.lower()}"
        yield Format(name, (around(sound_batch(codec)),), read_current_log, with_batch_checksums)
    marker = pack_marker_batch(
        ControlRecordType.COMMIT, 301, 5, producer_id=5, producer_epoch=0, coordinator_epoch=2
    )
    transaction = pack_batch(
        RECORDS, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    yield Format(
        "log of a transaction", (transaction + marker,), read_current_log, with_batch_checksums
    )
    for magic in (0, 1):
        for codec in (0, 1, 2, 3):
            name = f"log magic {magic} {CompressionType(codec).name.lower()}"
            sample = _legacy(magic, codec)
            yield Format(name, (sample,), read_legacy_log, with_batch_checksums)


def _table() -> Iterable[Format]:
    yield from _logs()
    yield Format("offset index", _typical(BROKER.rglob("*.index")), read_offset_index)
    yield Format("time index", _typical(BROKER.rglob("*.timeindex")), read_time_index)
    yield Format(
        "transaction index",
        _typical(BROKER.rglob("*.txnindex")),
        lambda data: _ignore(parse_transaction_index(data, 0)),
    )
    yield Format(
        "producer snapshot",
        _typical(BROKER.rglob("*.snapshot")),
        lambda data: _ignore(parse_producer_snapshot(data)),
        with_snapshot_checksum,
    )
    for name in (
        RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE, LOG_START_OFFSET_FILE, CLEANER_OFFSET_FILE,
    ):  # fmt: skip
        sample = (BROKER / name).read_bytes()
        yield Format(name, (sample,), lambda data: _ignore(parse_offset_checkpoint(data)))
    yield Format(
        "leader-epoch-checkpoint",
        (*_typical(BROKER.rglob("leader-epoch-checkpoint"), 1), b"0\n3\n0 0\n5 100\n9 881204\n"),
        lambda data: _ignore(parse_leader_epoch_checkpoint(data)),
    )
    yield Format(
        "partition.metadata",
        _typical(BROKER.rglob("partition.metadata"), 1),
        lambda data: _ignore(parse_partition_metadata(data)),
    )
    yield Format(
        "meta.properties",
        ((BROKER / "meta.properties").read_bytes(), b"version=0\nbroker.id=5\ncluster.id=a\\=\n"),
        lambda data: _ignore(parse_meta_properties(data)),
    )
    yield Format(
        "quorum-state", (VERSION_0, VERSION_1), lambda data: _ignore(parse_quorum_state(data))
    )
    yield Format(
        "clean shutdown",
        ((BROKER / ".kafka_cleanshutdown").read_bytes(),),
        lambda data: _ignore(parse_clean_shutdown(data)),
    )
    yield Format(
        "metadata snapshot",
        ((BROKER / "bootstrap.checkpoint").read_bytes(),),
        read_metadata_snapshot,
        with_batch_checksums,
    )
    yield Format(
        "metadata record", _metadata_values(), lambda d: _ignore(decode_metadata_record(d))
    )
    for name, samples, read, with_checksum in zookeeper_formats.table():
        yield Format(name, samples, read, with_checksum)
    yield Format(
        "file and directory names",
        (
            b"00000000000000881204.timeindex.cleaned",
            b"00000000000000000100-0000000003.checkpoint.part",
            b"orders-3.0123456789abcdef0123456789abcdef-delete",
        ),
        read_names,
    )


def _metadata_values() -> tuple[bytes, ...]:
    """The values of one record of each type in a broker's metadata log."""
    log = (BROKER / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    by_type: dict[bytes, bytes] = {}
    for _, header, records in parse_batches(log):
        if not header.is_control:
            for record in records:
                by_type.setdefault((record.value or b"")[:2], record.value or b"")
    return tuple(by_type.values())


def _ignore(_: object) -> None:
    """A value is as good as any other."""


@functools.cache
def formats() -> dict[str, Format]:
    """Every format by its name."""
    return {format_.name: format_ for format_ in _table()}


# -- damage ----------------------------------------------------------------------------------------

_ODD = (0, 1, 0x2D, 0x30, 0x39, 0x7F, 0x80, 0xFE, 0xFF)
_WIDE = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**15, 2**16 - 1, 61, 49, 14)


def damaged(format_: Format, rnd: random.Random) -> bytes:
    """One random mutation of a sound file; every other one has its checksums made right."""
    data = bytearray(rnd.choice(format_.samples))
    for _ in range(rnd.choice((1, 1, 1, 2, 3, 8))):
        _mutate(data, rnd)
    return format_.with_checksum(bytes(data)) if rnd.random() < 0.5 else bytes(data)


def _mutate(data: bytearray, rnd: random.Random) -> None:
    how = rnd.randrange(8)
    at = rnd.randrange(len(data)) if data else 0
    if how == 0:
        data[at : at + 1] = bytes([rnd.choice(_ODD)])
    elif how == 1 and data:
        data[at] ^= 1 << rnd.randrange(8)
    elif how == 2:
        data[at : at + rnd.choice((2, 4, 8))] = struct.pack(">I", rnd.choice(_WIDE))
    elif how == 3:
        data[at : at + rnd.randrange(1, 12)] = b""
    elif how == 4:
        data[at:at] = rnd.randbytes(rnd.randrange(1, 12))
    elif how == 5:
        del data[at:]
    elif how == 6:
        data[at:at] = data[at : at + rnd.randrange(1, 80)]
    else:
        data += rnd.choice((b"\n", bytes(12), bytes(300), rnd.randbytes(20), b"\xff" * 17))


def check_damaged(format_: Format, data: bytes) -> str | None:
    """What a reader did that it must not do, None if it kept its promise."""
    try:
        format_.read(data)
    except KafkaLogError:
        return None
    except Exception as error:
        return f"{format_.name}: {type(error).__name__}: {error} for {data.hex()}"
    return None


def try_mutations(format_: Format, seed: int, count: int) -> list[str]:
    """`count` seeded mutations; the promises that were broken."""
    rnd = random.Random(f"{format_.name} {seed}")
    found = (check_damaged(format_, damaged(format_, rnd)) for _ in range(count))
    return [broken for broken in found if broken is not None]
