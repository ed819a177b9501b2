"""Compressed batches whose records are checked and not kept, many at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs, is_legacy
from kafkalog.format.constants import RECORD_BATCH_OVERHEAD
from kafkalog.kernels.single_blocks import find_single_blocks

# A batch of more is left to `record_areas`: what is decompressed at once is to stay in a cache.
_MOST_BYTES = 1024 * 1024

_NONE = np.empty(0, np.int64)


def check_compressed(
    buf: NDArray[np.uint8],
    buf_position: int,
    rows: NDArray[np.void],
    arena: Arena,
    max_bytes: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Check the first of these batches, as many as are sound and compressed as most are: (the
    largest timestamp of each, the fold of each), as `kernels.check_records` tells.

    buf uint8[n] holds the batches in full, buf[0] is at buf_position of the file; max_bytes caps
    each batch; what `arena` holds is gone. The others are opened by `iterate_record_areas`, which
    says what is wrong with them.
    """
    batch_codecs = codecs(rows).astype(np.int64)
    if not batch_codecs.any() or is_legacy(rows).any():
        return _NONE, _NONE
    # Late: finding the codecs takes a start of 20 ms, and most logs need none.
    from kafkalog.native.checked_records import check_compressed_records
    from kafkalog.native.codec_batches import decompresses

    if not decompresses(batch_codecs).any():
        return _NONE, _NONE
    starts = rows["position"] - buf_position + RECORD_BATCH_OVERHEAD
    ends = starts - RECORD_BATCH_OVERHEAD + rows["size_in_bytes"]
    first, last, rooms, largest, folds = np.empty((5, rows.size), np.int64)
    find_single_blocks(
        buf, batch_codecs, starts, ends, min(max_bytes, _MOST_BYTES), first, last, rooms
    )
    arena.make_room(_MOST_BYTES)
    done = check_compressed_records(
        buf, rows, batch_codecs, first, last, rooms, arena.data, largest, folds
    )
    return largest[:done], folds[:done]
