"""Files are forced to disk together where several are made at once, and hints change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.native import write_back
from kafkalog.swap.local_files import LocalFiles
from tests.operations.faults.breaking_files import CountingFiles


def test_several_small_files_are_all_written_before_the_first_is_waited_for(tmp_path: Path) -> None:
    made = [(str(tmp_path / name), name.encode() * 100) for name in ("a", "b", "c")]
    (tmp_path / "b").write_bytes(b"what an attempt left")
    files = CountingFiles()
    files.write_all_new(made, tmp_path.stat())
    assert files.steps[-3:] == ["sync file"] * 3
    assert files.steps.count("sync file") == 3
    assert {path: Path(path).read_bytes() for path, _ in made} == dict(made)


def test_bytes_are_given_to_the_disk_early_where_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(bytes(range(200)))
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(write_back, "_call", lambda _, *range_: asked.append(range_))
    LocalFiles().begin_write_back(str(path), 100, 50)
    assert asked == [(100, 50, 2)]
    monkeypatch.setattr(write_back, "_call", None)
    LocalFiles().begin_write_back(str(path), 100, 50)
    monkeypatch.undo()
    LocalFiles().begin_write_back(str(path), 100, 50)
    assert path.read_bytes() == bytes(range(200))
