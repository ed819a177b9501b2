"""The records of compressed batches, decompressed and checked batch by batch.

Nothing of a batch is kept but what is found out of it, so all of them are decompressed into the
same memory, where they are looked at while the nearest caches hold them.

As in `codec_batches`, whatever is not one sound block of zstd or lz4 stops the call, and so does
a batch whose records are not sound: the caller then goes the way that says what is wrong.
"""

from __future__ import annotations

from kafkalog.kernels import status
from kafkalog.kernels.check_records import check_batch
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    ROW_IN,
    U8_IN,
    U8_OUT,
    I64Array,
    RowArray,
    U8Array,
    kernel,
)
from kafkalog.native import codec_functions
from kafkalog.native.codec_batches import decompress_one, functions_found
from kafkalog.native.functions import Lz4Decompress, ZstdDecompress


def check_compressed_records(
    buf: U8Array,
    rows: RowArray,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    rooms: I64Array,
    memory: U8Array,
    max_timestamps_out: I64Array,
    folds_out: I64Array,
) -> int:
    """Check the batches `rows`, up to one that is not sound, has no room in `memory`, or is no
    single block; returns how many were checked.

    in   buf uint8[n]; rows BATCH_ROW[b]; codecs, starts, ends, rooms int64[b] as
         `find_single_blocks` left them
    out  memory uint8[]: undefined; max_timestamps_out, folds_out int64[b] as in `check_records`
    IndexError for a batch that is not within buf, and for arrays that do not fit each other
    """
    arrays = (codecs, starts, ends, rooms, max_timestamps_out, folds_out)
    if any(array.size != rows.size for array in arrays):
        raise IndexError("arrays of batches of different lengths")
    functions = functions_found()
    context = codec_functions.zstd_decompressor() if functions.zstd_decompress else 0
    stopped = _check(
        functions.zstd_decompress, context, functions.lz4_decompress,
        buf, rows, codecs, starts, ends, rooms, memory, max_timestamps_out, folds_out,
    )  # fmt: skip
    if stopped < 0:
        raise IndexError(f"batch {-1 - stopped} is not within the {buf.size} bytes at hand")
    return stopped


@kernel(
    (I64, I64, I64, U8_IN, ROW_IN, I64_IN, I64_IN, I64_IN, I64_IN, U8_OUT, I64_OUT, I64_OUT)
)  # fmt: skip
def _check(
    zstd_function: ZstdDecompress,
    zstd_context: int,
    lz4_function: Lz4Decompress,
    buf: U8Array,
    rows: RowArray,
    codecs: I64Array,
    starts: I64Array,
    ends: I64Array,
    rooms: I64Array,
    memory: U8Array,
    max_timestamps_out: I64Array,
    folds_out: I64Array,
) -> int:
    """As `check_compressed_records`; -1 - b for a batch b that is not within buf."""
    source, target = I64(buf.ctypes.data), I64(memory.ctypes.data)
    for b in range(rows.size):
        # Behind this line nobody looks at places: they are true or the process is gone.
        if starts[b] < 0 or ends[b] < starts[b] or ends[b] > buf.size:
            return -1 - b
        count, size = I64(rows[b]["records_count"]), I64(0)
        # Of an empty batch nobody looks at the bytes, as in Kafka.
        if count != 0:
            if count < 0 or rooms[b] <= 0 or rooms[b] > memory.size:
                return b
            size = decompress_one(
                zstd_function, zstd_context, lz4_function, codecs[b],
                source + starts[b], ends[b] - starts[b], target, rooms[b],
            )  # fmt: skip
            if size < 0:
                return b
        code, _, _, largest, fold = check_batch(memory, rows[b], I64(0), size, count)
        if code != status.OK:
            return b
        max_timestamps_out[b], folds_out[b] = largest, fold
    return rows.size
