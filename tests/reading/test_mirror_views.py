"""The views of MirrorMaker 2's topics, over bytes that Kafka's own classes wrote."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkalog import read_view
from kafkalog.errors import CorruptRecordError
from kafkalog.format.control_record import ControlRecordType
from tests.support.client_records import client_records, write_client_topics
from tests.support.log_builder import LogBuilder

CHECKPOINTS = "us.checkpoints.internal"
HEARTBEATS = "heartbeats"
SYNCS = "mm2-offset-syncs.eu.internal"


def rows(view: str, path: Path, columns: Sequence[str], **options: Any) -> list[tuple[Any, ...]]:
    table = read_view(view, path, columns=columns, **options)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_checkpoints_are_what_kafka_wrote(log_dir: Path) -> None:
    write_client_topics(log_dir)
    columns = ["topic", "group", "targetTopic", "targetPartition", "upstreamOffset"]
    columns += ["downstreamOffset", "metadata", "version", "isTombstone", "isLatest"]
    of_orders = (CHECKPOINTS, "billing", "us.orders", 3)
    assert rows("mirror_checkpoints", log_dir, columns) == [
        (*of_orders, 1234567890123, 42, "é", 0, False, False),
        (CHECKPOINTS, "", "us.orders", 0, 0, 0, "", 0, False, True),
        (*of_orders, None, None, None, None, True, True),
    ]


def test_heartbeats_and_offset_syncs_are_what_kafka_wrote(log_dir: Path) -> None:
    write_client_topics(log_dir)
    columns = ["topic", "sourceClusterAlias", "targetClusterAlias", "heartbeatMs", "version"]
    assert rows("mirror_heartbeats", log_dir, columns) == [
        (HEARTBEATS, "us", "eu", 1767225600000, 0),
        ("us.heartbeats", "asia", "us", 1767225601000, 0),
    ]
    columns = ["topic", "sourceTopic", "sourcePartition", "upstreamOffset", "downstreamOffset"]
    assert rows("mirror_offset_syncs", log_dir, [*columns, "isLatest"]) == [
        (SYNCS, "orders", 3, 100, 97, False),
        (SYNCS, "orders", 3, -1, -1, True),
    ]


def test_a_topic_asked_for_by_name_is_read_whatever_it_is_called(log_dir: Path) -> None:
    LogBuilder(log_dir, "beats-0").batch(*client_records()[HEARTBEATS]).write()
    assert rows("mirror_heartbeats", log_dir, ["sourceClusterAlias"]) == []
    found = rows("mirror_heartbeats", log_dir, ["sourceClusterAlias"], topics="beats")
    assert found == [("us",)]


def test_what_was_aborted_or_is_open_is_not_the_latest(log_dir: Path) -> None:
    (first, *_), (second, third, *_) = client_records()[SYNCS], client_records()[SYNCS] * 2
    log = LogBuilder(log_dir, f"{SYNCS}-0").batch(first)
    its = {"producer_id": 7, "is_transactional": True}
    log.batch(second, **its).marker(ControlRecordType.ABORT, 7).batch(third, **its).write()
    columns = ["offset", "isLatest", "transactionState"]
    assert rows("mirror_offset_syncs", log_dir, columns) == [
        (0, True, None),
        (1, False, "aborted"),
        (3, False, "open"),
    ]


def test_bytes_that_are_no_checkpoint_are_as_the_mode_says(
    log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (key, value), *_ = client_records()[CHECKPOINTS]
    assert key is not None
    assert value is not None
    wrong = [
        (key, b"\0\x01" + value[2:]), (key, value[:-1]), (key, b"\0"), (None, value),
        (b"\x7f\xff" + key[2:], value), (b"\xff\xff" + key[2:], value), (key, value + b"x"),
    ]  # fmt: skip
    LogBuilder(log_dir, f"{CHECKPOINTS}-0").batch((key, value), *wrong).write()
    with pytest.raises(CorruptRecordError, match="version 1 is not known") as caught:
        rows("mirror_checkpoints", log_dir, ["group"])
    assert (caught.value.offset, Path(caught.value.path or "").name) == (1, f"{0:020d}.log")
    found = rows("mirror_checkpoints", log_dir, ["offset", "group", "error"], mode="PERMISSIVE")
    assert [row[0] for row in found] == list(range(8))
    assert [row[1] for row in found] == ["billing", *[None] * 7]
    errors = [row[2] for row in found]
    assert errors[:2] == [None, "checkpoint version 1 is not known"]
    expected = ["string of", "has no version", "key is null", "string of", "is null", "1 bytes are"]
    assert all(text in error for text, error in zip(expected, errors[2:], strict=True)), errors
    assert rows("mirror_checkpoints", log_dir, ["offset"], mode="DROPMALFORMED") == [(0,)]
    with caplog.at_level(logging.WARNING, "kafkalog.reading.client_views"):
        rows("mirror_checkpoints", log_dir, ["offset"], mode="DROPMALFORMED")
    assert "left out 7 records" in caplog.text


def test_a_bad_batch_is_a_row_of_its_own_in_mode_permissive(log_dir: Path) -> None:
    pair = client_records()[HEARTBEATS][0]
    log = LogBuilder(log_dir, f"{HEARTBEATS}-0").batch(pair).batch(pair).batch(pair)
    path = log.write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        rows("mirror_heartbeats", log_dir, ["offset"])
    columns = ["offset", "isLatest", "error"]
    good, bad, other = rows("mirror_heartbeats", log_dir, columns, mode="PERMISSIVE")
    assert (good, other) == ((0, False, None), (2, True, None))
    assert bad[:2] == (None, None)
    assert "checksum" in bad[2]
