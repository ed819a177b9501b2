"""Where the records of batches of magic 2 without compression lie, and whether there are as many
bytes as the batches' counts need.

Of a chunk of a few batches the same over columns is a dozen calls of numpy, which take longer than
all that is done to its bytes.
"""

from __future__ import annotations

from kafkalog.format import constants
from kafkalog.kernels.jit import I64, I64_OUT, ROW_IN, I64Array, RowArray, kernel

_CODEC_MASK = constants.COMPRESSION_CODEC_MASK
_MAGIC_V2 = constants.MAGIC_VALUE_V2
_LEAST_RECORD = constants.MIN_RECORD_SIZE
_OVERHEAD = constants.RECORD_BATCH_OVERHEAD


@kernel((ROW_IN, I64, I64_OUT, I64_OUT))
def plain_areas(rows: RowArray, buf_position: int, starts: I64Array, ends: I64Array) -> int:
    """in   rows BATCH_ROW[b]; buf_position: where in the file the buffer begins
    out  starts, ends int64[b]: the records of each batch in the buffer; an empty one has no bytes,
         whatever lies behind its header: Kafka does not look at them
    returns how many batches from the first on are such, b if all are
    """
    for b in range(min(rows.size, starts.size, ends.size)):
        count, start = I64(rows[b]["records_count"]), I64(rows[b]["position"]) - buf_position
        starts[b] = start + _OVERHEAD
        ends[b] = starts[b] if count == 0 else start + I64(rows[b]["size_in_bytes"])
        is_compressed = count != 0 and (I64(rows[b]["attributes"]) & _CODEC_MASK) != 0
        if rows[b]["magic"] < _MAGIC_V2 or is_compressed:
            return b
        if count < 0 or count * _LEAST_RECORD > ends[b] - starts[b]:
            return b
    return rows.size
