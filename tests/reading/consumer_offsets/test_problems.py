"""Records of `__consumer_offsets` that cannot be read, in the tables of groups and members."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.consumer_group_records import (
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_METADATA,
)
from kafkalog.messages.coordinator_record import RecordType
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.reading.consumer_offsets.group_changes import settle_types
from kafkalog.reading.consumer_offsets.groups import group_members, groups
from kafkalog.reading.consumer_offsets.parts import (
    CommitsPart,
    commits_in_force,
    group_messages,
    latest_messages,
    plan_latest_records,
    read_latest_records,
    unreadable,
)
from kafkalog.reading.consumer_offsets.problems import (
    warn_of,
    with_unreadable_groups,
    with_unreadable_members,
)
from kafkalog.reading.request import ReadMode
from tests.support.group_type_changes import CHANGES
from tests.support.log_builder import LogBuilder
from tests.support.message_encoder import encode_key, encode_value

PARTITION = "__consumer_offsets-3"
Pair = tuple[bytes | None, bytes | None]
BROKEN = b"\0\x63of an unknown version"


def classic(group: str, value: bytes | None = None) -> Pair:
    whole = encode_value(GROUP_METADATA.value, 4, {"protocolType": "consumer", "generation": 2})
    return encode_key(GROUP_METADATA.key, {"group": group}), whole if value is None else value


def commit(group: str, value: bytes | None = None) -> Pair:
    fields = {"offset": 5, "metadata": "", "commitTimestamp": 1}
    key = encode_key(OFFSET_COMMIT.key, {"group": group, "topic": "t", "partition": 0})
    return key, encode_value(OFFSET_COMMIT.value, 3, fields) if value is None else value


def of_member(known: RecordType, value: bytes | None = None) -> Pair:
    key = encode_key(known.key, {"groupId": "new", "memberId": "m"})
    return key, encode_value(known.value, 0, {}) if value is None else value


def of_new_group() -> list[Pair]:
    key = encode_key(CONSUMER_GROUP_METADATA.key, {"groupId": "new"})
    return [
        (key, encode_value(CONSUMER_GROUP_METADATA.value, 0, {"epoch": 7})),
        of_member(CONSUMER_GROUP_MEMBER_METADATA),
        of_member(CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    ]


def read(log_dir: Path, *segments: Sequence[Pair]) -> pa.Table:
    """LATEST_RECORDS of a log; each segment a part of its own."""
    log = LogBuilder(log_dir, PARTITION)
    for number, records in enumerate(segments):
        if number:
            log.segment()
        for record in records:
            log.batch(record)
    log.write()
    parts = [
        part
        for part in plan_latest_records([str(log_dir)], part_bytes=1)
        if isinstance(part, CommitsPart)
    ]
    assert len(parts) == len(segments)
    return pa.Table.from_batches(
        [batch for part in parts for batch in read_latest_records(part, ReadMode.PERMISSIVE)]
    )


def tables(records: pa.Table) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    records = settle_types(latest_messages(records), fails_fast=False)
    messages, bad = group_messages(records), unreadable(records)
    found = with_unreadable_groups(groups(messages, commits_in_force(records)), bad)
    members = with_unreadable_members(group_members(messages), bad)
    return found.to_pylist(), members.to_pylist()


@pytest.mark.parametrize("in_parts", [False, True])
def test_no_older_record_passes_for_one_that_cannot_be_read(log_dir: Path, in_parts: bool) -> None:
    before = [classic("old"), commit("g"), commit("old"), *of_new_group()]
    after = [
        classic("old", BROKEN), commit("g", b"\0\3"), (None, b"x"),
        of_member(CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, BROKEN), (b"\0\2\0\x09g", b"x"),
    ]  # fmt: skip
    records = read(log_dir, *((before, after) if in_parts else ([*before, *after],)))
    in_force = commits_in_force(records)
    assert [row["group"] for row in in_force.to_pylist()] == ["old"]
    found, members = tables(records)
    by_group = {(row["group"], row["kind"]): row for row in found if row["group"] is not None}
    # Classic metadata that cannot be read: neither the older generation nor a simple group.
    assert set(by_group) == {("old", "classic"), ("new", "consumer"), ("g", None)}
    old, new = by_group["old", "classic"], by_group["new", "consumer"]
    assert (old["epoch"], old["state"], old["coordinatorPartition"]) == (None, None, 3)
    assert "offset 6: GroupMetadata version 99 is not known" in old["error"]
    assert (new["epoch"], new["members"]) == (7, 1)
    assert "offset 9" in new["error"]
    assert "offset 7" in by_group["g", None]["error"]
    nameless = [row for row in found if row["group"] is None]
    assert [row["kind"] for row in nameless] == [None, "classic"]
    assert "offset 8" in nameless[0]["error"]
    assert "offset 10" in nameless[1]["error"]
    of_new = [row for row in members if row["group"] == "new"]
    assert [(row["memberId"], row["epoch"]) for row in of_new] == [("m", None)]
    assert "offset 9" in of_new[0]["error"]
    others = [(row["group"], row["kind"]) for row in members if row["group"] != "new"]
    assert sorted(others, key=str) == [("old", "classic"), (None, "classic"), (None, None)]


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_later_record_of_a_group_takes_the_place_of_one_that_cannot_be_read(
    log_dir: Path, in_parts: bool
) -> None:
    before, after = [classic("g", BROKEN)], [classic("g")]
    records = read(log_dir, *((before, after) if in_parts else ([*before, *after],)))
    found, _ = tables(records)
    assert [(row["group"], row["epoch"]) for row in found] == [("g", 2)]
    # In one part only the last record of a key is decoded at all.
    assert [row["error"] for row in found] == [None]


def test_what_cannot_be_read_is_said_once(log_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = read(log_dir, [commit("g", b""), (None, b"x")], [classic("g", BROKEN)])
    warn_of(unreadable(records), is_left_out=True)
    (message,) = caplog.messages
    assert message.startswith("3 records or batches of __consumer_offsets cannot be read and are")
    assert "offset 0: " in message
    warn_of(unreadable(records.slice(0, 0)), is_left_out=True)
    assert len(caplog.messages) == 1


# What the last records of keys alone do not show: a commit may have been the first record.
_SEEN_BY_VERIFY_ONLY = {"commit-to-share"}


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("name", sorted(CHANGES.keys() - _SEEN_BY_VERIFY_ONLY))
def test_a_group_is_of_the_type_that_the_broker_says(
    log_dir: Path, name: str, in_parts: bool
) -> None:
    change = CHANGES[name]
    pairs = change.pairs("g")
    records = read(log_dir, *([[pair] for pair in pairs] if in_parts else [pairs]))
    if change.fails_at is None:
        settle_types(latest_messages(records), fails_fast=True)
    else:
        with pytest.raises(CorruptRecordError, match="its group is a ") as caught:
            settle_types(latest_messages(records), fails_fast=True)
        assert caught.value.offset == change.fails_at
    found, members = tables(records)
    if change.fails_at is not None:
        (row,) = found
        assert f", offset {change.fails_at}: its group is a " in row["error"]
        assert [member["error"] for member in members] == [row["error"]]
    elif name == "member-tombstone-of-simple":
        # A coordinator makes a consumer group of epoch 0 of it, of which there is no record.
        assert not found
    else:
        assert [(row["group"], row["error"]) for row in found] == [("g", None)] * bool(change.kind)
        is_classic = change.kind in ("classic", "simple")
        assert all((row["kind"] in ("classic", "simple")) == is_classic for row in found)
