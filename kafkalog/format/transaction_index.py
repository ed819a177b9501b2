"""Transaction index: the aborted transactions whose marker lies in a segment.

 version i16 (0) | producer_id i64 | first_offset i64 | last_offset i64 | last_stable_offset i64
 34 bytes an entry, no header, no checksum

first_offset is the transaction's first data offset, maybe in an earlier segment; last_offset is the
ABORT marker's, rising strictly through the file. last_stable_offset is what it was when the marker
was appended: a search for aborted transactions may stop at the first entry whose last stable offset
is at or past its end. The file exists only where there is an entry; fewer than 34 bytes at its end
are ignored. Up to Kafka 4.3 only the first byte of the version is looked at.

Source: Kafka AbortedTxn, TransactionIndex; KIP-98.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from kafkalog.errors import CorruptIndexError
from kafkalog.format.buffers import BytesLike, as_view

ABORTED_TXN_VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
TRANSACTION_INDEX_ENTRY_BYTES = _ENTRY.size


@dataclass(frozen=True, slots=True)
class AbortedTxn:
    """One aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse_transaction_index(
    data: BytesLike, base_offset: int, path: str | None = None
) -> list[AbortedTxn]:
    """The entries of a file.

    CorruptIndexError for a version that is not 0, a marker below the segment's base, or markers
    that do not rise.
    """
    view = as_view(data)
    # A crash may leave part of an entry: it is read past, as Kafka does.
    whole = len(view) // _ENTRY.size * _ENTRY.size
    found: list[AbortedTxn] = []
    for position, (version, *offsets) in zip(
        range(0, whole, _ENTRY.size), _ENTRY.iter_unpack(view[:whole]), strict=True
    ):
        entry = AbortedTxn(*offsets)
        # Markers rise, and lie in this segment: an entry is written when its marker is appended.
        least = found[-1].last_offset + 1 if found else base_offset
        if version != ABORTED_TXN_VERSION:
            reason = f"version {version}, known is {ABORTED_TXN_VERSION}"
        elif entry.last_offset < least:
            reason = f"marker offset {entry.last_offset} is below {least}"
        else:
            found.append(entry)
            continue
        raise CorruptIndexError(reason, path=path, position=position)
    return found


def pack_transaction_index(entries: Iterable[AbortedTxn]) -> bytes:
    """The file's bytes."""
    # In the order given: a search stops at the first entry that is past its end, so that one out of
    # order would hide those behind it.
    return b"".join(
        _ENTRY.pack(
            ABORTED_TXN_VERSION,
            entry.producer_id,
            entry.first_offset,
            entry.last_offset,
            entry.last_stable_offset,
        )
        for entry in entries
    )
