"""What the first record of each control batch says it is, for batches whose bytes are at hand.

Brokers write an end-transaction marker as one uncompressed record. Whatever is not plain (more
records, compressed, a length that does not fit, a key or a marker that is too short or of a
negative version) is UNDECIDED: `log.control_batches` says what it is.

Source: Kafka ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels.big_endian import read_i16
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    I64Array,
    RowArray,
    U8Array,
    helper,
    kernel,
)
from kafkalog.kernels.varints import read_varint, read_varlong

UNDECIDED = -2
EMPTY = -3

_UNDECIDED = UNDECIDED
_EMPTY = EMPTY
# As `format.control_record` numbers them.
_UNKNOWN, _COMMIT, _LAST_KNOWN = -1, 1, 6
_OVERHEAD = constants.RECORD_BATCH_OVERHEAD
_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_MAGIC_V2 = constants.MAGIC_VALUE_V2
_KEY_BYTES = 4
_MARKER_BYTES = 6


@helper
def _plain_type(buf: U8Array, pos: int, end: int) -> int:
    """The type of the only record in buf[pos:end]."""
    # With bytes behind its only record the batch is not as brokers write it.
    length, pos = read_varint(buf, pos, end)
    if pos < 0 or length != end - pos:
        return _UNDECIDED
    _, pos = read_varlong(buf, pos + 1, end)
    if pos < 0:
        return _UNDECIDED
    _, pos = read_varint(buf, pos, end)
    if pos < 0:
        return _UNDECIDED
    length, key = read_varint(buf, pos, end)
    if key < 0 or length < _KEY_BYTES or length > end - key or read_i16(buf, key) < 0:
        return _UNDECIDED
    # The key is version and type, both int16. A version above the known one is read as the known
    # one, as Kafka does; a negative one is not.
    number: int = I64(read_i16(buf, key + 2))
    if number < 0 or number > _LAST_KNOWN:
        return _UNKNOWN
    # Only markers have a value whose form matters here.
    if number > _COMMIT:
        return number
    length, value = read_varint(buf, key + length, end)
    if value < 0 or length < _MARKER_BYTES or length >= end - value or read_i16(buf, value) < 0:
        return _UNDECIDED
    return number


@kernel((U8_IN, I64_IN, I64_IN, ROW_IN, I64_OUT))
def control_types(
    buf: U8Array, starts: I64Array, ends: I64Array, rows: RowArray, types_out: I64Array
) -> int:
    """The types of some control batches.

    in   buf uint8[n] read-only; batch b is buf[starts[b]:ends[b]] as far as it is at hand
         rows BATCH_ROW[b]
    out  types_out int64[b]: a ControlRecordType, EMPTY without records, UNDECIDED
    returns how many are UNDECIDED
    """
    undecided = 0
    for b in range(rows.size):
        start, end = I64(starts[b]), I64(ends[b])
        count = rows[b]["records_count"]
        found = I64(_UNDECIDED)
        if count == 0:
            found = I64(_EMPTY)
        # Only a batch of magic 2 that is whole in hand and not compressed can be read here. A walk
        # over headers has the first bytes of a batch alone, which are enough for a marker and no
        # more.
        elif (
            count == 1
            and rows[b]["magic"] >= _MAGIC_V2
            and (rows[b]["attributes"] & _CODEC_MASK) == 0
            and start >= 0
            and end <= buf.size
            and end - start == rows[b]["size_in_bytes"]
        ):
            found = I64(_plain_type(buf, start + _OVERHEAD, end))
        types_out[b] = found
        undecided += found == _UNDECIDED
    return undecided
