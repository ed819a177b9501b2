"""UTF-8 as java.lang.String decodes it, a byte at a time: the slow and obvious reference."""

from __future__ import annotations


def decode_as_java(data: bytes) -> str:
    """One U+FFFD for the longest beginning of a character, for a surrogate, or for one byte."""
    found, at = "", 0
    while at < len(data):
        size = _whole(data, at)
        if size:
            found += data[at : at + size].decode()
        else:
            found += "\ufffd"
            size = _beginning(data, at)
        at += size
    return found


def _whole(data: bytes, at: int) -> int:
    """The bytes of the character at `at`, 0 where none is whole."""
    for size in (1, 2, 3, 4):
        try:
            data[at : at + size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 0


def _beginning(data: bytes, at: int) -> int:
    """How many bytes one U+FFFD stands for."""
    first, rest = data[at], data[at + 1 : at + 4]
    wanted = 1 if 0xC2 <= first <= 0xDF else 2 if 0xE0 <= first <= 0xEF else 3
    if not 0xC2 <= first <= 0xF4:
        return 1
    low, high = {0xE0: (0xA0, 0xBF), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(
        first, (0x80, 0xBF)
    )
    size = 1
    for place, byte in enumerate(rest[: wanted if first == 0xED else wanted - 1]):
        if not (low if place == 0 else 0x80) <= byte <= (high if place == 0 else 0xBF):
            break
        size += 1
    return size
