from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.swap.checkpoint import CheckpointFile
from kafkalog.swap.local_files import LocalFiles


def cleaner_checkpoint(log_dir: Path) -> CheckpointFile:
    return CheckpointFile(str(log_dir), CLEANER_OFFSET_FILE, LocalFiles())


def update(log_dir: Path, offsets: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    cleaner_checkpoint(log_dir).update(offsets)
    path = log_dir / CLEANER_OFFSET_FILE
    assert [p.name for p in log_dir.iterdir() if p.is_file()] == [CLEANER_OFFSET_FILE]
    return dict(parse_offset_checkpoint(path.read_bytes(), str(path)))


@pytest.fixture
def two_partitions(log_dir: Path) -> Path:
    for name in ("a-0", "b-1", "c-0-stray", "d.0123456789abcdef0123456789abcdef-delete", "other"):
        (log_dir / name).mkdir()
    return log_dir


def test_other_partitions_are_kept_and_those_that_are_gone_dropped(two_partitions: Path) -> None:
    path = two_partitions / CLEANER_OFFSET_FILE
    path.write_text("0\n4\na 0 5\nb 1 6\nc 0 7\ngone 0 8\n")
    path.chmod(0o600)
    assert update(two_partitions, {("a", 0): 50}) == {("a", 0): 50, ("b", 1): 6}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_first_checkpoint_is_made(two_partitions: Path) -> None:
    assert update(two_partitions, {("b", 1): 1}) == {("b", 1): 1}


def test_nothing_to_set_writes_nothing(two_partitions: Path) -> None:
    cleaner_checkpoint(two_partitions).update({})
    assert not (two_partitions / CLEANER_OFFSET_FILE).exists()


@pytest.mark.parametrize("text", ["0\n2\na 0 5\n", "7\n0\n", "0\n1\na zero 5\n", "0\nx\n"])
def test_a_checkpoint_that_is_not_understood_stays(two_partitions: Path, text: str) -> None:
    path = two_partitions / CLEANER_OFFSET_FILE
    path.write_text(text)
    with pytest.raises(CorruptCheckpointError):
        cleaner_checkpoint(two_partitions).update({("a", 0): 50})
    assert path.read_text() == text


def test_a_temporary_file_of_a_crash_is_replaced(two_partitions: Path) -> None:
    (two_partitions / f"{CLEANER_OFFSET_FILE}.tmp").write_text("half")
    assert update(two_partitions, {("a", 0): 3}) == {("a", 0): 3}


def test_a_line_that_somebody_wrote_since_stays(two_partitions: Path) -> None:
    path = two_partitions / CLEANER_OFFSET_FILE
    path.write_text("0\n2\na 0 5\nb 1 6\n")
    kept = replace(cleaner_checkpoint(two_partitions), keep_for="abc")
    kept.update({("a", 0): 50, ("b", 1): 60})
    cleaner_checkpoint(two_partitions).update({("b", 1): 70})
    kept.restore("abc", {("a", 0): [(5, 50)], ("b", 1): [(6, 60)]})
    found = dict(parse_offset_checkpoint(path.read_bytes(), str(path)))
    assert found == {("a", 0): 5, ("b", 1): 70}
