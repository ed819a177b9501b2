"""One record of `__consumer_offsets` to numbers and spans.

 key     i16 type (0, 1) | group: i16 length, bytes | topic: i16 length, bytes | partition i32
 value   i16 version | offset i64 | leader epoch i32 (3+) | metadata | commit timestamp i64
         | expire timestamp i64 (1) | tagged section (4)
         metadata: i16 length, bytes; in version 4 uvarint length + 1, bytes

A record becomes FIELDS words; `messages.group_records` has the same layout as a table.

Source: OffsetCommitKey.json, OffsetCommitValue.json.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkalog.kernels.big_endian import read_i16, read_i32, read_i64
from kafkalog.kernels.jit import I64Array, U8Array, helper
from kafkalog.kernels.varints import read_uvarint

# What a record is: another one of the topic; a commit; a tombstone; bytes that are no commit's key;
# a commit's key with a value that is none, or of a version that is not known.
OTHER = 0
COMMIT = 1
TOMBSTONE = 2
UNREADABLE = 3
BROKEN = 4

# Words of a record. The first KEPT ones are kept of a key's latest record, with three more.
(
    KIND, PARTITION, OFFSET, LEADER_EPOCH, COMMIT_TIMESTAMP, EXPIRE_TIMESTAMP, TOPIC_ID_HIGH,
    TOPIC_ID_LOW, METADATA_LENGTH, METADATA_START, GROUP_START, GROUP_LENGTH, TOPIC_START,
    TOPIC_LENGTH, FIELDS,
) = range(15)  # fmt: skip
KEPT = METADATA_START
RECORD_OFFSET, RECORD_BYTES, STATE, WIDTH = range(KEPT, KEPT + 4)

NO_TIMESTAMP = -1
NO_EPOCH = -1

_NEWEST_VERSION = 4
_UUID_BYTES = 16


class Spans(NamedTuple):
    """Where the records' keys and values are."""

    keys: U8Array
    values: U8Array
    key_starts: I64Array
    key_lengths: I64Array
    value_starts: I64Array
    value_lengths: I64Array


@helper
def _read_key(buf: U8Array, pos: int, end: int, out: I64Array, at: int) -> bool:
    """Group, topic and partition behind the type; whether they are there."""
    for field in range(2):
        if end - pos < 2:
            return False
        length = read_i16(buf, pos)
        pos += 2
        if length < 0 or length > end - pos:
            return False
        out[at + GROUP_START + 2 * field] = pos
        out[at + GROUP_LENGTH + 2 * field] = length
        pos += length
    if end - pos < 4:
        return False
    out[at + PARTITION] = read_i32(buf, pos)
    return True


@helper
def _read_topic_id(buf: U8Array, pos: int, end: int, out: I64Array, at: int) -> bool:
    """The tagged section of version 4: tag 0 is the topic's id; whether it is one."""
    # A tagged field has two bytes at least, tag and size: more of them than the bytes could hold
    # are refused before the loop.
    count, pos = read_uvarint(buf, pos, end)
    if pos < 0 or 2 * count > end - pos:
        return False
    for _ in range(count):
        tag, pos = read_uvarint(buf, pos, end)
        if pos < 0:
            return False
        size, pos = read_uvarint(buf, pos, end)
        if pos < 0 or size > end - pos:
            return False
        if tag == 0:
            if size < _UUID_BYTES:
                return False
            out[at + TOPIC_ID_HIGH] = read_i64(buf, pos)
            out[at + TOPIC_ID_LOW] = read_i64(buf, pos + 8)
        pos += size
    return True


@helper
def _read_value(buf: U8Array, pos: int, end: int, type_: int, out: I64Array, at: int) -> bool:
    """The value from its version on; whether it is one."""
    # Version 0: offset, metadata, commit timestamp. 1 adds the expire timestamp behind them, 2
    # takes it away again, 3 adds the leader epoch behind the offset, 4 is compact and has tagged
    # fields.
    if end - pos < 10:
        return False
    version = read_i16(buf, pos)
    if version < 0 or version > (_NEWEST_VERSION if type_ == 1 else 0):
        return False
    out[at + OFFSET] = read_i64(buf, pos + 2)
    pos += 10
    if version >= 3:
        if end - pos < 4:
            return False
        out[at + LEADER_EPOCH] = read_i32(buf, pos)
        pos += 4
    if version == 4:
        # A compact string has its length plus one; no string is longer than an int16 says.
        length, pos = read_uvarint(buf, pos, end)
        length -= 1
        if pos < 0 or length > 0x7FFF:
            return False
    else:
        if end - pos < 2:
            return False
        length = read_i16(buf, pos)
        pos += 2
    # The commit timestamp behind the metadata is always there: its 8 bytes are asked for as well.
    if length < 0 or length > end - pos - 8:
        return False
    out[at + METADATA_START] = pos
    out[at + METADATA_LENGTH] = length
    pos += length
    out[at + COMMIT_TIMESTAMP] = read_i64(buf, pos)
    pos += 8
    if version == 1:
        if end - pos < 8:
            return False
        out[at + EXPIRE_TIMESTAMP] = read_i64(buf, pos)
        return True
    return True if version < 4 else _read_topic_id(buf, pos, end, out, at)


@helper
def read_record_fields(spans: Spans, r: int, out: I64Array, at: int) -> None:
    """One record into FIELDS words."""
    # Absent fields read as -1 whatever the record before has left in these words.
    for word in range(FIELDS):
        out[at + word] = -1
    out[at + TOPIC_ID_HIGH] = 0
    out[at + TOPIC_ID_LOW] = 0
    out[at] = UNREADABLE
    key, key_length = spans.key_starts[r], spans.key_lengths[r]
    # From here on each return leaves the kind that holds so far: without a readable key the record
    # is UNREADABLE, with one whose value is wrong it is BROKEN and still the latest of its key.
    if key < 0 or key_length < 2 or key_length > spans.keys.size - key:
        return
    type_ = read_i16(spans.keys, key)
    if type_ < 0 or type_ > 1:
        out[at] = OTHER
        return
    if not _read_key(spans.keys, key + 2, key + key_length, out, at):
        return
    value, value_length = spans.value_starts[r], spans.value_lengths[r]
    if value_length < 0:
        out[at] = TOMBSTONE
        return
    out[at] = BROKEN
    if value < 0 or value_length > spans.values.size - value:
        return
    if _read_value(spans.values, value, value + value_length, type_, out, at):
        out[at] = COMMIT
    else:
        out[at + METADATA_LENGTH] = -1
