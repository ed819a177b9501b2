"""Offset commits of `__consumer_offsets` to numbers and spans, and the latest of each key.

 key     i16 type (0, 1) | group: i16 length, bytes | topic: i16 length, bytes | partition i32
 value   i16 version | offset i64 | leader epoch i32 (3+) | metadata | commit timestamp i64
         | expire timestamp i64 (1) | tagged section (4)
         metadata: i16 length, bytes; in version 4 uvarint length + 1, bytes

A record becomes FIELDS words; `messages.group_records` has the same layout as a table. Two keys are
the same if the 128-bit hashes of what follows the type are: SipHash with a secret, as in
`hash_keys`.

Source: OffsetCommitKey.json, OffsetCommitValue.json.
"""

from __future__ import annotations

import numpy as np

from kafkalog.kernels.big_endian import read_i16, read_i32, read_i64
from kafkalog.kernels.jit import (
    I64,
    I64_IN,
    I64_OUT,
    U8_IN,
    U64,
    U64_IN,
    U64_OUT,
    I64Array,
    U8Array,
    U64Array,
    helper,
    kernel,
)
from kafkalog.kernels.siphash import siphash_128
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

# Records are decoded, then looked up, so many at a time.
BLOCK = 256

NO_TIMESTAMP = -1
NO_EPOCH = -1

_FIELDS, _KEPT, _WIDTH, _BLOCK = FIELDS, KEPT, WIDTH, BLOCK
_COMMIT, _TOMBSTONE, _UNREADABLE, _OTHER = COMMIT, TOMBSTONE, UNREADABLE, OTHER
_BROKEN = BROKEN
_NEWEST_VERSION = 4
_UUID_BYTES = 16


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
        out[at + 10 + 2 * field] = pos
        out[at + 11 + 2 * field] = length
        pos += length
    if end - pos < 4:
        return False
    out[at + 1] = read_i32(buf, pos)
    return True


@helper
def _read_topic_id(buf: U8Array, pos: int, end: int, out: I64Array, at: int) -> bool:
    """The tagged section of version 4: tag 0 is the topic's id; whether it is one."""
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
            out[at + 6] = read_i64(buf, pos)
            out[at + 7] = read_i64(buf, pos + 8)
        pos += size
    return True


@helper
def _read_value(buf: U8Array, pos: int, end: int, type_: int, out: I64Array, at: int) -> bool:
    """The value from its version on; whether it is one."""
    if end - pos < 10:
        return False
    version = read_i16(buf, pos)
    if version < 0 or version > (_NEWEST_VERSION if type_ == 1 else 0):
        return False
    out[at + 2] = read_i64(buf, pos + 2)
    pos += 10
    if version >= 3:
        if end - pos < 4:
            return False
        out[at + 3] = read_i32(buf, pos)
        pos += 4
    if version == 4:
        length, pos = read_uvarint(buf, pos, end)
        length -= 1
        if pos < 0 or length > 0x7FFF:
            return False
    else:
        if end - pos < 2:
            return False
        length = read_i16(buf, pos)
        pos += 2
    if length < 0 or length > end - pos - 8:
        return False
    out[at + 9] = pos
    out[at + 8] = length
    pos += length
    out[at + 4] = read_i64(buf, pos)
    pos += 8
    if version == 1:
        if end - pos < 8:
            return False
        out[at + 5] = read_i64(buf, pos)
        return True
    return True if version < 4 else _read_topic_id(buf, pos, end, out, at)


@helper
def _read_record(
    keys: U8Array,
    values: U8Array,
    key: int,
    key_length: int,
    value: int,
    value_length: int,
    out: I64Array,
    at: int,
) -> None:
    """One record into FIELDS words."""
    for word in range(_FIELDS):
        out[at + word] = -1
    out[at + 6] = 0
    out[at + 7] = 0
    out[at] = _UNREADABLE
    if key < 0 or key_length < 2 or key_length > keys.size - key:
        return
    type_ = read_i16(keys, key)
    if type_ < 0 or type_ > 1:
        out[at] = _OTHER
        return
    if not _read_key(keys, key + 2, key + key_length, out, at):
        return
    if value_length < 0:
        out[at] = _TOMBSTONE
        return
    out[at] = _BROKEN
    if value < 0 or value_length > values.size - value:
        return
    if _read_value(values, value, value + value_length, type_, out, at):
        out[at] = _COMMIT
    else:
        out[at + 8] = -1


@kernel(
    (
        *(U8_IN, U8_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64_IN, I64_IN, U64, U64),
        *(I64_OUT, U64_OUT, I64, I64_OUT, I64_OUT, I64_OUT, I64_OUT, U64_OUT),
    )
)
def read_offset_commits(
    keys: U8Array,
    values: U8Array,
    key_starts: I64Array,
    key_lengths: I64Array,
    value_starts: I64Array,
    value_lengths: I64Array,
    record_offsets: I64Array,
    states: I64Array,
    k0: np.uint64,
    k1: np.uint64,
    table: I64Array,
    known: U64Array,
    count: int,
    latest_out: I64Array,
    new_out: I64Array,
    texts_out: I64Array,
    fields_out: I64Array,
    hashes_out: U64Array,
) -> tuple[int, int, int, int]:
    """Decode records; with a table keep what the last one of each key says. A key gets a number
    when it is first seen.

    in   keys, values uint8: what the spans int64[n] point into; a length of -1 is null
         record_offsets int64[n]
         states int64[n]: kept with the record; one below zero says that it does not count
         k0, k1: the secret of the hash
         table int64[a power of two, at least twice (count + n)]: -1 empty, else a key's number;
         int64[0]: nothing is kept
         known uint64[>= (count + n) * 2]: the hashes of the numbers below `count`
    out  latest_out int64[>= (count + n) * WIDTH]; table and known grow
         new_out int64[n * 4]: of keys first seen, in order: start and length of group and topic
         texts_out int64[n * 3]: of records with metadata, in order: number, start, length
         fields_out int64[n * FIELDS], -1 where a field is not there, the topic id 0; of another
         size, at least BLOCK * FIELDS, it is scratch, as is hashes_out uint64[BLOCK * 2]
    returns (keys, records with metadata, UNREADABLE and BROKEN records, OTHER records)
    """
    mask = table.size - 1
    in_place = fields_out.size == key_starts.size * _FIELDS
    new = 0
    texts = 0
    unreadable = 0
    others = 0
    for start in range(0, key_starts.size, _BLOCK):
        end = min(start + _BLOCK, key_starts.size)
        shift = 0 if in_place else start
        for r in range(start, end):
            at = (r - shift) * _FIELDS
            _read_record(
                keys, values, key_starts[r], key_lengths[r], value_starts[r], value_lengths[r],
                fields_out, at,
            )  # fmt: skip
            kind = fields_out[at]
            if kind == _UNREADABLE or kind == _BROKEN:
                unreadable += 1
            if kind == _UNREADABLE:
                continue
            if kind == _OTHER:
                others += 1
            elif table.size > 0 and states[r] >= 0:
                first, second = siphash_128(keys, key_starts[r] + 2, key_lengths[r] - 2, k0, k1)
                hashes_out[2 * (r - start)] = first
                hashes_out[2 * (r - start) + 1] = second
        if table.size == 0:
            continue
        # The table is larger than a processor's nearer caches: a short loop has many of its
        # lookups under way at once.
        for r in range(start, end):
            at = (r - shift) * _FIELDS
            kind = fields_out[at]
            if states[r] < 0 or kind == _OTHER or kind == _UNREADABLE:
                continue
            first = hashes_out[2 * (r - start)]
            second = hashes_out[2 * (r - start) + 1]
            slot = I64(first & U64(0x7FFF_FFFF_FFFF_FFFF)) & mask
            number = table[slot]
            while number >= 0 and (known[2 * number] != first or known[2 * number + 1] != second):
                slot = (slot + 1) & mask
                number = table[slot]
            if number < 0:
                number = count
                table[slot] = number
                known[2 * number] = first
                known[2 * number + 1] = second
                for word in range(4):
                    new_out[4 * new + word] = fields_out[at + 10 + word]
                new += 1
                count += 1
            row = number * _WIDTH
            for word in range(_KEPT):
                latest_out[row + word] = fields_out[at + word]
            latest_out[row + _KEPT] = record_offsets[r]
            latest_out[row + _KEPT + 1] = key_lengths[r] + max(value_lengths[r], 0)
            latest_out[row + _KEPT + 2] = states[r]
            if fields_out[at + 8] > 0:
                texts_out[3 * texts] = number
                texts_out[3 * texts + 1] = fields_out[at + 9]
                texts_out[3 * texts + 2] = fields_out[at + 8]
                texts += 1
    return count, texts, unreadable, others


@kernel((U64_IN, I64, I64_OUT))
def fill_table(known: U64Array, count: int, table_out: I64Array) -> None:
    """Enter the numbers below `count` in an empty table, by their hashes uint64[count * 2]."""
    mask = table_out.size - 1
    for number in range(count):
        at = I64(known[2 * number] & U64(0x7FFF_FFFF_FFFF_FFFF)) & mask
        while table_out[at] >= 0:
            at = (at + 1) & mask
        table_out[at] = number
