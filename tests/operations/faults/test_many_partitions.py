"""One run over 500 partitions, seven of them damaged in different ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from tests.conftest import NOW_MS
from tests.operations.faults.logs import SETTINGS
from tests.support.log_builder import START_MS, LogBuilder

LOG = f"{0:020d}.log"


def _flip(path: Path) -> None:
    data = bytearray((path / LOG).read_bytes())
    data[-1] ^= 0xFF
    (path / LOG).write_bytes(data)


def _forge_length(path: Path) -> None:
    data = bytearray((path / LOG).read_bytes())
    data[8:12] = (2**31 - 1).to_bytes(4, "big")
    (path / LOG).write_bytes(data)


def _cut(path: Path) -> None:
    (path / LOG).write_bytes((path / LOG).read_bytes()[:-5])


def _swap_for_link(path: Path) -> None:
    (path / LOG).rename(path / "elsewhere")
    (path / LOG).symlink_to(path / "elsewhere")


def _name_oddly(path: Path) -> None:
    (path / "not-a-number.log").write_bytes(b"x")


def _garble_metadata(path: Path) -> None:
    (path / "partition.metadata").write_bytes(b"\xff\x00 nonsense")


def _magic(path: Path) -> None:
    data = bytearray((path / LOG).read_bytes())
    data[16] = 9
    (path / LOG).write_bytes(data)


DAMAGE: tuple[Callable[[Path], None], ...] = (
    _flip,
    _forge_length,
    _cut,
    _swap_for_link,
    _name_oddly,
    _garble_metadata,
    _magic,
)


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.soak)])
def test_the_damaged_are_named_and_the_others_done(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    for number in range(count):
        log = LogBuilder(log_dir, f"t-{number}")
        log.segment(modified_ms=START_MS).batch(("a", "1"), ("b", "1"))
        log.segment(modified_ms=START_MS).batch(("a", "2"))
        log.segment().batch(("a", "3")).write()
    damaged = {number * 5 + 1: damage for number, damage in enumerate(DAMAGE)}
    for number, damage in damaged.items():
        damage(log_dir / f"t-{number}")
    before = {
        number: {p.name: p.read_bytes() for p in (log_dir / f"t-{number}").iterdir()}
        for number in damaged
    }
    words = ["compact", "--log-dir", str(log_dir), "--topic", "t", "--apply", "--json"]
    words += ["--run-dir", str(tmp_path), "--now", str(NOW_MS), "--workers", "1"]
    code = main(words + [f"--config={key}={value}" for key, value in SETTINGS.items()])
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    statuses = {entry["partition"]: entry["status"] for entry in document["partitions"]}
    not_done = {n: e for n, e in statuses.items() if e != "compacted"}
    assert len(statuses) == count
    assert not_done.keys() == damaged.keys()
    assert set(not_done.values()) <= {"failed", "refused"}
    assert all(e["reason"] for e in document["partitions"] if e["partition"] in damaged)
    for number, files in before.items():
        found = {p.name: p.read_bytes() for p in (log_dir / f"t-{number}").iterdir()}
        assert found == files, DAMAGE[(number - 1) // 5].__name__
