"""A plan meets other files than it was made from, or files it may not replace: nothing changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.operations import compact_partition
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact_partition import clean_partition
from tests.operations.faults.breaking_files import run_in_child
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import NAME, compact, contents
from tests.operations.faults.test_attempts import RUN, InterruptedFiles, plan_of

SOURCE = f"{NAME}/{20:020d}.log"
ACTIVE = f"{NAME}/{2 * (2**31 + 100) + 40:020d}.log"


def grow(log_dir: Path, name: str) -> None:
    with (log_dir / name).open("ab") as file:
        file.write(b"x")


def rewrite(log_dir: Path, name: str) -> None:
    """The same bytes, written again a little later."""
    path = log_dir / name
    stat = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(stat.st_mtime_ns, stat.st_mtime_ns + 1_000_000))


def replace_file(log_dir: Path, name: str) -> None:
    """The same bytes and time in another inode."""
    shutil.copy2(log_dir / name, log_dir / "other")
    (log_dir / "other").rename(log_dir / name)


def replace_directory(log_dir: Path, name: str) -> None:
    """The same files on what might be another disk."""
    shutil.copytree(log_dir, log_dir.with_name("other"))
    shutil.rmtree(log_dir)
    log_dir.with_name("other").rename(log_dir)


def move_checkpoint(log_dir: Path, name: str) -> None:
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 20\n")


CHANGES = {
    "source grew": (grow, SOURCE),
    "active segment grew": (grow, ACTIVE),
    "source written again": (rewrite, SOURCE),
    "source replaced": (replace_file, SOURCE),
    "directory replaced": (replace_directory, ""),
    "checkpoint moved": (move_checkpoint, ""),
}
Change = Callable[[Path, str], None]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changed_since_the_plan_stops_the_task_before_it_begins(
    undisturbed: Undisturbed, log_dir: Path, change: tuple[Change, str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    plan = plan_of(copy)
    change[0](copy, change[1])
    changed = contents(copy)
    result = clean_partition(plan, CleanRun(RUN, os.getpid()))
    assert result.status == "failed"
    assert "not those the plan was made from" in result.reason
    assert contents(copy) == changed


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_while_the_task_works_stops_it_before_the_swap(
    undisturbed: Undisturbed, log_dir: Path, change: tuple[Change, str]
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    plan = plan_of(copy)
    first_group_is_written = undisturbed.steps.index("set modification time")
    files = InterruptedFiles(first_group_is_written + 3, lambda: change[0](copy, change[1]))
    changed = undisturbed.copy(log_dir / "changed")
    change[0](changed, change[1])
    result = clean_partition(plan, CleanRun(RUN, os.getpid()), files)
    assert result.status == "failed"
    found = {name: data for name, (data, _) in contents(copy).items()}
    assert found == {name: data for name, (data, _) in contents(changed).items()}


def test_ownership_that_cannot_be_given_is_refused_before_any_work(
    undisturbed: Undisturbed, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    def begin(*_: object) -> None:
        raise AssertionError("work was begun")

    for name in ("join_sources", "new_reverse_pass", "map_sources"):
        monkeypatch.setattr(compact_partition, name, begin)
    (result,) = compact(copy).results
    assert result.status == "refused"
    assert "run it as that user or as root" in result.reason
    assert contents(copy) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_who_may_write_the_directory_is_refused(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    for path in (log_dir, copy, copy / NAME):
        path.chmod(0o777)
    before = contents(copy)
    report = log_dir / "report"

    def as_nobody() -> None:
        os.environ["XDG_STATE_HOME"] = str(log_dir / "state")
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        (result,) = compact(copy).results
        report.write_text(f"{result.status}: {result.reason}")

    assert run_in_child(as_nobody) == 0
    assert report.read_text().startswith("refused: ")
    assert "which this process may not give" in report.read_text()
    assert contents(copy) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_group_and_mode_are_those_of_the_first_source(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    for path in (copy / NAME).iterdir():
        os.chown(path, 65534, 65533)
        path.chmod(0o640)
    compact(copy)
    segments = [p for p in (copy / NAME).iterdir() if p.suffix in (".log", ".index", ".timeindex")]
    assert len(segments) == 18
    for path in segments:
        stat = path.stat()
        assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o7777) == (65534, 65533, 0o640), path


def test_without_apply_nothing_changes(undisturbed: Undisturbed, log_dir: Path) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = contents(copy)
    assert plan_of(copy).status == "clean"
    assert contents(copy) == before
    assert not (copy / ".lock").exists()
