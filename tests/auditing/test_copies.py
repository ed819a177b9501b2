"""Copies: modification times that tell nothing, brokers that were not stopped, and log dirs whose
settings nobody tells.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, Disk
from tests.auditing.documents import audited_document, findings_of
from tests.support.log_builder import START_MS, LogBuilder

WEEK = {"cleanup_policy": "delete", "retention_ms": 7 * DAY_MS}


def dated(directory: Path, time_ms: int) -> None:
    """Every file has this time, a minute apart."""
    for number, path in enumerate(sorted(directory.rglob("*"))):
        os.utime(path, ns=((time_ms + number * 60_000) * 1_000_000,) * 2)


def test_times_of_a_copy_are_no_signs_of_life(tmp_path: Path) -> None:
    """The broker stopped before its first segment was due; the copy was made last week."""
    disk = Disk(tmp_path, **WEEK).segment(40 * DAY_MS).segment(34 * DAY_MS).segment(33 * DAY_MS)
    disk.write()
    dated(tmp_path, NOW_MS - 7 * DAY_MS)
    document = disk.audit()
    (found,) = findings_of(document, "times-of-a-copy")
    assert found["severity"] == "info"
    assert found["path"] == str(tmp_path)
    assert "all files are of 2024-02-15" in found["text"]
    assert "the newest record, 2024-01-20T" in found["text"]
    assert not findings_of(document, "retention-overdue")
    assert not findings_of(document, "age-beyond-promise")
    assert findings_of(document, "retention-due")


def test_logs_tell_of_life_in_a_copy_too(tmp_path: Path) -> None:
    """Another log of the same broker went on for days after the first was due."""
    disk = Disk(tmp_path, **WEEK).segment(40 * DAY_MS).segment(39 * DAY_MS)
    other = LogBuilder(tmp_path, "other-0").segment().batch(("k", "v"), timestamp=NOW_MS - DAY_MS)
    other.write()
    disk.write()
    dated(tmp_path, NOW_MS + DAY_MS)
    document = disk.audit()
    assert findings_of(document, "times-of-a-copy")
    (found,) = findings_of(document, "retention-overdue")
    assert "the broker was alive until 2024-02-21T" in found["text"]


def test_files_as_old_as_their_records_are_believed(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS, modified_age_ms=12 * DAY_MS).segment(0)
    document = disk.write(alive_age_ms=HOUR_MS).audit()
    assert findings_of(document, "retention-overdue")
    assert not findings_of(document, "times-of-a-copy")


@pytest.mark.parametrize("is_copy", [False, True])
def test_a_copy_from_a_running_broker_is_recognised(tmp_path: Path, *, is_copy: bool) -> None:
    disk = Disk(tmp_path, **WEEK).segment(2 * DAY_MS, 2 * DAY_MS, modified_age_ms=2 * DAY_MS)
    disk.segment(DAY_MS, modified_age_ms=DAY_MS).write(clean_shutdown=False)
    if is_copy:
        dated(tmp_path, NOW_MS)
    (found,) = findings_of(disk.audit(), "not-stopped-in-order")
    assert found["text"].startswith("1 of 2 active segments have indexes of full size")
    assert ("copied from a running broker, or" in found["text"]) == is_copy


def test_a_broker_that_stopped_in_order_is_not(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(DAY_MS, modified_age_ms=DAY_MS).write()
    assert not findings_of(disk.audit(), "not-stopped-in-order")


def test_settings_nobody_tells_are_said_once_a_log_dir(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Information: the disk is sound, and the exit code says so."""
    log_dir = tmp_path / "logs"
    for number in range(9):
        LogBuilder(log_dir, f"t{number}-0").segment().batch(("k", "v")).write()
    (found,) = findings_of(audited_document(log_dir, now_ms=START_MS), "settings-unknown")
    assert found["path"] == str(log_dir)
    assert found["topic"] is None
    assert found["text"].startswith("t0, t1, t2, t3, t4 and 4 more: no cluster metadata beside")
    arguments = ["audit", "--log-dir", str(log_dir), "--now", str(START_MS), "--workers", "1"]
    assert main([*arguments, "--run-dir", str(tmp_path / "runs")]) == 0
    assert capsys.readouterr().out.count("settings-unknown") == 1


@pytest.mark.parametrize("redact", [False, True])
def test_a_hanging_transaction_is_named_by_its_transactional_id(
    tmp_path: Path, *, redact: bool
) -> None:
    """The sample's producer left it open, its coordinator knows; by its files the broker lived on.
    A copy without times says nothing: the log's own clock stopped with the transaction.
    """
    log_dir = copy_sample("broker", tmp_path / "logs")
    now_ms = 1_796_000_000_000
    os.utime(log_dir / "recovery-point-offset-checkpoint", ns=(now_ms * 1_000_000,) * 2)
    scope = {"redact": redact}
    (found,) = findings_of(
        audited_document(log_dir, now_ms=now_ms, scope=scope), "open-transaction"
    )
    assert "its last record is of 2026-11-27T23:35:27.182Z, 0.0 h before the log" in found["text"]
    assert (
        "transactional id left-open, which its coordinator has as Ongoing since" in (found["text"])
    ) == (not redact)
    assert "transaction.timeout.ms 60000" in found["text"]
    dated(log_dir, now_ms)
    document = audited_document(log_dir, now_ms=now_ms)
    assert not findings_of(document, "open-transaction")
