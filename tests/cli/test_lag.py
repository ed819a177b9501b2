"""`kafkalog lag`: the table and the document of the sample whose groups Kafka's tool showed, exit
codes, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.columns.group_schemas import LAG
from kafkalog.messages.group_records import OFFSET_COMMIT
from tests.support.log_builder import LogBuilder
from tests.support.message_encoder import encode_key, encode_value

DATA = str(SAMPLES / "groups" / "data")


def write_commits(log_dir: Path, **offsets: int) -> None:
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    for group, offset in offsets.items():
        key = {"group": group, "topic": "orders", "partition": 0}
        value = {"offset": offset, "metadata": "", "commitTimestamp": 1}
        log.batch((encode_key(OFFSET_COMMIT.key, key), encode_value(OFFSET_COMMIT.value, 3, value)))
    log.write()


def write_orders(log_dir: Path) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for _ in range(9):
        log.batch(("k", "v"))
    log.write()


def test_table_has_dashes_where_nothing_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", DATA, "--group", "classic"]) == 0
    out, err = capsys.readouterr()
    header, *lines = (line.split() for line in out.splitlines())
    assert header[:6] == ["group", "topic", "partition", "committed", "logEnd", "lag"]
    assert [line[2:6] for line in lines] == [
        ["0", "-", "40", "-"],
        ["1", "30", "40", "10"],
        ["2", "30", "40", "10"],
        ["3", "-", "40", "-"],
    ]
    assert "noCommit (2): a member was given the partition" in err
    assert "1 group, 4 partitions, 2 of them behind: 20 records" in err


def test_document_has_the_columns_of_the_view(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", "--log-dir", DATA, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert len(document["partitions"]) == 9
    assert all(list(row) == [column.name for column in LAG] for row in document["partitions"])
    assert document["problems"] == []


def test_a_group_outside_of_the_log_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, offsets in (("sound", {}), ("cut", {"beyond": 12}), ("expired", {})):
        log = LogBuilder(tmp_path / name, "orders-0")
        for _ in range(9):
            log.batch(("k", "v"))
        if name == "expired":
            log.log_start_offset(5)
        log.write()
        write_commits(tmp_path / name, good=3, **offsets)
    assert main(["lag", str(tmp_path / "sound")]) == 0
    assert main(["lag", str(tmp_path / "cut")]) == 1
    assert "beyondEnd (1): committed above the end" in capsys.readouterr().err
    assert main(["lag", str(tmp_path / "expired")]) == 1
    out, err = capsys.readouterr()
    (row,) = (line.split() for line in out.splitlines() if line.startswith("good"))
    assert row[-2:] == ["2", "belowStart"]
    assert "belowStart (1): what they would read next is gone" in err


def test_a_record_that_cannot_be_read_is_said_and_the_others_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_orders(tmp_path)
    log = LogBuilder(tmp_path, "__consumer_offsets-0")
    for group, cut in (("good", 0), ("bad", 3)):
        key = {"group": group, "topic": "orders", "partition": 0}
        value = {"offset": 4, "metadata": "", "commitTimestamp": 1}
        encoded = encode_value(OFFSET_COMMIT.value, 3, value)
        log.batch((encode_key(OFFSET_COMMIT.key, key), encoded[: len(encoded) - cut]))
    log.write()
    assert main(["lag", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(row["group"], row["lag"]) for row in document["partitions"]] == [("good", 5)]
    (problem,) = document["problems"]
    assert "__consumer_offsets-0" in problem
    assert "offset 1" in problem


def test_what_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_orders(tmp_path)
    assert main(["lag", str(tmp_path)]) == 2
    assert "no partition of __consumer_offsets here" in capsys.readouterr().err
    write_commits(tmp_path, good=3)
    assert main(["lag", str(tmp_path), "--group", "goods"]) == 2
    assert "no group goods here; there are good" in capsys.readouterr().err


def test_redacted_groups_are_digests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", DATA, "--redact"]) == 0
    out, err = capsys.readouterr()
    assert "classic" not in out + err
    assert "modern" not in out + err
    assert "orders" in out


def test_old_consumers_are_those_of_a_dead_zookeeper(capsys: pytest.CaptureFixture[str]) -> None:
    old = SAMPLES / "zookeeper"
    ensemble = str(old / "ensemble")
    words = ["lag", str(old / "broker-1"), "--zookeeper-dir", ensemble, "--json"]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["partitions"]
    found = {(row["group"], row["topic"], row["partition"]): row for row in rows}
    assert {name: row["committedOffset"] for name, row in found.items()} == {
        ("old", "plain", 0): 25,
        ("old", "plain", 1): 7,
    }
    assert all(row["isLeaderHere"] is not None for row in rows)
