"""`kafkalog why`: one command that walks the rules and shows the one that holds (pain 33)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.retention import RetentionLimits, why_kept
from tests.auditing.disks import DAY_MS, NOW_MS, Disk

COMPACT = {"cleanup_policy": "compact"}


def why(
    disk: Disk, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> list[dict[str, Any]]:
    capsys.readouterr()
    arguments = ["why", "orders-0", "--log-dir", str(disk.log_dir), "--now", str(NOW_MS)]
    assert main([*arguments, *words, "--json"]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out or "[]")
    return found


def steps_of(explanation: dict[str, Any]) -> dict[str, str]:
    return {step["rule"]: step["text"] for step in explanation["steps"]}


def compacted(log_dir: Path, **settings: object) -> Disk:
    """Old closed segments with two values of one key, and an active one."""
    disk = Disk(log_dir, **COMPACT, **settings).segment(9 * DAY_MS)
    disk.log.batch(("other", "v"), timestamp=NOW_MS - 9 * DAY_MS)
    disk.log.batch(("gone", None), timestamp=NOW_MS - 9 * DAY_MS)
    return disk.segment(8 * DAY_MS).segment(0)


def test_a_superseded_record_goes_with_the_next_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = compacted(tmp_path).write()
    first, latest, active = why(disk, capsys, "--key", "k")
    assert (first["offset"], first["goes_ms"]) == (0, NOW_MS)
    assert first["goes_by"] == "compaction (superseded)"
    assert "the latest is at 4" in steps_of(first)["record: superseded"]
    assert (latest["offset"], latest["goes_ms"]) == (3, -1)
    assert "stays" in latest["kept_by"]
    assert active["kept_by"].endswith("active segment")
    (other,) = why(disk, capsys, "--offset", "1")
    assert other["goes_ms"] == -1


def test_a_tombstone_stays_until_its_horizon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tombstone,) = why(compacted(tmp_path).write(), capsys, "--key", "gone")
    assert tombstone["goes_ms"] == -1
    assert "a tombstone: it stays in this round, and goes in one after" in tombstone["kept_by"]


@pytest.mark.parametrize(
    ("settings", "change", "rule", "expected"),
    [
        ({}, lambda log: log.high_watermark(1), "first uncleanable offset", "high watermark 1"),
        (
            {"min_compaction_lag_ms": 30 * DAY_MS},
            lambda log: None,
            "first uncleanable offset",
            "min.compaction.lag.ms: segment 0 holds a record of",
        ),
        (
            {"min_cleanable_dirty_ratio": 1},
            lambda log: log.cleaner_offset(3),
            "compaction",
            "is not above min.cleanable.dirty.ratio 1",
        ),
        ({}, lambda log: None, "compaction", "is above 0.5"),
    ],
)
def test_the_reason_that_holds_is_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    settings: dict[str, object],
    change: Any,
    rule: str,
    expected: str,
) -> None:
    disk = compacted(tmp_path, **settings)
    change(disk.log)
    (partition,) = why(disk.write(), capsys)
    assert expected in steps_of(partition)[rule]


def test_a_topic_that_deletes_says_so_and_from_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Disk(tmp_path, cleanup_policy="delete", retention_ms=7 * DAY_MS)
    disk.segment(9 * DAY_MS).segment(6 * DAY_MS).segment(0).write()
    (partition,) = why(disk, capsys)
    assert steps_of(partition)["cleanup.policy"] == "delete (from topic)"
    assert "nothing is cleaned" in steps_of(partition)["compaction"]
    assert (partition["goes_ms"], partition["goes_by"]) == (NOW_MS - 2 * DAY_MS + 1, "retention.ms")
    (record,) = why(disk, capsys, "--offset", "1")
    assert (record["segment_base_offset"], record["goes_ms"]) == (1, NOW_MS + DAY_MS + 1)


def test_what_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk = compacted(tmp_path).write()
    for words, said in (
        (["--offset", "99"], "no record at offset 99"),
        (["--key", "nobody"], "no record with this key"),
        (["--key", "k", "--offset", "1"], "not both"),
    ):
        arguments = ["why", "orders-0", "--log-dir", str(disk.log_dir), *words]
        capsys.readouterr()
        assert main(arguments) == 2
        assert said in capsys.readouterr().err
    assert main(["why", "--log-dir", str(disk.log_dir)]) == 2
    assert main(["why", "orders-0", "--log-dir", str(disk.log_dir)]) == 0
    assert "orders-0" in capsys.readouterr().out


# The last of the sample's segments is here, the others are in remote storage.
TIERED = ("why", "tiered-0", "--log-dir", str(SAMPLES / "tiered" / "data"))


@pytest.mark.parametrize("now", ["2026-12-01", "2027-06-01"])
def test_of_a_tiered_partition_one_rule_keeps_the_local_segment(
    capsys: pytest.CaptureFixture[str], now: str
) -> None:
    """Before and after it is due by its age."""
    for more in ((), ("--offset", "390")):
        assert main([*TIERED, "--now", now, "--json", *more]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        steps = steps_of(found)
        text = steps["retention: awaits-upload"]
        assert "the active segment is not uploaded" in text
        assert "goes after" not in text
        assert "in front of it stays" not in text
        assert (found["kept_by"], found["goes_ms"]) == ("awaits-upload", -1)
        assert "offset 382" in steps["local log start"]
        assert "offsets up to 381" in steps["local log start"]


def test_of_a_record_in_remote_storage_why_says_where_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And what keeps it there, before and after it is due."""
    for now, rule, ends in (("2026-12-01", "retention.ms", True), ("2027-06-01", "", True)):
        assert main([*TIERED, "--now", now, "--offset", "100", "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        text = steps_of(found)["remote retention: retention.ms"]
        assert ("more than retention.ms 7 d " in text) == (not rule)
        assert (found["segment_base_offset"], found["kept_by"]) == (76, rule)
        assert (found["goes_ms"] > 0, found["goes_by"]) == (ends, "retention.ms")
    assert main([*TIERED, "--now", "2026-12-01", "--key", "0", "--json"]) == 0
    assert [row["offset"] >= 382 for row in json.loads(capsys.readouterr().out)]


def test_a_closed_segment_that_is_not_uploaded_says_up_to_where_the_others_are() -> None:
    segment = SimpleNamespace(
        base_offset=10, end_offset=20, timestamp_ms=0, is_file_time=False, is_active=False,
        is_empty_active=False,
    )  # fmt: skip
    config = LogConfig.from_overrides(["retention.ms=1000"])
    for uploaded, told in ((14, "has offsets up to 14"), (-1, "has nothing of this partition")):
        limits = RetentionLimits(config, NOW_MS, 20, 0, uploaded)
        rule, text = why_kept(segment, (), segment, limits)  # type: ignore[arg-type]
        assert rule == "awaits-upload"
        assert told in text
