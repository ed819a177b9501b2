"""The view `messages`: what is decoded, what stays bytes, and what is wrong."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog import read_view
from kafkalog.errors import CorruptRecordError, InvalidConfigError
from tests.support.log_builder import LogBuilder
from tests.support.metadata_builder import (
    MetadataBuilder,
    broker_config,
    config,
    frame,
    text,
    topic,
    uuid,
)

COMMIT_KEY = bytes.fromhex("0001 0001 67 0001 74 00000002")
COMMIT = bytes.fromhex("0003 0000000000000005 00000001 0000 0000000000000007")


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_view("messages", path, **options).to_pylist()
    return found


def test_a_commit_its_tombstone_and_what_is_not_known(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = [
        (COMMIT_KEY, COMMIT), (COMMIT_KEY, None), (COMMIT_KEY, b"\0\x09x"), (b"\0\x63x", b"y"),
        (COMMIT_KEY[:-1], COMMIT), (None, COMMIT),
    ]  # fmt: skip
    LogBuilder(log_dir, "__consumer_offsets-3").batch(*records).write()
    with caplog.at_level(logging.INFO, "kafkalog.reading.message_views"):
        found = rows(log_dir, mode="PERMISSIVE")
    key = {"group": "g", "topic": "t", "partition": 2}
    value = {"offset": 5, "leaderEpoch": 1, "metadata": "", "commitTimestamp": 7}
    assert [r["offset"] for r in found] == [0, 1, 2, 3, 4, 5]
    assert {(r["topic"], r["partition"]) for r in found} == {("__consumer_offsets", 3)}
    names = ["OffsetCommit", "OffsetCommit", None, "type 99", None, None]
    assert [r["messageType"] for r in found] == names
    assert [r["version"] for r in found] == [3, None, None, None, None, None]
    assert [r["key"] and json.loads(r["key"]) for r in found] == [key, key, *[None] * 4]
    assert [r["value"] and json.loads(r["value"]) for r in found] == [value, *[None] * 5]
    assert [(r["keyBytes"], r["valueBytes"]) for r in found] == records
    assert [r["error"] is None for r in found] == [True, True, False, True, False, False]
    assert found[2]["error"] == "OffsetCommit version 9 is not known"
    assert "int32 of 4 bytes" in found[4]["error"]
    told = [r.getMessage() for r in caplog.records]
    path = f"{log_dir}/__consumer_offsets-3/{0:020d}.log"
    assert told == [f"1 records of unknown types or versions in {path}"]
    with pytest.raises(CorruptRecordError, match="OffsetCommit version 9 is not known") as caught:
        rows(log_dir)
    assert (caught.value.path, caught.value.offset) == (path, 2)
    caplog.clear()
    assert [r["offset"] for r in rows(log_dir, mode="DROPMALFORMED")] == [0, 1, 3]
    assert caplog.records[0].getMessage() == (f"left out 3 records of {path} that cannot be read")
    assert len(rows(log_dir, columns=["offset"])) == 6  # nothing is decoded


def test_columns_without_json_are_read_without_decoding(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LogBuilder(log_dir, "__consumer_offsets-0").batch((COMMIT_KEY, COMMIT)).write()
    monkeypatch.setattr("kafkalog.reading.message_views.INTERNAL_TOPICS", {"__consumer_offsets": 1})
    (row,) = rows(log_dir, columns=["valueBytes", "offset"])
    assert row == {"valueBytes": COMMIT, "offset": 0}


def test_a_bad_batch_is_a_row_of_its_own_in_mode_permissive(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    log.batch((COMMIT_KEY, COMMIT)).batch((COMMIT_KEY, None)).batch((COMMIT_KEY, COMMIT))
    path = log.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        rows(log_dir)
    good, bad, other = rows(log_dir, mode="PERMISSIVE")
    assert (good["offset"], bad["offset"], other["offset"]) == (0, None, 2)
    assert "checksum" in bad["error"]
    assert bad["messageType"] is good["error"] is other["error"] is None
    assert len(rows(log_dir, mode="DROPMALFORMED")) == 2


def test_other_topics_have_no_messages(log_dir: Path) -> None:
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    assert rows(log_dir) == []
    with pytest.raises(InvalidConfigError, match=r"view messages is of __consumer_offsets.*orders"):
        rows(log_dir, topics=["orders"])


def test_the_metadata_log_has_messages_without_secrets(log_dir: Path) -> None:
    secret = b"\x05salt" + b"\x07stored" + b"\x07server"
    scram = frame(11, 0, text("alice") + b"\x01" + secret + (4096).to_bytes(4, "big") + b"\0")
    MetadataBuilder(log_dir).batch(topic("a"), scram, frame(99, 0, uuid("A" * 22))).write()
    created, redacted, unknown = rows(log_dir)
    assert created["messageType"] == "TopicRecord"
    assert json.loads(created["value"])["name"] == "a"
    assert json.loads(redacted["value"]) == {
        "name": "alice", "mechanism": 1, "salt": "(redacted)", "storedKey": "(redacted)",
        "serverKey": "(redacted)", "iterations": 4096,
    }  # fmt: skip
    assert (unknown["messageType"], unknown["value"], unknown["error"]) == ("type 99", None, None)


def test_bytes_that_hold_a_secret_are_in_no_column(log_dir: Path) -> None:
    secret = b"\x05salt" + b"\x0aswordfish" + b"\x07server"
    scram = frame(11, 0, text("alice") + b"\x01" + secret + (4096).to_bytes(4, "big") + b"\0")
    password = broker_config("1", "listener.name.x.ssl.keystore.password", "swordfish")
    shown = [
        config("a", "retention.ms", "swordfish"),
        topic("swordfish"),
        frame(99, 0, b"swordfish"),
    ]
    hidden = [
        password, scram, scram[:-1], password[:-1],
        frame(11, 9, b"swordfish"), frame(4, 9, b"swordfish"),  # versions that no table has
        b"\1\x8b\0\0swordfish", b"\1\x84\0\0swordfish",  # types as longer varints than needed
    ]  # fmt: skip
    MetadataBuilder(log_dir).batch(*shown, *hidden).write()
    found = rows(log_dir, mode="PERMISSIVE")
    assert [row["valueBytes"] for row in found] == [*shown, *[None] * len(hidden)]
    only = rows(log_dir, columns=["valueBytes"])
    assert [row["valueBytes"] for row in only] == [*shown, *[None] * len(hidden)]
    for row in found[len(shown) :]:
        assert "swordfish" not in json.dumps({**row, "path": ""}, default=str)
    taken_away = broker_config("1", "ssl.key.password", None)
    path = log_dir / "other"
    path.mkdir()
    MetadataBuilder(path).batch(taken_away).write()
    (row,) = rows(path)
    assert (json.loads(row["value"])["value"], row["valueBytes"]) == (None, taken_away)


def test_every_record_of_the_samples_is_decoded() -> None:
    for sample in ("broker", "share", "cleaning/before"):
        found = rows(SAMPLES / sample)
        assert len(found) >= 50
        for row in found:
            assert row["error"] is None
            assert not row["messageType"].startswith("type ")
            assert (row["valueBytes"] is None) == (row["value"] is None)
            assert (row["keyBytes"] is None) == (row["key"] is None)
