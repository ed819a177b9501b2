"""One transaction log, entry by entry, and what is wrong with it.

A server that starts takes the first thing it cannot read for the log's end, without a word, unless
the checksum alone is wrong. A reader of a dead one wants what is behind it, and to know that
something is missing: so damage is reported and the next sound entry is looked for. Whatever only
the last write can leave is a torn tail and no damage: an entry that is cut off, or whose end is not
written yet, with nothing behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.checksum import adler32
from kafkalog.format.limits import MAX_ZOOKEEPER_TXN_BYTES
from kafkalog.format.zookeeper_log import (
    ENTRY_END,
    ENTRY_HEADER,
    FILE_HEADER,
    TXN_HEADER,
    Transaction,
    parse_log_header,
    parse_transaction,
)

# How far the next sound entry is looked for behind damage.
SEARCH_BYTES = 4 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
# The high half of a checksum is zero, the length is at least that of a transaction's header.
_ENTRY_START = re.compile(rb"(?=\x00{4}.{4}[\x00\x01].{3})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _NoEntry:
    """Why there is no entry; `is_damage` is what no unfinished write can leave."""

    why: str
    is_damage: bool = False


_CLEAN_END = _NoEntry("bytes behind the end of the log")


class TxnLogFile:
    """The transactions of a log in the file's order; `problems` are complete when iteration ends.

    `problems` are damage, each a sentence with its place; `torn` says what is cut off at the end,
    None if the end is clean. `end` is the position behind the last sound entry.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.torn: str | None = None
        self.end = 0

    def __iter__(self) -> Iterator[Transaction]:
        try:
            with self.path.open("rb") as file:
                yield from self._transactions(file)
        except OSError as error:
            self.problems.append(f"{self.path}: {error.strerror or error}")

    def _transactions(self, file: BinaryIO) -> Iterator[Transaction]:
        header = file.read(FILE_HEADER.size)
        if len(header) < FILE_HEADER.size:
            self.torn = f"{self.path}: {len(header)} bytes, less than a header"
            return
        try:
            parse_log_header(header, str(self.path))
        except KafkaLogError as error:
            self.problems.append(str(error))
            return
        position: int | None = FILE_HEADER.size
        while position is not None:
            self.end = position
            found = self._entry(file, position)
            if isinstance(found, Transaction):
                yield found
                position = file.tell()
            else:
                position = self._behind(file, position, found)

    def _entry(self, file: BinaryIO, position: int) -> Transaction | _NoEntry:
        head = file.read(ENTRY_HEADER.size)
        if len(head) < ENTRY_HEADER.size:
            return _NoEntry("the file ends within an entry's header") if any(head) else _CLEAN_END
        checksum, length = ENTRY_HEADER.unpack(head)
        if checksum == 0 and length == 0:
            return _CLEAN_END
        if not 0 < length <= MAX_ZOOKEEPER_TXN_BYTES:
            return _NoEntry(f"an entry of {length} bytes", is_damage=True)
        body = file.read(length + 1)
        if len(body) <= length:
            return _NoEntry(f"the file ends within an entry of {length} bytes")
        if body[length] != ENTRY_END:
            return _NoEntry(f"an entry of {length} bytes ends with {body[length]:#04x}, not 0x42")
        if checksum != adler32(memoryview(body)[:length]):
            why = f"the checksum of an entry of {length} bytes does not agree"
            return _NoEntry(why, is_damage=True)
        try:
            return parse_transaction(
                body[:length], path=str(self.path), position=position, checksum=checksum
            )
        except CorruptRecordError as error:
            return _NoEntry(error.reason, is_damage=True)

    def _behind(self, file: BinaryIO, position: int, found: _NoEntry) -> int | None:
        """Where the log goes on behind what is no entry; None at its end, clean, torn or not."""
        start = position + 1
        if found is _CLEAN_END:
            first = self._first_byte(file, position)
            if first is None:
                return None
            # The zeros that a checksum begins with cannot be distinguished from the ones before it.
            start = max(position, first - 7)
        file.seek(start)
        following = _next_entry(file.read(SEARCH_BYTES))
        if following is not None:
            self._report(position, f"{found.why}; the next entry is at {start + following}")
            file.seek(start + following)
            return start + following
        if found is _CLEAN_END or found.is_damage:
            self._report(position, found.why)
        else:
            self.torn = f"{self.path} @ {position}: {found.why}"
        return None

    def _first_byte(self, file: BinaryIO, position: int) -> int | None:
        """Of what is behind the end of the data the first byte that is not zero."""
        file.seek(position)
        at = position
        while piece := file.read(_PIECE_BYTES):
            stripped = piece.lstrip(b"\x00")
            if stripped:
                return at + len(piece) - len(stripped)
            at += len(piece)
        return None

    def _report(self, position: int, what: str) -> None:
        self.problems.append(f"{self.path} @ {position}: {what}")


def _next_entry(data: bytes) -> int | None:
    """Where the first sound entry begins in `data`."""
    for match in _ENTRY_START.finditer(data):
        at = match.start()
        checksum, length = ENTRY_HEADER.unpack_from(data, at)
        end = at + ENTRY_HEADER.size + length
        if length < TXN_HEADER.size or end >= len(data) or data[end] != ENTRY_END:
            continue
        if adler32(memoryview(data)[at + ENTRY_HEADER.size : end]) == checksum:
            return at
    return None
