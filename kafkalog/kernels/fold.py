"""The fold of a batch: a checksum of which records it holds, in which order, by offset and
timestamp.

The rewrite computes it from the source's records, the read-back from what was written.
"""

from __future__ import annotations

import numpy as np

from kafkalog.kernels.jit import inlined


@inlined
def mix_record(fold: np.uint64, offset: int, timestamp: int) -> np.uint64:
    """The fold with one more record; that of none is 0."""
    # The constants are those of splitmix64 (and its golden ratio): odd, so that multiplying loses
    # nothing. What went before is mixed in each time, so order counts as well as content.
    mixed = (fold ^ np.uint64(offset)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed = (mixed ^ np.uint64(timestamp)) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))
