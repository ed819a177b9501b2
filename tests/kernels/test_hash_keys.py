from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.record import Record, pack_record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.varint import pack_varint
from kafkalog.kernels import status
from kafkalog.kernels.buckets import sort_by_bucket
from kafkalog.kernels.hash_keys import (
    ENTRY_WORDS,
    FOREIGN,
    KEYLESS,
    PAST_MAP,
    SUPERSEDED,
    TOMBSTONE,
)
from kafkalog.kernels.jit import I64, U8_IN, U64, U64_OUT, U8Array, U64Array, kernel
from kafkalog.kernels.siphash import siphash_128
from tests.kernels.compaction import expected_superseded, map_log, superseded
from tests.kernels.raw_batches import raw_batch, raw_record
from tests.support.reference.siphash import siphash_2_4_128

# SipHash's own vectors for key 00 01 … 0f and input 00 01 02 …, by input length.
KEY = bytes(range(16))
VECTORS = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
]


@kernel((U8_IN, I64, I64, U64, U64, U64_OUT))
def hash_bytes(
    buf: U8Array, pos: int, length: int, k0: np.uint64, k1: np.uint64, words_out: U64Array
) -> None:
    first, second = siphash_128(buf, pos, length, k0, k1)
    words_out[0] = first
    words_out[1] = second


def hashed(data: bytes, key: bytes = KEY) -> bytes:
    buf = np.frombuffer(b"\xff" + data + b"\xff" * 9, np.uint8)
    k0, k1 = np.frombuffer(key, np.uint64)
    words = np.zeros(2, np.uint64)
    with np.errstate(over="ignore"):
        hash_bytes(buf, 1, len(data), k0, k1, words)
    return words.tobytes()


@pytest.mark.parametrize("length", range(len(VECTORS)))
def test_hash_is_the_published_one(length: int) -> None:
    data = bytes(range(length))
    assert hashed(data).hex() == VECTORS[length]
    assert siphash_2_4_128(KEY, data).hex() == VECTORS[length]


def test_hash_of_every_length_is_the_plain_one() -> None:
    for length in (*range(40), 255, 256, 257):
        data = bytes(i * 7 & 0xFF for i in range(length))
        assert hashed(data) == siphash_2_4_128(KEY, data)


@given(st.binary(max_size=80), st.binary(min_size=16, max_size=16))
@settings(max_examples=40)
def test_hash_of_anything_is_the_plain_one(data: bytes, key: bytes) -> None:
    assert hashed(data, key) == siphash_2_4_128(key, data)


keys = st.none() | st.sampled_from([b"", b"a", b"b", b"key-with-nine", b"\xff" * 20])
records = st.lists(
    st.tuples(keys, st.none() | st.binary(max_size=3), st.integers(1, 3)), min_size=1, max_size=60
)


@given(
    records,
    st.integers(0, 130),
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 70),
    st.sampled_from([1, 2, 8]),
)
@settings(max_examples=80)
def test_superseded_records_are_those_a_dict_finds(
    specs: list[tuple[bytes | None, bytes | None, int]],
    first_dirty: int,
    per_batch: int,
    pieces: int,
    room: int,
    parts: int,
) -> None:
    offset, made = 0, list[Record]()
    for key, value, step in specs:
        made.append(Record(offset, 0, key, value))
        offset += step
    batches = [made[i : i + per_batch] for i in range(0, len(made), per_batch)]
    log = b"".join(pack_batch(batch) for batch in batches)
    mapped = map_log(log, first_dirty_offset=first_dirty, room=room, pieces=pieces)
    assert (mapped.records, mapped.status) == (len(made), status.OK)
    for record, flag in zip(made, mapped.flags, strict=True):
        assert bool(flag & KEYLESS) == (record.key is None)
        assert bool(flag & TOMBSTONE) == (record.value is None)
        assert not flag & (FOREIGN | SUPERSEDED)
    distinct = superseded(mapped, parts=parts)
    gone, keys_count = expected_superseded(
        [record.key for record in made], [record.offset for record in made], first_dirty
    )
    assert distinct == keys_count
    assert [bool(flag & SUPERSEDED) for flag in mapped.flags] == gone


@given(
    records,
    st.integers(0, 130),
    st.integers(0, 130),
    st.integers(1, 9),
    st.lists(st.booleans(), min_size=60, max_size=60),
)
@settings(max_examples=60)
def test_batches_without_a_role_and_records_past_the_map_meet_nothing(
    specs: list[tuple[bytes | None, bytes | None, int]],
    first_dirty: int,
    latest: int,
    per_batch: int,
    meet: list[bool],
) -> None:
    made = [Record(2 * i, 0, key, value) for i, (key, value, _) in enumerate(specs)]
    batches = [made[i : i + per_batch] for i in range(0, len(made), per_batch)]
    log = b"".join(pack_batch(batch) for batch in batches)
    mapped = map_log(
        log,
        first_dirty_offset=first_dirty,
        latest_offset=latest,
        roles=meet[: len(batches)],
        pieces=2,
    )
    assert mapped.status == status.OK
    met = [meet[i // per_batch] for i in range(len(made))]
    for record, meets, flag in zip(made, met, mapped.flags, strict=True):
        assert bool(flag & KEYLESS) == (meets and record.key is None)
        assert bool(flag & TOMBSTONE) == (meets and record.value is None)
        assert bool(flag & PAST_MAP) == (meets and record.offset > latest)
    distinct = superseded(mapped)
    gone, keys_count = expected_superseded(
        [record.key if meets else None for record, meets in zip(made, met, strict=True)],
        [record.offset for record in made],
        first_dirty,
        latest,
    )
    assert distinct == keys_count
    assert [bool(flag & SUPERSEDED) for flag in mapped.flags] == gone


@pytest.mark.parametrize("first_dirty", [0, 700, 2600])
def test_many_entries_give_the_same_answer(first_dirty: int) -> None:
    keys = [b"%d" % (i * i % 1999) for i in range(2600)]
    made = [Record(i, 0, key, b"v") for i, key in enumerate(keys)]
    log = b"".join(pack_batch(made[i : i + 300]) for i in range(0, len(made), 300))
    mapped = map_log(log, first_dirty_offset=first_dirty, pieces=5)
    assert superseded(mapped) == len(set(keys[first_dirty:]))
    gone, _ = expected_superseded(keys, range(len(keys)), first_dirty)
    assert [bool(flag & SUPERSEDED) for flag in mapped.flags] == gone


@given(
    st.lists(st.none() | st.binary(max_size=20) | st.binary(max_size=80), min_size=1, max_size=40),
    st.integers(1, 50),
    st.integers(1, 40),
)
@settings(max_examples=60)
def test_entries_have_the_plain_hash_of_their_key_in_record_order(
    keys: list[bytes | None], room: int, batch_records: int
) -> None:
    # Of any lengths beside each other, in lanes and by themselves, at the end of the buffer too,
    # and side by side with those of other batches.
    made = [Record(i, 0, key, b"") for i, key in enumerate(keys)]
    batches = [made[i : i + batch_records] for i in range(0, len(made), batch_records)]
    log = b"".join(map(pack_batch, batches))
    entries = map_log(log, room=room).entries.reshape(-1, ENTRY_WORDS)
    secret = np.array([1, 2], np.uint64).tobytes()
    expected = [(siphash_2_4_128(secret, k), i) for i, k in enumerate(keys) if k is not None]
    assert [(entry[:2].tobytes(), int(entry[2])) for entry in entries] == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=300), st.integers(1, 6))
def test_entries_are_sorted_by_bucket_and_none_is_lost(
    specs: list[tuple[int, int]], bits: int
) -> None:
    words = [(high << 60 | number, number, i) for i, (high, number) in enumerate(specs)]
    entries = np.array(words, np.uint64).reshape(-1)
    starts, scratch = np.empty((1 << bits) + 1, np.uint64), np.empty(1 << bits, np.uint64)
    sort_by_bucket(entries, starts, scratch)
    found = entries.reshape(-1, ENTRY_WORDS)
    buckets = [int(first) >> 64 - bits for first in found[:, 0]]
    assert starts.tolist() == [sum(b < n for b in buckets) for n in range((1 << bits) + 1)]
    assert buckets == sorted(buckets)
    assert sorted(map(tuple, found.tolist())) == sorted(words)


def test_a_map_that_is_too_small_is_a_status() -> None:
    log = pack_batch([Record(i, 0, b"%d" % i, b"v") for i in range(600)])
    mapped = map_log(log)
    assert superseded(mapped, table_slots=512) == -1


PLAIN = Record(5, 7, b"k", b"v", ((b"h", b"x"),))
FOREIGN_RECORDS = {
    "attributes": raw_record(PLAIN, attributes=1),
    "long record length": raw_record(PLAIN, pad="length"),
    "long timestamp": raw_record(PLAIN, pad="timestamp"),
    "long offset": raw_record(PLAIN, pad="offset"),
    "long key length": raw_record(PLAIN, pad="key"),
    "long value length": raw_record(PLAIN, pad="value"),
    "long header count": raw_record(PLAIN, pad="headers"),
    "long header key length": raw_record(PLAIN, pad="header key"),
    "long header value length": raw_record(PLAIN, pad="header value"),
    "key length -2": raw_record(Record(5, 7, None, b"v"), null_length=-2),
    "value length -3": raw_record(Record(5, 7, b"k", None), null_length=-3),
    "header value length -2": raw_record(Record(5, 7, b"k", b"v", ((b"h", None),)), null_length=-2),
    "header key not ASCII": raw_record(Record(5, 7, b"k", b"v", ((b"\xc3\xa9", b"x"),))),
}


@pytest.mark.parametrize("raw", FOREIGN_RECORDS.values(), ids=FOREIGN_RECORDS.keys())
def test_records_another_producer_encodes_differently_are_noted(raw: bytes) -> None:
    mapped = map_log(raw_batch([raw], base_offset=5))
    assert mapped.status == status.OK
    assert mapped.flags[0] & FOREIGN


def test_what_kafka_itself_writes_is_not_noted() -> None:
    assert raw_record(PLAIN) == pack_record(PLAIN, 5, 0)
    for record in (PLAIN, Record(5, -1, b"k" * 64, None, ((b"h" * 63, None),))):
        assert not map_log(pack_batch([record])).flags[0] & FOREIGN


def test_wrong_offsets_and_lengths_are_statuses() -> None:
    one = pack_batch([Record(5, 0, b"a", b""), Record(6, 0, b"a", b"")])
    assert map_log(one + one).status == status.OFFSET_ORDER
    assert map_log(one + one).batch == 1
    beyond = raw_batch([raw_record(Record(9, 0, b"a", b""))], base_offset=5, last_offset=5)
    assert map_log(beyond).status == status.OFFSET_ORDER
    short = raw_batch([pack_varint(40) + b"\0" * 20], base_offset=5)
    assert map_log(short).status == status.RECORD_TRUNCATED
    trailing = raw_batch([raw_record(PLAIN) + b"\0" * 7], base_offset=5)
    assert map_log(trailing).status == status.TRAILING_BYTES
