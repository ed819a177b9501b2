"""A partition of many GiB that takes some MiB of disk: headers with right checksums, holes for
records.

    sparse = SparseLog(log_dir, "big-0")
    sparse.fill(64 * MIB, 16)                  # a segment of 16 batches of 64 MiB
    sparse.fill(64 * KIB, 16384, real={7000: [Record(...), ...]})
    sparse.write_checkpoints()

A batch has RECORDS offsets and no record in its bytes but zeros, so reading its records fails;
`real` ones hold what they are given and stand for the batch of that number. Timestamps are START_MS
plus the offset. Every batch has an entry in both indexes, as with a small index.interval.bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.format import checkpoints
from kafkalog.format.checksum import crc32c
from kafkalog.format.file_names import log_file_name, offset_index_file_name, time_index_file_name
from kafkalog.format.offset_index import pack_offset_index
from kafkalog.format.record import Record
from kafkalog.format.record_batch import (
    CRC_START,
    RecordBatchHeader,
    pack_batch,
    pack_header,
    with_crc,
)
from kafkalog.format.time_index import pack_time_index
from tests.support.log_builder import START_MS

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
RECORDS = 100
# The one offset of `ten_gib` whose record has key "k30"; its neighbours are k0 to k49.
TEN_GIB_OFFSET = 5 * KIB * RECORDS + 7000 * RECORDS + 30
_HEADER_BYTES = 61


class SparseLog:
    """Builds one partition segment by segment; see the module's text."""

    def __init__(self, log_dir: Path, name: str) -> None:
        self.log_dir = log_dir
        self.path = log_dir / name
        self.path.mkdir(parents=True)
        self.next_offset = 0
        self.size_in_bytes = 0

    def fill(
        self, batch_bytes: int, count: int, *, real: Mapping[int, Sequence[Record]] | None = None
    ) -> Path:
        """One segment of `count` batches; returns its .log."""
        base = self.next_offset
        zeros = bytes(batch_bytes - _HEADER_BYTES)
        path = self.path / log_file_name(base)
        with path.open("wb") as file:
            for number in range(count):
                offset = base + number * RECORDS
                file.seek(number * batch_bytes)
                records = (real or {}).get(number)
                if records is None:
                    file.write(_header(offset, batch_bytes, zeros))
                else:
                    file.write(real_batch(records, offset, batch_bytes))
            file.truncate(count * batch_bytes)
        lasts = [base + number * RECORDS + RECORDS - 1 for number in range(1, count)]
        positions = [number * batch_bytes for number in range(1, count)]
        index = pack_offset_index(lasts, positions, base)
        (self.path / offset_index_file_name(base)).write_bytes(index)
        times = pack_time_index([START_MS + last for last in lasts], lasts, base)
        (self.path / time_index_file_name(base)).write_bytes(times)
        self.next_offset = base + count * RECORDS
        self.size_in_bytes += count * batch_bytes
        return path

    def write_checkpoints(self) -> Path:
        topic, _, partition = self.path.name.rpartition("-")
        for name in (checkpoints.HIGH_WATERMARK_FILE, checkpoints.RECOVERY_POINT_FILE):
            lines = checkpoints.pack_offset_checkpoint({(topic, int(partition)): self.next_offset})
            (self.log_dir / name).write_bytes(lines)
        return self.path


def ten_gib(log_dir: Path) -> SparseLog:
    """big-0: 10 GiB in ten segments; in the sixth one batch has records."""
    log = SparseLog(log_dir, "big-0")
    for _ in range(5):
        log.fill(MIB, KIB)
    first = TEN_GIB_OFFSET - 30
    records = [Record(first + i, START_MS + first + i, b"k%d" % i, b"v") for i in range(50)]
    log.fill(64 * KIB, 16 * KIB, real={(first - log.next_offset) // RECORDS: records})
    for _ in range(4):
        log.fill(MIB, KIB)
    log.write_checkpoints()
    return log


def real_batch(records: Sequence[Record], offset: int, batch_bytes: int) -> bytes:
    """A batch of these records and a last one that fills it up, over RECORDS offsets."""
    filler = Record(offset + RECORDS - 1, START_MS + offset + RECORDS - 1, None, b"")
    for length in range(batch_bytes - 2048, batch_bytes):
        whole = [*records, replace(filler, value=b"f" * length)]
        batch = pack_batch(whole, base_offset=offset)
        missing = batch_bytes - len(batch)
        if missing < 64:
            whole[-1] = replace(filler, value=b"f" * (length + missing))
            batch = pack_batch(whole, base_offset=offset)
            if len(batch) == batch_bytes:
                return batch
    raise ValueError(f"no batch of {batch_bytes} bytes")


def _header(offset: int, batch_bytes: int, zeros: bytes) -> bytes:
    header = RecordBatchHeader(
        base_offset=offset,
        batch_length=batch_bytes - 12,
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=RECORDS - 1,
        base_timestamp=START_MS + offset,
        max_timestamp=START_MS + offset + RECORDS - 1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=RECORDS,
    )
    packed = pack_header(header)
    crc = crc32c(packed[CRC_START:] + zeros)
    return with_crc(packed) if not zeros else pack_header(replace(header, crc=crc))
