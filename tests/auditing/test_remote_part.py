"""An audit of tiered topics: what is in remote storage, what goes there, what it costs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.cli.main import main
from kafkalog.remote.paths import RemoteStorage
from tests.auditing.documents import audited_document
from tests.remote.test_aiven import BROKER, STORE

TIERED = Path("data/samples/tiered/data")
NEWEST_MS = 1_795_877_237_485  # of the sample's last record
SEGMENTS = [3276, 3504, 3276, 3504, 3276]
DAY_MS = 86_400_000


def document(*log_dirs: Path, **options: Any) -> dict[str, Any]:
    options.setdefault("now_ms", NEWEST_MS)
    return audited_document(*(log_dirs or (TIERED,)), **options)


def topic(found: dict[str, Any], name: str = "tiered") -> dict[str, Any]:
    (row,) = (row for row in found["topics"] if row["topic"] == name)
    return row


def test_what_is_in_remote_storage_is_summed_up() -> None:
    found = document(scope={"price": 0.023})
    row = topic(found)
    assert (row["remoteSegments"], row["remoteBytes"], row["remoteDueBytes"]) == (5, 16836, 0)
    assert row["remoteCostPerMonth"] == round(16836 / 1024**3 * 0.023, 6)
    assert found["totals"]["remoteBytes"] == 16836
    assert topic(found, "__consumer_offsets")["remoteBytes"] == 0
    (partition,) = (p for p in found["partitions"] if p["topic"] == "tiered")
    assert partition["remote"]["nextDueMs"] > NEWEST_MS
    assert (partition["remote"]["segments"], partition["remote"]["logStartOffset"]) == (5, 0)
    assert topic(document())["remoteCostPerMonth"] is None


def test_what_is_due_there_and_where_the_log_begins_then() -> None:
    found = document(now_ms=NEWEST_MS + 8 * DAY_MS)
    assert topic(found)["remoteDueBytes"] == 16836
    (partition,) = (p for p in found["partitions"] if p["topic"] == "tiered")
    remote = partition["remote"]
    assert (remote["dueSegments"], remote["logStartOffset"]) == (5, 382)
    assert remote["reason"].startswith("segment 0: largest timestamp")


def test_replicas_share_what_is_in_remote_storage(tmp_path: Path) -> None:
    other = Path(shutil.copytree(TIERED, tmp_path / "other"))
    meta = other / "meta.properties"
    text = meta.read_text().replace("node.id=1", "node.id=2")
    meta.write_text("".join(f"{x}\n" for x in text.split("\n") if "directory.id" not in x))
    found = document(TIERED, other, scope={"price": 1.0})
    assert topic(found)["partitions"] == 2
    assert (topic(found)["remoteBytes"], found["totals"]["remoteBytes"]) == (16836, 16836)
    assert found["whatIf"][0]["points"][0]["remoteBytes"] == 16836


def test_scenarios_of_the_remote_part(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scope = {
        "price": 1.0,
        "times": ((True, DAY_MS), (True, 8 * DAY_MS)),
        "scenarios": parse_scenarios(
            ["retention.bytes=10000", "retention.bytes=8000", "retention.ms=-1", "retention.ms=1s"]
        ),
    }
    curves = [
        [p["remoteBytes"] for p in scenario["points"] if p["topic"] == "tiered"]
        for scenario in document(scope=scope)["whatIf"]
    ]
    # 16,836 bytes there and 1,244 on the disk only; the oldest go first.
    assert curves[0] == [16836, 16836, 0]
    assert curves[1] == [sum(SEGMENTS[2:]), sum(SEGMENTS[2:]), 0]
    assert curves[2] == [sum(SEGMENTS[3:])] * 3
    assert curves[3][1:] == [0, 0]
    words = ["audit", str(TIERED), "--topic=tiered", f"--now={NEWEST_MS}", "--what-if",
             "retention.ms=1h", "--at=+1d", "--price-per-gib-month=1000", "--workers=1",
             f"--run-dir={tmp_path}"]  # fmt: skip
    assert main(words) in (0, 1)
    printed = capsys.readouterr()
    assert "as configured, a month" in printed.out
    assert "remoteCostPerMonth" in printed.out
    assert "16.4 KiB in remote storage, 0 B of it due" in printed.err
    assert main([*words, "--price-per-gib-month=cheap"]) == 2


def test_a_disk_without_tiered_topics_has_no_such_columns(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["audit", "data/samples/broker", "--workers=1", f"--run-dir={tmp_path}"])
    assert "remote" not in capsys.readouterr().out


def test_the_document_of_the_command_is_valid(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["audit", str(TIERED), "--json", "--workers=1", f"--run-dir={tmp_path}"])
    assert json.loads(capsys.readouterr().out)["totals"]["remoteSegments"] == 5


def test_what_objects_take_is_what_is_billed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Compressed and encrypted ones; with the records of the metadata topic and without."""
    log_dir = Path(shutil.copytree(BROKER, tmp_path / "broker"))
    stored = sum(path.stat().st_size for path in STORE.rglob("*.*") if path.is_file())
    rows = []
    for _ in range(2):
        scope = {"price": 1.0, "remote": RemoteStorage((str(STORE),))}
        found = document(log_dir, scope=scope)
        rows.append({k: v for k, v in topic(found, "b-txn").items() if k.startswith("remote")})
        totals = found["totals"]
        assert (totals["remoteSegments"], totals["remoteStoredBytes"]) == (8, stored)
        assert totals["remoteCostPerMonth"] == round(stored / 1024**3, 6)
        assert totals["remoteBytes"] == 518093
        for path in log_dir.glob("__remote_log_metadata-*"):
            shutil.rmtree(path)
    assert rows[0] == rows[1]
    assert document(log_dir)["totals"]["remoteStoredBytes"] is None
    words = ["audit", str(log_dir), "--topic=b-txn", f"--remote-dir={STORE}", "--workers=1",
             f"--run-dir={tmp_path}/runs", "--format=csv"]  # fmt: skip
    main(words)
    assert "remoteStoredBytes" in capsys.readouterr().out
    assert main(["audit", str(log_dir), "--remote-layout=aiven"]) == 2
