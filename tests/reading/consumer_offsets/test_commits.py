"""The views of offset commits against a slow reading of the same log, record by record."""

from __future__ import annotations

import random
import struct
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data.copy_samples import SAMPLES
from kafkalog import read_view
from kafkalog.errors import CorruptRecordError, InvalidConfigError, KafkaLogError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.messages.consumer_group_records import CONSUMER_GROUP_METADATA
from kafkalog.messages.group_records import GROUP_METADATA, LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from kafkalog.reading.consumer_offsets.parts import (
    CommitsPart,
    commits_in_force,
    group_messages,
    plan_latest_records,
    read_latest_records,
)
from kafkalog.reading.views import default_columns
from tests.support.log_builder import LogBuilder
from tests.support.message_encoder import encode_key, encode_value
from tests.support.random_messages import random_message

Row = dict[str, Any]
PARTITION = "__consumer_offsets-3"
_MESSAGE = ("messageType", "key", "value", "timestampMs")


def rows(view: str, path: Path, **options: Any) -> list[Row]:
    found: list[Row] = read_view(view, path, **options).to_pylist()
    return found


def commit_parts(path: Path) -> list[CommitsPart]:
    tasks = plan_latest_records([str(path)], part_bytes=1)
    return [task for task in tasks if isinstance(task, CommitsPart)]


class Reference:
    """Writes a log, and says what is in it: all commits, and those in force."""

    def __init__(self, log_dir: Path, seed: int, *, broken: bool = False) -> None:
        self.broken = broken
        self.errors: list[int] = []
        self.log = LogBuilder(log_dir, PARTITION)
        self.rng = random.Random(seed)
        self.history: list[Row] = []
        self.open: dict[int, list[Row]] = {}

    def record(self, at: int) -> tuple[bytes, bytes | None]:
        """A commit, a tombstone, another record or a broken one, at an offset."""
        rng = self.rng
        known = OFFSET_COMMIT if rng.random() < 0.8 else LEGACY_OFFSET_COMMIT
        names = {
            "group": f"g{rng.randrange(4)}é", "topic": f"t{rng.randrange(3)}",
            "partition": rng.randrange(3),
        }  # fmt: skip
        key = encode_key(known.key, names)
        kind = rng.random()
        if kind < 0.1:
            if not self.broken:
                return b"\0\x63of another kind", b"\0\3"
            return encode_key(GROUP_METADATA.key, {"group": "g"}), b"\0\3"
        if kind < 0.15 and self.broken:
            self.errors.append(at)
            return key[:-1], None
        row: Row = {
            **names, "recordOffset": at, "offset": None, "leaderEpoch": None, "metadata": None,
            "commitTimestampMs": None, "expireTimestampMs": None, "topicId": None,
            "isTombstone": kind < 0.3, "transactionState": None, "offsetsPartition": 3,
        }  # fmt: skip
        value = None
        if not row["isTombstone"]:
            version = rng.randrange(5) if known is OFFSET_COMMIT else 0
            fields = random_message(known.value, version, rng)
            value = encode_value(known.value, version, fields)
            topic_id = fields.get("topicId")
            row |= {
                "offset": fields["offset"],
                "metadata": fields["metadata"],
                "commitTimestampMs": fields["commitTimestamp"],
                "leaderEpoch": _unless(fields.get("leaderEpoch"), -1),
                "expireTimestampMs": _unless(fields.get("expireTimestamp"), -1),
                "topicId": _unless(topic_id, "A" * 22),
            }
        row["recordBytes"] = len(key) + len(value or b"")
        self.history.append(row)
        return key, value

    def batch(self) -> None:
        first = len(self.history)
        base = self.log.next_offset
        producer_id = self.rng.choice((None, None, 7, 8))
        records = [self.record(base + i) for i in range(self.rng.randrange(1, 12))]
        if producer_id is None:
            # What has no producer is in no transaction, whatever its batch says.
            self.log.batch(*records, is_transactional=self.rng.random() < 0.3)
            return
        self.log.batch(*records, producer_id=producer_id, is_transactional=True)
        for row in self.history[first:]:
            row["transactionState"] = "open"
            self.open.setdefault(producer_id, []).append(row)

    def end(self) -> None:
        if not self.open:
            return
        producer_id = self.rng.choice(sorted(self.open))
        kind = self.rng.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT))
        self.log.marker(kind, producer_id=producer_id)
        for row in self.open.pop(producer_id):
            row["transactionState"] = "committed" if kind is ControlRecordType.COMMIT else "aborted"

    def write(self) -> Path:
        for step in range(60):
            self.batch()
            if step % 4 == 0:
                self.end()
            if step % 20 == 19:
                self.log.segment()
        return self.log.write().parent

    @property
    def in_force(self) -> list[Row]:
        latest: dict[tuple[str, str, int], Row] = {}
        for row in self.history:
            if row["transactionState"] in (None, "committed"):
                latest[row["group"], row["topic"], row["partition"]] = row
        return [row for row in latest.values() if not row["isTombstone"]]


def _unless(value: Any, nothing: Any) -> Any:
    return None if value == nothing else value


@pytest.mark.parametrize("seed", range(4))
def test_commits_of_a_log_with_transactions(log_dir: Path, seed: int) -> None:
    reference = Reference(log_dir, seed, broken=True)
    path = reference.write()
    found = rows("offset_commits", path, mode="PERMISSIVE")
    assert [row["recordOffset"] for row in found if row["error"]] == reference.errors
    history = [{k: v for k, v in row.items() if k != "error"} for row in found if not row["error"]]
    assert history == [{name: row[name] for name in history[0]} for row in reference.history]
    assert {row["transactionState"] for row in history} == {None, "open", "committed", "aborted"}
    found = rows("latest_offset_commits", path, mode="DROPMALFORMED")
    latest = sorted(found, key=lambda row: row["recordOffset"])
    expected = sorted(reference.in_force, key=lambda row: row["recordOffset"])
    assert latest == [{name: row[name] for name in history[0]} for row in expected]


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_a_partition_put_together_are_the_view(log_dir: Path, seed: int) -> None:
    path = Reference(log_dir, seed).write()
    names = default_columns("latest_offset_commits")
    parts = commit_parts(path)
    assert len(parts) == 3  # a segment each, the empty one has none
    batches = [batch for part in parts for batch in read_latest_records(part)]
    for records in (pa.Table.from_batches(batches), pa.Table.from_batches(batches[::-1])):
        assert records["messageType"].null_count == len(records)
        assert all(path.endswith(".log") for path in records["path"].to_pylist())
        found = commits_in_force(records).select(names).to_pylist()
        by_offset = itemgetter("recordOffset")
        assert sorted(found, key=by_offset) == sorted(
            rows("latest_offset_commits", path), key=by_offset
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_last_records_of_groups_come_with_the_commits(log_dir: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = LogBuilder(log_dir, PARTITION)
    for _ in range(60):
        known = rng.choice((GROUP_METADATA, GROUP_METADATA, CONSUMER_GROUP_METADATA, OFFSET_COMMIT))
        fields = random_message(known.key, 0, rng)
        name = next(iter(fields))  # the group, under the name that its message has for it
        key = encode_key(known.key, fields | {name: f"g{rng.randrange(3)}"})
        version = known.value.versions.last
        value: bytes | None = encode_value(
            known.value, version, random_message(known.value, version, rng)
        )
        kind = rng.random()
        if kind < 0.2:
            value = None
        elif kind < 0.3:
            key, value = b"\0\x63" + key[2:], b"of an unknown type"
        (log.segment() if rng.random() < 0.1 else log).batch((key, value))
    path = log.write().parent
    expected: dict[tuple[str, str], Row] = {}
    for row in rows("group_messages", path, columns=[*_MESSAGE, "offset", "valueBytes"]):
        if row["key"] is not None:
            place = {"recordOffset": row["offset"], "isTombstone": row["valueBytes"] is None}
            expected[row["messageType"], row["key"]] = place | {n: row[n] for n in _MESSAGE}
    parts = commit_parts(path)
    found: dict[tuple[str, str], Row] = {}
    for part in parts:
        for row in (row for batch in read_latest_records(part) for row in batch.to_pylist()):
            if row["messageType"] is not None:
                assert row["group"] is None
                assert row["offsetsPartition"] == 3
                names = (*_MESSAGE, "recordOffset", "isTombstone")
                found[row["messageType"], row["key"]] = {name: row[name] for name in names}
    batches = [batch for part in parts for batch in read_latest_records(part)]
    messages = group_messages(pa.Table.from_batches(batches)).to_pylist()
    assert {(row["messageType"], row["key"]): row["value"] for row in messages} == {
        key: row["value"] for key, row in expected.items() if not row["isTombstone"]
    }
    assert len(parts) > 1
    assert len(expected) > 4
    assert found == expected


@pytest.mark.parametrize("value", [b"\0\3", b"\0\x63of an unknown version", b""])
def test_a_group_whose_last_record_cannot_be_read_is_an_error(log_dir: Path, value: bytes) -> None:
    """An older record would pass for the last one."""
    key = encode_key(GROUP_METADATA.key, {"group": "g"})
    whole = encode_value(GROUP_METADATA.value, 4, {"protocolType": "consumer"})
    path = LogBuilder(log_dir, PARTITION).batch((key, whole), (key, value)).write().parent
    (part,) = commit_parts(path)
    with pytest.raises(KafkaLogError) as caught:
        list(read_latest_records(part))
    assert (caught.value.path, caught.value.offset) == (part.last_path, 1)


BROKEN_VALUES = {
    "cut": struct.pack(">hqi", 3, 7, -1),
    "version 9": b"\0\x09" + bytes(30),
    "empty": b"",
    "null metadata": struct.pack(">hqihq", 3, 7, -1, -1, 1),
}


@pytest.mark.parametrize("name", BROKEN_VALUES)
def test_a_commit_that_cannot_be_read_is_an_error_and_no_older_one_passes_for_it(
    log_dir: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def key(partition: int) -> bytes:
        return encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": "t", "partition": partition})

    fields = {"offset": 5, "metadata": "", "commitTimestamp": 1}
    whole = encode_value(OFFSET_COMMIT.value, 3, fields)
    log = LogBuilder(log_dir, PARTITION).batch((key(0), whole), (key(1), whole))
    path = log.batch((key(0), BROKEN_VALUES[name])).write() / f"{0:020d}.log"
    for view, sound in (("offset_commits", [0, 1]), ("latest_offset_commits", [1])):
        with pytest.raises(CorruptRecordError) as caught:
            rows(view, log_dir)
        assert (caught.value.path, caught.value.offset) == (str(path), 2)
        found = rows(view, log_dir, mode="PERMISSIVE")
        assert [row["partition"] for row in found if not row["error"]] == sound
        (bad,) = (row for row in found if row["error"])
        place = ("group", "topic", "partition", "offset", "recordOffset", "offsetsPartition")
        assert [bad[column] for column in place] == ["g", "t", 0, None, 2, 3]
        caplog.clear()
        dropped = rows(view, log_dir, mode="DROPMALFORMED")
        assert [row["partition"] for row in dropped] == sound
        assert "1 records of" in caplog.text
    with pytest.raises(CorruptRecordError):
        list(read_latest_records(commit_parts(log_dir)[0]))


def test_what_lies_behind_a_commit_is_read_past_as_coordinators_do(log_dir: Path) -> None:
    key = encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": "t", "partition": 0})
    fields = {"offset": 5, "metadata": "", "commitTimestamp": 1}
    values = [encode_value(OFFSET_COMMIT.value, version, fields) + b"zz" for version in range(5)]
    LogBuilder(log_dir, PARTITION).batch(*[(key + b"z", value) for value in values]).write()
    assert [row["offset"] for row in rows("offset_commits", log_dir)] == [5] * 5
    assert [row["error"] for row in rows("messages", log_dir)] == [None] * 5


def test_metadata_is_that_of_the_latest_commit_however_often_it_changes(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkalog.reading.consumer_offsets.latest._MOST_PIECES", 3)
    log = LogBuilder(log_dir, PARTITION)
    rng = random.Random(5)
    expected: dict[int, str] = {}
    for turn in range(30):
        partition, text = rng.randrange(6), rng.choice(("", f"turn {turn}"))
        expected[partition] = text
        key = encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": "t", "partition": partition})
        fields = {"offset": 1, "metadata": text, "commitTimestamp": 1}
        log.segment().batch((key, encode_value(OFFSET_COMMIT.value, 3, fields)))
    found = rows("latest_offset_commits", log.write().parent, columns=["partition", "metadata"])
    assert {row["partition"]: row["metadata"] for row in found} == expected


def test_the_samples_groups_are_where_their_consumers_stopped() -> None:
    found = rows("latest_offset_commits", SAMPLES / "broker")
    offsets = {(row["group"], row["topic"], row["partition"]): row["offset"] for row in found}
    assert offsets["group-in-a-transaction", "codec-zstd", 0] == 20
    assert offsets["classic", "codec-gzip", 0] == 300
    assert "forgotten" not in {group for group, _, _ in offsets}
    assert any(row["isTombstone"] for row in rows("offset_commits", SAMPLES / "broker"))


def test_a_bad_batch_is_a_row_with_its_error(log_dir: Path) -> None:
    key = encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": "t", "partition": 0})
    fields = {"offset": 1, "metadata": "", "commitTimestamp": 1}
    log = LogBuilder(log_dir, PARTITION)
    for _ in range(3):
        log.batch((key, encode_value(OFFSET_COMMIT.value, 3, fields)))
    path = log.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    for view, count in (("offset_commits", 2), ("latest_offset_commits", 1)):
        found = rows(view, log_dir, mode="PERMISSIVE")
        bad = [row for row in found if row["error"]]
        assert len(found) == count + 1
        assert [(row["offsetsPartition"], row["group"]) for row in bad] == [(3, None)]


def test_other_topics_are_refused(log_dir: Path) -> None:
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    assert rows("latest_offset_commits", log_dir) == []
    with pytest.raises(InvalidConfigError, match="of __consumer_offsets alone"):
        rows("offset_commits", log_dir, topics=["orders"])
