"""Write what stays of a batch: copied batches, bare headers, and rebuilt batches without
compression.

A rebuilt batch keeps base offset, last offset, producer fields, sequences, leader epoch, codec and
type of its source (brokers rebuild producer state from them). New are its length, count, CRC (left
zero here), horizon bit, and base timestamp (see `encode_records`).

Source: Kafka MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kafkalog.format.constants import (
    COMPRESSION_CODEC_MASK,
    DELETE_HORIZON_FLAG_MASK,
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
)
from kafkalog.format.record_batch import field_position
from kafkalog.kernels import status
from kafkalog.kernels.big_endian import write_i32, write_i64
from kafkalog.kernels.decide_batches import COPY, DROP, EMPTY, NO_HORIZON, REENCODE
from kafkalog.kernels.encode_records import (
    FACTS,
    RECORD_GROWTH_BYTES,
    EncodedRecords,
    copy_range,
    encode_batch,
)
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    ROW_OUT,
    U8_IN,
    U8_OUT,
    I64Array,
    RowArray,
    U8Array,
    helper,
    inlined,
    kernel,
)

# What assemble_batches stops at.
ALL_DONE = 0
OUT_OF_SPACE = 1
NEEDS_ENCODER = 2  # a large compressed batch, or one of records that are encoded again
BAD_RECORD = 3

_BATCH_LENGTH = field_position("batch_length")
_CRC = field_position("crc")
_ATTRIBUTES = field_position("attributes")
_BASE_TIMESTAMP = field_position("base_timestamp")
_MAX_TIMESTAMP = field_position("max_timestamp")
_RECORDS_COUNT = field_position("records_count")


class Decision(NamedTuple):
    """What was decided on a batch; see decide_batches."""

    action: int
    horizon: int
    retained: int
    first_record: int


class Body(NamedTuple):
    """Compressed records made before, bytes[start:end]; their facts begin at facts[at]."""

    bytes: U8Array
    start: int
    end: int
    facts: I64Array
    at: int


@helper
def _set_header(out: U8Array, start: int, attributes: int, made: EncodedRecords, row: Any) -> None:
    """Overwrite the fields of the copied header at out[start:] that a rebuilt batch changes, and
    those of its row; the CRC becomes zero, in the row -1.
    """
    # The row says the same as the header, so that indexes, checks and the read-back go by the row.
    size = made.end - start
    row["crc"] = -1
    row["attributes"] = attributes
    row["base_timestamp"] = made.base_timestamp
    row["max_timestamp"] = made.max_timestamp
    row["size_in_bytes"] = size
    write_i32(out, start + _BATCH_LENGTH, size - LOG_OVERHEAD)
    write_i32(out, start + _CRC, 0)
    out[start + _ATTRIBUTES] = np.uint8(0)  # Kafka knows the low byte only and loses the other
    out[start + _ATTRIBUTES + 1] = np.uint8(attributes)
    write_i64(out, start + _BASE_TIMESTAMP, made.base_timestamp)
    write_i64(out, start + _MAX_TIMESTAMP, made.max_timestamp)
    write_i32(out, start + _RECORDS_COUNT, row["records_count"])


@inlined
def _new_attributes(row: Any, action: int, horizon: int) -> int:
    """An empty batch has no codec and no horizon; a horizon that is not set anew is set still."""
    attributes: Any = row["attributes"] & 0xFF & ~DELETE_HORIZON_FLAG_MASK
    if action == EMPTY:
        attributes &= ~COMPRESSION_CODEC_MASK
    elif horizon != NO_HORIZON:
        attributes |= DELETE_HORIZON_FLAG_MASK
    return int(attributes)


@inlined
def _is_compressed(row: Any) -> bool:
    return bool((row["attributes"] & COMPRESSION_CODEC_MASK) != 0)


@inlined
def _needs_encoder(row: Any, action: int, body: Body) -> bool:
    """Whether a kernel alone cannot write the batch: its records are to be encoded again, or were
    compressed apart from the others.
    """
    # An empty body says that nobody has compressed the batch's records yet: large ones are left to
    # be done by themselves, many small ones are handed over in `bodies`.
    if action == COPY or action == EMPTY:
        return False
    return bool(action == REENCODE or (_is_compressed(row) and body.start == body.end))


@inlined
def _write_batch(
    buf: U8Array, start: int, row: Any, decision: Decision, flags: U8Array, body: Body,
    out: U8Array, w: int, row_out: Any,
) -> EncodedRecords:  # fmt: skip
    """The batch at buf[start:] as it was decided on, to out[w:]. `row_out` is a copy of `row`, and
    what is not as in the source is changed there.
    """
    end = start + I64(row["size_in_bytes"])
    if decision.action == COPY:
        w = copy_range(out, w, buf, start, end)
        return EncodedRecords(I64(status.OK), w, I64(0), I64(0), I64(0))
    records = start + RECORD_BATCH_OVERHEAD
    # The old header first, then the records behind it, then the fields that have changed.
    to = copy_range(out, w, buf, start, records)
    row_out["records_count"] = decision.retained
    if decision.action == EMPTY:
        # Kafka's empty batch has base timestamp -1 and keeps the maximum.
        made = EncodedRecords(I64(status.OK), to, I64(-1), I64(row["max_timestamp"]), I64(0))
        row_out["records_count"] = 0
    elif _is_compressed(row):
        to = copy_range(out, to, body.bytes, body.start, body.end)
        made = EncodedRecords(
            I64(status.OK), to, body.facts[body.at], body.facts[body.at + 1],
            body.facts[body.at + 2],
        )  # fmt: skip
    else:
        made = encode_batch(
            buf, records, end, row, flags, decision.first_record, decision.horizon, out, to
        )
    _set_header(out, w, _new_attributes(row, decision.action, decision.horizon), made, row_out)
    return made


@kernel(
    (
        *(U8_IN, I64, ROW_IN, I64, U8_IN, I64_IN, U8_IN, I64_IN, I64_IN),
        *(U8_OUT, I64, ROW_OUT, I64_OUT, U8_IN, I64_IN, I64_IN),
    )
)
def assemble_batches(
    buf: U8Array,
    buf_position: int,
    rows: RowArray,
    first: int,
    actions: U8Array,
    horizons: I64Array,
    flags: U8Array,
    first_records: I64Array,
    retained: I64Array,
    out: U8Array,
    out_position: int,
    rows_out: RowArray,
    folds_out: I64Array,
    bodies: U8Array,
    body_ends: I64Array,
    facts: I64Array,
) -> tuple[int, int, int, int, int]:
    """Write what stays of batches first, first + 1, … to out, until one of them needs the caller.

    in   buf uint8[n], buf[0] at byte buf_position of its file, holds every batch of rows whole
         actions, horizons, retained, first_records [rows.size]: as decided; flags uint8[r] of the
         partition; out_position: where out[0] goes in the new file
         bodies uint8[m]: compressed records of rebuilt batches; body_ends int64[rows.size * 2]:
         where those of each batch begin and end there, twice the same where it has none; facts
         int64[rows.size * FACTS]: see encode_records
    out  rows_out BATCH_ROW[]: the written batches, positions in the new file, crc -1 where the
         caller must compute it; folds_out int64[]: the fold of each rebuilt batch's records
    returns (why it stopped, next batch, position in out, batches written, status)
    """
    w: Any = I64(0)
    done = 0
    for b in range(first, rows.size):
        row = rows[b]
        decision = Decision(actions[b], horizons[b], retained[b], first_records[b])
        body = Body(bodies, body_ends[2 * b], body_ends[2 * b + 1], facts, b * FACTS)
        if decision.action == DROP:
            continue
        if _needs_encoder(row, decision.action, body):
            return NEEDS_ENCODER, b, w, done, status.OK
        # The most that the batch can take, so that nothing has to be asked while it is written.
        room = row["size_in_bytes"] + row["records_count"] * I64(RECORD_GROWTH_BYTES)
        # Nothing of this batch is written yet: the caller takes what is done and calls again from
        # here.
        if room + body.end - body.start > out.size - w or done == rows_out.size:
            return OUT_OF_SPACE, b, w, done, status.OK
        # The row begins as the source's and is changed with the header: base offset, last offset,
        # producer and sequences stay, for brokers rebuild producer state from them.
        rows_out[done] = row
        rows_out[done]["position"] = out_position + w
        start = row["position"] - buf_position
        made = _write_batch(buf, start, row, decision, flags, body, out, w, rows_out[done])
        if made.status != status.OK:
            return BAD_RECORD, b, w, done, made.status
        folds_out[done] = made.fold
        w = made.end
        done += 1
    return ALL_DONE, rows.size, w, done, status.OK
