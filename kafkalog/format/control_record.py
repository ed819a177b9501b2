"""Control records: what a batch with the control bit holds instead of data.

 key    version i16 | type i16, more bytes are ignored
 value  of ABORT and COMMIT, the end-transaction marker: version i16 | coordinator_epoch i32, more
 is ignored

Versions above 0 are read as 0, negative ones are wrong. A marker belongs to its data by producer id
alone: since transaction version 2 its epoch is above that of the data. Unknown types are kept
untouched. The values of the other types are KRaft messages.

Source: Kafka ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from kafkalog.errors import CorruptRecordError

_KEY = struct.Struct(">hh")
_END_TRANSACTION_MARKER = struct.Struct(">hi")


class ControlRecordType(IntEnum):
    """The types that have a name; UNKNOWN is not on disk."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


def parse_control_type(
    key: bytes | memoryview | None,
    *,
    path: str | None = None,
    position: int | None = None,
    offset: int | None = None,
) -> ControlRecordType:
    """The type in a control record's key, UNKNOWN for numbers without a name.

    Raises CorruptRecordError for a key that is null, too short or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        found = "null" if key is None else f"{len(key)} bytes long"
        raise CorruptRecordError(
            f"control record key is {found}", path=path, position=position, offset=offset
        )
    # More bytes behind are read past: later versions may add fields.
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecordError(
            f"control record key has version {version}", path=path, position=position, offset=offset
        )
    return (
        ControlRecordType(number)
        if 0 <= number <= ControlRecordType.KRAFT_VOTERS
        else ControlRecordType.UNKNOWN
    )


def parse_end_transaction_marker(
    value: bytes | memoryview | None,
    *,
    path: str | None = None,
    position: int | None = None,
    offset: int | None = None,
) -> int:
    """The coordinator epoch of an ABORT or COMMIT. Raises CorruptRecordError."""
    if value is None or len(value) < _END_TRANSACTION_MARKER.size:
        found = "null" if value is None else f"{len(value)} bytes long"
        raise CorruptRecordError(
            f"end-transaction marker is {found}", path=path, position=position, offset=offset
        )
    version, coordinator_epoch = _END_TRANSACTION_MARKER.unpack_from(value)
    if version < 0:
        raise CorruptRecordError(
            f"end-transaction marker has version {version}",
            path=path,
            position=position,
            offset=offset,
        )
    # A coordinator that was replaced is told by its epoch: a broker refuses its late markers.
    return int(coordinator_epoch)
