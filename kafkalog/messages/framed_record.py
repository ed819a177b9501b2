"""The frame around records of the metadata log and of `__remote_log_metadata`.

 value   frame version uvarint (1) | type uvarint | version uvarint | message, to the end

Source: Kafka AbstractApiMessageSerde.
"""

from __future__ import annotations

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.format.constants import MAX_INT16
from kafkalog.format.varint import pack_unsigned_varint, parse_unsigned_varint

FRAME_VERSION = 1


def parse_frame(value: bytes | memoryview, *, preview: str = "") -> tuple[int, int, int]:
    """(type, version, where the message begins). `preview` says what frame version 0 was.

    Raises CorruptRecordError for a value without a frame, UnsupportedMessageVersionError for
    another frame version.
    """
    frame_version, position = _number(value, 0, "frame version")
    if frame_version != FRAME_VERSION:
        raise UnsupportedMessageVersionError(
            f"frame version {frame_version} is not {FRAME_VERSION}"
            + (f": {preview}" if frame_version == 0 and preview else "")
        )
    api_key, position = _number(value, position, "type")
    version, position = _number(value, position, "version")
    return api_key, version, position


def pack_frame(api_key: int, version: int, message: bytes) -> bytes:
    """A message with its frame in front."""
    return b"".join(map(pack_unsigned_varint, (FRAME_VERSION, api_key, version))) + message


def _number(value: bytes | memoryview, position: int, what: str) -> tuple[int, int]:
    number, after = parse_unsigned_varint(value, position)
    if number > MAX_INT16:
        raise CorruptRecordError(f"{what} {number} is above {MAX_INT16}", position=position)
    return number, after
