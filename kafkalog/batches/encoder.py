"""Rebuilt batches that kernels alone cannot write: compressed, legacy, or with records that must be
encoded again.

What stays of compressed ones is encoded by the same code as uncompressed batches, of many batches
at once, then compressed with the batch's own codec at the codec's default level, whatever the
topic's setting or the producer's level, as Kafka's cleaner does.

Source: Kafka MemoryRecords.filterTo, MemoryRecordsBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.record_areas import RecordAreas
from kafkalog.errors import CorruptRecordError
from kafkalog.format.checksum import crc32c, extend_crc32c
from kafkalog.format.compression import compress
from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    DELETE_HORIZON_FLAG_MASK,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TimestampType,
)
from kafkalog.format.record import Record, pack_records, parse_records
from kafkalog.format.record_batch import (
    BATCH_ROW,
    CRC_POSITION,
    CRC_START,
    RecordBatchHeader,
    pack_batch,
    pack_header,
    parse_header,
)
from kafkalog.kernels.decide_batches import NO_HORIZON
from kafkalog.kernels.encode_records import (
    FACTS,
    RECORD_GROWTH_BYTES,
    encode_records,
    fold_records,
)
from kafkalog.kernels.hash_keys import SUPERSEDED
from kafkalog.kernels.status import STATUS_TEXT


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A whole batch in parts, its BATCH_ROW (position not set) and the fold of its records
    (kernels.fold).
    """

    parts: tuple[memoryview, ...]
    row: np.void
    fold: int


@dataclass(frozen=True, slots=True)
class BatchSource:
    """One batch to rebuild: its row, its uncompressed records, its slice of the flags."""

    row: np.void
    records: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    horizon: int
    retained: int


class BatchEncoder:
    """Rebuilds the records of compressed batches, in memory of its own that is used again."""

    def __init__(self) -> None:
        self._out: NDArray[np.uint8] = np.empty(0, np.uint8)

    def rebuild(
        self,
        areas: RecordAreas,
        flags: NDArray[np.uint8],
        first_records: NDArray[np.int64],
        horizons: NDArray[np.int64],
        *,
        path: str,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The records that stay, not yet compressed, uint8[n], valid until the next call; int64[b]
        where those of each batch end; int64[b * FACTS] as kernels.encode_records tells.

        flags uint8[r]: those of batch b are from first_records[b] on; horizons int64[b]. Otherwise
        the records' encoding is kept.
        """
        rows = areas.rows
        # The most that records can become: what they are, and a longer timestamp delta for each,
        # where a delete horizon takes the base timestamp's place.
        room = int((areas.ends - areas.starts).sum())
        room += int(rows["records_count"].sum()) * RECORD_GROWTH_BYTES
        if self._out.size < room:
            self._out = np.empty(room, np.uint8)
        ends = np.empty(rows.size, np.int64)
        facts = np.empty(rows.size * FACTS, np.int64)
        done, status = encode_records(
            areas.buf,
            areas.starts,
            areas.ends,
            rows,
            flags,
            first_records,
            horizons,
            self._out,
            ends,
            facts,
        )
        if status:
            raise CorruptRecordError(
                f"{STATUS_TEXT[status]}: the file changed while it was read",
                path=path,
                position=int(rows["position"][done]),
                offset=int(rows["base_offset"][done]),
            )
        return self._out, ends, facts


def reencode(source: BatchSource, *, path: str) -> EncodedBatch:
    """The batch without the records that go, each kept record encoded as Kafka encodes it.

    For records that another producer wrote differently: longer varints, other negative lengths for
    null, bits in the attributes byte, header keys that are not UTF-8 (each malformed sequence
    becomes U+FFFD). Slow, and rare.
    """
    row = source.row
    append_time = bool(row["attributes"] & TIMESTAMP_TYPE_MASK)
    records = parse_records(
        source.records,
        int(row["records_count"]),
        base_offset=int(row["base_offset"]),
        base_timestamp=int(row["base_timestamp"]),
        log_append_timestamp=int(row["max_timestamp"]) if append_time else None,
        path=path,
        position=int(row["position"]),
    )
    kept = [
        _with_valid_header_keys(record)
        for record, flag in zip(records, source.flags.tolist(), strict=True)
        if not flag & SUPERSEDED
    ]
    base_timestamp = source.horizon if source.horizon != NO_HORIZON else kept[0].timestamp
    # As a producer would have filled it: base timestamp of the first record that stays, or the
    # horizon; the largest timestamp of those that stay.
    timestamps = np.array([record.timestamp for record in kept], np.int64)
    max_timestamp = int(row["max_timestamp"]) if append_time else int(timestamps.max())
    payload = pack_records(kept, int(row["base_offset"]), base_timestamp)
    offsets = np.array([record.offset for record in kept], np.int64)
    # What the verification compares with, from the records as they were decided on, not as written.
    fold = np.empty(1, np.int64)
    fold_records(offsets, timestamps, np.array([len(kept)]), fold)
    body = compress(int(row["attributes"]) & COMPRESSION_CODEC_MASK, payload)
    facts = (base_timestamp, max_timestamp, int(fold[0]))
    return assemble(row, body, facts, horizon=source.horizon, retained=source.retained)


def convert(source: BatchSource, *, path: str) -> EncodedBatch:
    """What stays of a legacy entry, as a magic 2 batch of its own: from the first record that stays
    to the last, without producer or leader epoch, with the entry's codec and timestamp type.

    Magic 0 becomes create time with timestamps -1. `source.records` are laid out as magic 2 records
    (kernels.legacy_records).
    """
    row = source.row
    records = parse_records(
        source.records,
        int(row["records_count"]),
        base_offset=int(row["base_offset"]),
        base_timestamp=int(row["base_timestamp"]),
        path=path,
        position=int(row["position"]),
    )
    kept = [
        record
        for record, flag in zip(records, source.flags.tolist(), strict=True)
        if not flag & SUPERSEDED
    ]
    append_time = bool(row["attributes"] & TIMESTAMP_TYPE_MASK)
    append_timestamp = int(row["max_timestamp"]) if append_time else None
    # A legacy entry has no batch of its own to keep: the new one reaches from the first record that
    # stays to the last, as Kafka's cleaner converts it.
    data = pack_batch(
        kept,
        codec=int(row["attributes"]) & COMPRESSION_CODEC_MASK,
        timestamp_type=TimestampType(append_time),
        max_timestamp=append_timestamp,
        delete_horizon_ms=source.horizon if source.horizon != NO_HORIZON else None,
    )
    # The row of what was written, not of what was meant: from the very bytes.
    header = parse_header(data)
    new_row = np.zeros(1, BATCH_ROW)
    for name in BATCH_ROW.names or ():
        if name != "position":
            new_row[name] = getattr(header, name)
    offsets = np.array([record.offset for record in kept], np.int64)
    timestamps = np.array([record.timestamp for record in kept], np.int64)
    # With log-append time the batch has one timestamp, whatever deltas its records carry.
    if append_timestamp is not None:
        timestamps[:] = append_timestamp
    fold = np.empty(1, np.int64)
    fold_records(offsets, timestamps, np.array([len(kept)]), fold)
    return EncodedBatch((memoryview(data),), new_row[0], int(fold[0]))


def _with_valid_header_keys(record: Record) -> Record:
    headers = tuple(
        (key.decode("utf-8", "replace").encode(), value) for key, value in record.headers
    )
    return Record(record.offset, record.timestamp, record.key, record.value, headers)


def assemble(
    row: np.void, body: bytes, facts: Sequence[int], *, horizon: int, retained: int
) -> EncodedBatch:
    """Put the header of a rebuilt batch in front of its compressed records. `row`: the source's;
    facts: see kernels.encode_records.
    """
    base_timestamp, max_timestamp, fold = facts
    # Kafka knows the low byte of the attributes only, and a horizon that stays is set below.
    attributes = int(row["attributes"]) & 0xFF & ~DELETE_HORIZON_FLAG_MASK
    if horizon != NO_HORIZON:
        attributes |= DELETE_HORIZON_FLAG_MASK
    header = RecordBatchHeader(
        base_offset=int(row["base_offset"]),
        batch_length=RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(body),
        partition_leader_epoch=int(row["partition_leader_epoch"]),
        magic=int(row["magic"]),
        crc=0,
        attributes=attributes,
        last_offset_delta=int(row["last_offset"] - row["base_offset"]),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=int(row["producer_id"]),
        producer_epoch=int(row["producer_epoch"]),
        base_sequence=int(row["base_sequence"]),
        records_count=retained,
    )
    # Header and body stay apart: a batch may be large, and memory holds it in several forms as it
    # is.
    head = bytearray(pack_header(header))
    crc = extend_crc32c(crc32c(bytes(head[CRC_START:])), body)
    head[CRC_POSITION:CRC_START] = crc.to_bytes(4, "big")
    new_row = row.copy()
    new_row["crc"] = crc
    new_row["attributes"] = attributes
    new_row["base_timestamp"] = base_timestamp
    new_row["max_timestamp"] = max_timestamp
    new_row["records_count"] = retained
    new_row["size_in_bytes"] = len(head) + len(body)
    return EncodedBatch((memoryview(head), memoryview(body)), new_row, fold)
