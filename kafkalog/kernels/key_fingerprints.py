"""Sixteen bits of the hash of each record's key, by which blocks without a key are told.

The hash is SipHash-2-4 as everywhere here, with a secret that stands in the code: two keys with the
same fingerprint cost a look into a block and nothing else, so nobody gains by crafting them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kafkalog.kernels import status
from kafkalog.kernels.jit import I32_IN, I64, I64_IN, U8_IN, I32Array, I64Array, U8Array, kernel
from kafkalog.kernels.jit import records_out as out
from kafkalog.kernels.siphash import siphash_128

_K0 = np.uint64(int.from_bytes(b"kafkalog", "little"))
_K1 = np.uint64(int.from_bytes(b"key hash", "little"))
_BITS = np.uint64(0xFFFF)


@kernel((U8_IN, I64_IN, I32_IN, out(np.uint16)))
def key_fingerprints(
    buf: U8Array, key_starts: I64Array, key_lengths: I32Array, fingerprints_out: Any
) -> tuple[int, int, int]:
    """Make the fingerprints of keys, in their order; a null key has none.

    in   buf uint8[n] read-only; key_starts int64[r], key_lengths int32[r] as from record_spans
    out  fingerprints_out uint16[>= r], owned by the caller
    returns (fingerprints made, status, index of the key that failed)
    """
    if key_starts.size != key_lengths.size or fingerprints_out.size < key_lengths.size:
        return 0, status.OUTPUT_FULL, 0
    made = 0
    for r in range(key_lengths.size):
        start, length = I64(key_starts[r]), I64(key_lengths[r])
        if length < 0:
            continue
        if start < 0 or start > buf.size or length > buf.size - start:
            return made, status.SPAN_OUT_OF_RANGE, r
        first, _ = siphash_128(buf, start, length, _K0, _K1)
        fingerprints_out[made] = first & _BITS
        made += 1
    return made, status.OK, 0
