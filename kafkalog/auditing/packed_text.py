"""JSON texts that are kept in large numbers, each packed by itself, so that any of them can be had
without the others: some thousand partitions' are most of what an audit would hold in memory.

The format is zlib's (RFC 1950), which has a checksum of its own.
"""

from __future__ import annotations

import zlib

# A text of as many segments as a partition ever has is far below it.
_MOST_BYTES = 1 << 30


def pack_text(text: str) -> bytes:
    """ASCII text, which JSON without `ensure_ascii=False` is, in about a fifth of its bytes; of no
    text no bytes.
    """
    return b"" if not text else zlib.compress(text.encode("ascii"), 1)


def unpack_text(packed: bytes) -> str:
    """What was packed, of no bytes no text; ValueError for anything else, or what is too large."""
    if not packed:
        return ""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(packed, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"not a packed text: {error}") from None
    if not unpacking.eof:
        raise ValueError("a packed text is cut off, or too large")
    return data.decode("ascii")
