"""Jute, the encoding of ZooKeeper's files: fields one behind the other, nothing tagged.

 byte, boolean   1          boolean is 0 or 1
 int, long       4, 8       big-endian, two's complement
 string          int n | n bytes of text; n -1 is null
 buffer          int n | n bytes; n -1 is null, which is not empty
 vector          int n | n items; n -1 is null

Text is encoded per UTF-16 unit: a character outside the basic plane is two surrogates of three
bytes each. No length is trusted: each is held against the bytes that are there.

Source: ZooKeeper BinaryInputArchive, BinaryOutputArchive.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.errors import CorruptRecordError, KafkaLogError

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Acl:
    """Who may do what with a node: 1 read, 2 write, 4 create, 8 delete, 16 admin."""

    perms: int
    scheme: str | None
    id: str | None


OPEN_ACL = (Acl(31, "world", "anyone"),)


class JuteReader:
    """A cursor over bytes. `start` is the place of the first byte in the file, for errors, which
    are of type `error`.
    """

    __slots__ = ("_error", "_path", "_start", "data", "end", "position")

    def __init__(
        self,
        data: bytes,
        *,
        path: str | None = None,
        start: int = 0,
        error: type[KafkaLogError] = CorruptRecordError,
    ) -> None:
        self.data = data
        self.position = 0
        self.end = len(data)
        self._path = path
        self._start = start
        self._error = error

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return self.end - self.position

    def fail(self, reason: str, position: int | None = None) -> KafkaLogError:
        """The error for what is wrong at a position, by default the cursor's."""
        at = self.position if position is None else position
        return self._error(reason, path=self._path, position=self._start + at)

    def take(self, length: int, what: str) -> int:
        """Step over `length` bytes; where they begin. Fails where there are not so many."""
        position = self.position
        # The one place where the cursor moves: all that is read passes this check.
        if not 0 <= length <= self.end - position:
            raise self.fail(f"{what} of {length} bytes, but {self.end - position} are left")
        self.position = position + length
        return position

    def unpack(self, layout: struct.Struct, what: str) -> tuple[int, ...]:
        """Fields of fixed size."""
        return layout.unpack_from(self.data, self.take(layout.size, what))

    def i32(self, what: str = "an int") -> int:
        return int(_INT.unpack_from(self.data, self.take(4, what))[0])

    def i64(self, what: str = "a long") -> int:
        return int(_LONG.unpack_from(self.data, self.take(8, what))[0])

    def boolean(self, what: str = "a boolean") -> bool:
        position = self.take(1, what)
        if self.data[position] > 1:
            raise self.fail(f"{what} is {self.data[position]}, not 0 or 1", position)
        return self.data[position] == 1

    def buffer(self, what: str = "a buffer") -> bytes | None:
        length = self.i32(what)
        if length == -1:
            return None
        position = self.take(length, what)
        return self.data[position : position + length]

    def string(self, what: str = "a string") -> str | None:
        position = self.position
        data = self.buffer(what)
        if data is None:
            return None
        try:
            return _decode(data)
        except UnicodeDecodeError:
            raise self.fail(f"{what} is no text", position) from None

    def text(self, what: str) -> str:
        """A string that must not be null."""
        position = self.position
        value = self.string(what)
        if value is None:
            raise self.fail(f"{what} is null", position)
        return value

    def count(self, what: str, item_bytes: int) -> int:
        """The length of a vector whose items have `item_bytes` at least; null counts as empty."""
        position = self.position
        count = self.i32(what)
        if count == -1:
            return 0
        # A count without the bytes for its items is refused before a list is begun.
        if not 0 <= count <= self.left // item_bytes:
            raise self.fail(f"{count} of {what}, but {self.left} bytes are left", position)
        return count

    def acl(self) -> tuple[Acl, ...]:
        """A vector of ACLs."""
        count = self.count("ACLs", 12)
        return tuple(
            Acl(self.i32("perms"), self.string("scheme"), self.string("id")) for _ in range(count)
        )


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Java's way of writing text: each half of a surrogate pair as three bytes. Joined again by
        # way of UTF-16; a half without its other half becomes U+FFFD.
        text = data.decode("utf-8", "surrogatepass")
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
