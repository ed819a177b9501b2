"""Offsets that a log once had and that are not here: an audit and `why` tell those that are proven,
from the headers they have read anyway.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkalog.cli.main import main
from tests.auditing.disks import NOW_MS, Disk
from tests.auditing.documents import audited_document, findings_of

SEGMENT = "00000000000000000002"


def disk_without(log_dir: Path, *gone: str, **settings: object) -> Disk:
    """Three segments of two records, without some of the first one's, the middle one's or the last
    one's files.
    """
    disk = Disk(log_dir, **settings).segment(3, 3).segment(2, 2).segment(1, 1).write()
    for name in gone:
        (disk.log.path / name).unlink()
    return disk


def missing_of(document: dict[str, Any]) -> list[tuple[str, str, int | None, str]]:
    kinds = ("segment-missing", "first-segments-missing", "log-end-lost")
    return [
        (f["id"], f["severity"], f["offset"], f["text"])
        for f in document["findings"]
        if f["id"] in kinds
    ]


@pytest.mark.parametrize(
    ("number", "kind", "offsets"),
    [
        (0, "first-segments-missing", "offsets 0 to 1"),
        (2, "segment-missing", "offsets 2 to 3"),
        (4, "log-end-lost", "offsets 4 to 5"),
    ],
)
def test_a_proven_loss_is_an_error_with_its_range(
    tmp_path: Path, number: int, kind: str, offsets: str
) -> None:
    disk = disk_without(tmp_path, f"{number:020d}.log", cleanup_policy="delete")
    ((found, severity, offset, text),) = missing_of(disk.audit())
    assert (found, severity, offset) == (kind, "error", number)
    assert text.startswith(f"orders-0: {offsets} are not here: ")


def test_what_is_not_proven_or_elsewhere_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "compacted").mkdir()
    gone = [f"{SEGMENT}.{ending}" for ending in ("log", "index", "timeindex")]
    disk = disk_without(tmp_path / "compacted", *gone, cleanup_policy="compact")
    assert missing_of(disk.audit()) == []
    (tmp_path / "tiered").mkdir()
    tiered = {"cleanup_policy": "delete", "remote_storage_enable": "true"}
    disk = disk_without(tmp_path / "tiered", "00000000000000000000.log", **tiered)
    assert missing_of(disk.audit()) == []


def test_a_sound_log_costs_no_read_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise AssertionError("a segment was read again")

    monkeypatch.setattr("kafkalog.auditing.missing_findings.segment_span", fail)
    assert missing_of(disk_without(tmp_path, cleanup_policy="delete").audit()) == []


def test_why_tells_what_is_missing_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = disk_without(tmp_path, f"{SEGMENT}.log", cleanup_policy="delete")
    command = ["why", "orders-0", "--log-dir", str(disk.log_dir), "--now", str(NOW_MS)]
    assert main([*command, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [s["text"] for s in found["steps"] if s["rule"] == "missing"] == [
        "offsets 2 to 3 are not here: a segment ends at 2, the next one begins at 4"
    ]
    assert main([*command, "--key", "k", "--json"]) == 0
    assert [e["offset"] for e in json.loads(capsys.readouterr().out)] == [0, 1, 4, 5]
    assert main([*command, "--offset", "3"]) == 2
    assert "orders-0 once had offset 3: offsets 2 to 3 are not here" in capsys.readouterr().err


def test_the_limit_of_batches_holds_for_audit_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = Disk(tmp_path, cleanup_policy="delete")
    disk.log.segment(modified_ms=NOW_MS)
    disk.log.batch(("k", "v" * 5000), ("k", "v"), timestamp=NOW_MS)
    disk.write()
    scope = {"reads_records": True}
    document = audited_document(tmp_path, now_ms=NOW_MS, scope=scope)
    assert findings_of(document, "contents-unread") == []
    document = audited_document(tmp_path, now_ms=NOW_MS, scope=scope, max_batch_bytes=1000)
    (unread,) = findings_of(document, "contents-unread")
    assert "1000" in unread["text"]
    command = ["why", "orders-0", "--log-dir", str(tmp_path), "--now", str(NOW_MS)]
    assert main([*command, "--offset", "0"]) == 0
    assert main([*command, "--offset", "0", "--max-batch-bytes", "1000"]) == 1
    assert "1000" in capsys.readouterr().err
