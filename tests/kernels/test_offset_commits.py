"""Offset commits by the kernel, against the reader of tables, record by record."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kafkalog.errors import KafkaLogError
from kafkalog.kernels import commit_fields as kernel
from kafkalog.messages.coordinator_record import CoordinatorRecord, decode_coordinator_record
from kafkalog.messages.group_records import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from kafkalog.messages.offsets_topic import OFFSETS_TYPES
from kafkalog.reading.consumer_offsets.commit_arrays import LatestCommits, Spans, read_commits
from tests.support.message_encoder import encode_key, encode_value
from tests.support.random_messages import random_message

Pair = tuple[bytes | None, bytes | None]


def spans(parts: list[bytes | None]) -> Spans:
    lengths = np.array([-1 if part is None else len(part) for part in parts], np.int64)
    starts = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0))[:-1]]).astype(np.int64)
    return Spans(np.frombuffer(b"".join(part or b"" for part in parts), np.uint8), starts, lengths)


def expected(key: bytes | None, value: bytes | None) -> tuple[int, dict[str, Any]]:
    """Kind and fields by the tables."""
    try:
        record = decode_coordinator_record(OFFSETS_TYPES, key, value)
    except KafkaLogError:
        is_other = key is not None and len(key) >= 2 and key[:2] not in (b"\0\0", b"\0\1")
        return (kernel.OTHER if is_other else _broken(key)), {}
    if not isinstance(record, CoordinatorRecord):
        return (_broken(key) if record.number in (0, 1) else kernel.OTHER), {}
    if record.type not in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        return kernel.OTHER, {}
    if record.value is None:
        return kernel.TOMBSTONE, record.key
    return kernel.COMMIT, record.key | record.value


def _broken(key: bytes | None) -> int:
    """BROKEN where the key alone can be read."""
    try:
        decode_coordinator_record(OFFSETS_TYPES, key, None)
    except KafkaLogError:
        return kernel.UNREADABLE
    return kernel.BROKEN


def check(pairs: list[Pair]) -> list[int]:
    key_spans, value_spans = spans([key for key, _ in pairs]), spans([v for _, v in pairs])
    fields, unreadable = read_commits(key_spans, value_spans)
    kinds = []
    for (key, value), row in zip(pairs, fields.tolist(), strict=True):
        kind, known = expected(key, value)
        assert row[kernel.KIND] == kind, (key, value)
        kinds.append(kind)
        if known:
            assert row[kernel.PARTITION] == known["partition"]
        if kind == kernel.COMMIT:
            assert row[kernel.OFFSET] == known["offset"]
            assert row[kernel.LEADER_EPOCH] == known.get("leaderEpoch", -1)
            assert row[kernel.COMMIT_TIMESTAMP] == known["commitTimestamp"]
            assert row[kernel.EXPIRE_TIMESTAMP] == known.get("expireTimestamp", -1)
            metadata = known["metadata"].encode()
            assert row[kernel.METADATA_LENGTH] == len(metadata) or "\ufffd" in known["metadata"]
    assert unreadable == kinds.count(kernel.UNREADABLE) + kinds.count(kernel.BROKEN)
    return kinds


def random_pairs(rng: random.Random, count: int) -> list[Pair]:
    pairs: list[Pair] = []
    for _ in range(count):
        known = rng.choice((OFFSET_COMMIT, OFFSET_COMMIT, LEGACY_OFFSET_COMMIT, GROUP_METADATA))
        version = rng.randint(known.value.versions.first, known.value.versions.last)
        key = encode_key(known.key, random_message(known.key, 0, rng))
        value = encode_value(known.value, version, random_message(known.value, version, rng))
        pairs.append((key, None if rng.random() < 0.1 else value))
    return pairs


def test_commits_of_every_version_are_read_as_by_the_tables() -> None:
    kinds = check(random_pairs(random.Random(1), 150))
    assert {kernel.COMMIT, kernel.TOMBSTONE, kernel.OTHER} == set(kinds)


def test_broken_commits_are_told_from_whole_ones() -> None:
    rng = random.Random(2)
    pairs: list[Pair] = [(None, b""), (b"", b""), (b"\0", None), (b"\0\x09", b"x")]
    for key, value in random_pairs(rng, 12):
        if key is None or value is None:
            continue
        for _ in range(12):
            data = bytearray(value)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            pairs += [(key, value[: rng.randrange(len(value))]), (key, bytes(data))]
            pairs += [(key[: rng.randrange(len(key))], value), (key + b"\0", value)]
    kinds = check(pairs)
    assert kinds.count(kernel.UNREADABLE) > 50
    assert kinds.count(kernel.BROKEN) > 50


@pytest.mark.parametrize(
    "tail",
    ["00", "01 00 10" + "11" * 16, "01 05 02 abcd", "02 05 00 00 10" + "22" * 16,
     "01 00 12" + "33" * 18, "01 00 0f" + "44" * 15, "01 00", "ff ff ff ff 0f", "00 00",
     "01 80808080808000 00"],
)  # fmt: skip
def test_tags_of_version_4(tail: str) -> None:
    key = bytes.fromhex("0001 0001 67 0001 74 00000002")
    value = bytes.fromhex("0004" + "00" * 7 + "05 00000001 02 6d 0000000000000007" + tail)
    check([(key, value)])


def test_the_last_record_of_each_key_is_kept() -> None:
    latest = LatestCommits()
    latest._table = np.full(2, -1, np.int64)  # grows as a large one does
    rng = random.Random(3)
    numbers: dict[bytes, int] = {}
    kept: dict[bytes, tuple[int, int]] = {}
    offset = 0
    for _ in range(12):
        names = [b"\0\1\0\4%04d\0\1t\0\0\0\0" % rng.randrange(300) for _ in range(100)]
        # the key type of 0.8.2 names the same group, topic and partition
        names = [b"\0\0" + name[2:] if rng.random() < 0.2 else name for name in names]
        offsets = np.arange(offset, offset + 100)
        states = np.array([rng.choice((0, 2, -1)) for _ in names], np.int64)
        with np.errstate(over="ignore"):  # the hash wraps around
            change = latest.add(spans(list(names)), spans([None] * 100), offsets, states)
        assert change.unreadable == len(change.texts) == 0
        for name, at, state in zip(names, offsets.tolist(), states.tolist(), strict=True):
            if state >= 0:
                numbers.setdefault(name[2:], len(numbers))
                kept[name[2:]] = (at, state)
        offset += 100
        assert latest.count == len(numbers)
    rows = latest.rows.tolist()
    for name, number in numbers.items():
        row = rows[number]
        assert (row[kernel.RECORD_OFFSET], row[kernel.STATE]) == kept[name]
        assert (row[kernel.KIND], row[kernel.RECORD_BYTES]) == (kernel.TOMBSTONE, len(name) + 2)


def test_names_and_metadata_of_the_latest_are_told() -> None:
    key = bytes.fromhex("0001 0001 67 0002 7474 00000002")
    value = bytes.fromhex("0003 0000000000000005 00000001 0001 6d 0000000000000007")
    latest = LatestCommits()
    pairs = [key, b"\0\2\0\1g", key[:-1], key]
    values = [value, b"", value, None]
    with np.errstate(over="ignore"):
        change = latest.add(
            spans(list(pairs)), spans(list(values)), np.arange(4), np.zeros(4, np.int64)
        )
    assert change.unreadable == 1
    assert change.new.tolist() == [[4, 1, 7, 2]]
    assert change.texts.tolist() == [[0, 16, 1]]
    assert latest.rows[:, kernel.KIND].tolist() == [kernel.TOMBSTONE]
