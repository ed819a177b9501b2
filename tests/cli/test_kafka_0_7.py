"""Segments of Kafka 0.7 (`.kafka`) are named as what they are by every verb and reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kafkalog
from kafkalog.cli.main import main
from kafkalog.errors import InvalidConfigError
from tests.support.log_builder import LogBuilder

VERBS = ("audit", "cluster", "compact", "recover", "retain", "segments", "verify")
# A message of then: its length, magic 0, CRC, and the payload.
MESSAGE = bytes.fromhex("0000000a 00 11223344") + b"hello"


@pytest.fixture
def old(log_dir: Path) -> Path:
    (log_dir / "old-0").mkdir()
    path = log_dir / "old-0" / f"{0:020d}.kafka"
    path.write_bytes(MESSAGE * 3)
    return path


@pytest.mark.parametrize("verb", VERBS)
def test_where_nothing_else_is_a_verb_does_not_begin(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    more = ["--run-dir", str(tmp_path)] if verb in ("audit", "verify") else []
    assert main([verb, "--log-dir", str(old.parent.parent), *more]) == 2
    assert "a segment of Kafka 0.7, a format that is not read" in capsys.readouterr().err


def test_readers_and_dump_say_so(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (old.parent.parent, old.parent, old):
        with pytest.raises(InvalidConfigError, match=r"Kafka 0\.7"):
            kafkalog.read_records(str(path))
    assert main(["dump", str(old)]) == 1
    assert "Kafka 0.7" in capsys.readouterr().err


def test_beside_other_logs_it_is_a_finding(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = old.parent.parent
    LogBuilder(log_dir, "new-0").batch(("k", "v")).write()
    words = ["--log-dir", str(log_dir), "--run-dir", str(tmp_path), "--json"]
    assert main(["verify", *words]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    (found,) = [f for f in findings if f["id"] == "format-not-read"]
    assert (found["severity"], Path(found["path"]).name) == ("error", old.name)
    assert main(["audit", *words]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any("Kafka 0.7" in f["text"] for f in findings)
