"""A partition is opened again only where something of it, or of its log dir, has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.errors import LogChangedError
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.log_dir_files import LogDirFiles, read_log_dir_files
from kafkalog.swap import plan_check
from kafkalog.swap.plan_check import check_at_start, check_unchanged, file_states, planned_here
from tests.support.log_builder import START_MS, LogBuilder


def written(log_dir: Path) -> PartitionInventory:
    """A partition as a run opens it."""
    log = LogBuilder(log_dir, index_interval_bytes=1).segment(modified_ms=START_MS)
    log.batch(("a", "1")).batch(("b", "1")).segment().batch(("a", "2")).cleaner_offset(1).write()
    (partition,) = open_log_dir(log_dir, known={})
    return partition


def grown(log_dir: Path) -> None:
    with max((log_dir / "orders-0").glob("*.log")).open("ab") as file:
        file.write(b"\0" * 70)


def other_bytes(log_dir: Path) -> None:
    """An index of the same size and times: only the time of the change itself tells, as soon as
    the clock of the file system has gone on.
    """
    index = min((log_dir / "orders-0").glob("*.timeindex"))
    stat = index.stat()
    while index.stat().st_ctime_ns == stat.st_ctime_ns:
        index.write_bytes(bytes(byte ^ 1 for byte in index.read_bytes()))
        os.utime(index, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def checkpoint(log_dir: Path) -> None:
    (log_dir / CLEANER_OFFSET_FILE).write_text("0\n1\norders 0 12\n")


def other_disk(log_dir: Path) -> None:
    path = log_dir / META_PROPERTIES_FILE
    lines = path.read_text().splitlines() if path.exists() else ["version=1"]
    kept = [line for line in lines if not line.startswith("directory.id")]
    path.write_text("\n".join([*kept, "directory.id=AAAAAAAAAAAAAAAAAAAAAQ", "#"]) + "\n")


CHANGES: dict[str, Callable[[Path], None]] = {
    "a segment": grown,
    "a checkpoint": checkpoint,
    "the directory id": other_disk,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_has_changed_since_a_plan_of_this_process_is_noticed(
    log_dir: Path, change: Callable[[Path], None]
) -> None:
    partition = written(log_dir)
    with planned_here([(partition, partition.token)]):
        assert check_unchanged(partition.path, partition.token) is partition
        change(log_dir)
        with pytest.raises(LogChangedError):
            check_unchanged(partition.path, partition.token)


def aged(log_dir: Path, seconds: int) -> int:
    """A time, in ns, so long behind all changes of a log dir's own files."""
    newest = max(path.stat().st_ctime_ns for path in log_dir.iterdir() if path.is_file())
    return newest + seconds * 1_000_000_000


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_task_notices_what_has_changed_since_one_before_it(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    partition = written(log_dir)
    monkeypatch.setattr(plan_check, "now_ns", lambda: aged(log_dir, 3600))
    with planned_here([(partition, partition.token)]):
        for _ in range(2):
            found, states = check_at_start(partition.path, partition.token)
            assert found is partition
            assert states == file_states(partition.path)
        change(log_dir)
        with pytest.raises(LogChangedError):
            check_at_start(partition.path, partition.token)


@pytest.mark.parametrize(("seconds", "reads"), [(3600, 1), (0, 3)])
def test_files_of_a_log_dir_are_read_once_if_they_have_not_just_changed(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, reads: int
) -> None:
    partition, paths = written(log_dir), list[Path]()

    def reading(path: Path) -> LogDirFiles:
        paths.append(path)
        return read_log_dir_files(path)

    monkeypatch.setattr(plan_check, "now_ns", lambda: aged(log_dir, seconds))
    monkeypatch.setattr(plan_check, "read_log_dir_files", reading)
    with planned_here([(partition, partition.token)]):
        for _ in range(3):
            check_at_start(partition.path, partition.token)
    assert len(paths) == reads


def test_a_plan_of_another_token_is_held_against_the_files(log_dir: Path) -> None:
    partition = written(log_dir)
    with (
        planned_here([(partition, partition.token)]),
        pytest.raises(LogChangedError),
    ):
        check_unchanged(partition.path, "0" * 64)
    # Behind the run nothing of it is believed any more.
    assert check_unchanged(partition.path, partition.token) is not partition


@pytest.mark.parametrize(
    "change", [*CHANGES.values(), other_bytes], ids=[*CHANGES.keys(), "bytes of an index"]
)
def test_a_change_before_the_swap_is_another_state(
    log_dir: Path, change: Callable[[Path], None]
) -> None:
    path = written(log_dir).path
    before = file_states(path)
    assert before is not None
    # What a run itself writes is none.
    Path(path, "kafkalog-0123abc-4567-00000000000000000000.log.tmp").write_bytes(b"x")
    assert file_states(path) == before
    change(log_dir)
    assert file_states(path) != before
