"""Large logs, which are copied, read and forced to disk side by side: what is asked of each of them
still holds when all of it ends, and of several of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kafkalog.requests.run_request import run_request
from kafkalog.restoring import beside
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RestoreRun
from kafkalog.restoring.run import apply_restore
from kafkalog.swap.local_files import LocalFiles
from tests.restoring.fresh import fresh_node
from tests.restoring.target import empty_target, served
from tests.restoring.test_fresh import tree
from tests.restoring.test_restore import busy
from tests.support.log_builder import START_MS

PARTITIONS = 3


@pytest.fixture(autouse=True)
def _all_logs_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "THREADS_FROM_BYTES", 0)


@pytest.fixture
def source(log_dir: Path) -> Path:
    for number in range(PARTITIONS):
        busy(log_dir / "source", f"orders-{number}").write()
    return log_dir / "source"


def restored(source: Path, target: Path, tmp_path: Path, files: LocalFiles) -> RestoreRun:
    request = run_request([str(target)], {"run_dir": str(tmp_path / "runs"), "now_ms": START_MS})
    return apply_restore(request, RestoreRequest((str(source),), ("*",)), lambda _: None, files)


@pytest.mark.parametrize("target_is_new", [True, False])
def test_several_large_logs_are_each_what_the_source_has(
    target_is_new: bool, source: Path, log_dir: Path, tmp_path: Path
) -> None:
    target = log_dir / "target"
    fresh_node(target) if target_is_new else empty_target(target, {"orders": PARTITIONS})
    run = restored(source, target, tmp_path, LocalFiles())
    assert [(each.status, each.records) for each in run.results] == [("restored", 16)] * 3
    for number in range(PARTITIONS):
        name = f"orders-{number}"
        assert served(target / name) == served(source / name)


class _Changing(LocalFiles):
    """Changes the leader epoch of a batch, which no checksum covers, before one partition is
    copied, or in the copy; or has a byte more there.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def copy_into(self, fd: int, source: str, length: int, start: int = 0) -> None:
        is_it = Path(source).parent.name == "orders-1"
        if is_it and self.what == "source":
            before = Path(source).stat()
            with Path(source).open("r+b") as file:
                os.pwrite(file.fileno(), b"\x55", 15)
            os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        super().copy_into(fd, source, length, start)
        if is_it and self.what == "copy":
            os.pwrite(fd, b"\x55", 15)
        if is_it and self.what == "end":
            os.write(fd, b"\0")


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("source", "was written to since this was planned"),
        ("copy", "differs from the source's"),
        ("end", "does not end as the source's does|no batch|no whole batch"),
    ],
)
def test_one_large_log_that_is_not_the_planned_one_stops_them_all(
    what: str, reason: str, source: Path, log_dir: Path, tmp_path: Path
) -> None:
    target = fresh_node(log_dir / "target")
    before = tree(target)
    run = restored(source, target, tmp_path, _Changing(what))
    reasons = {each.partition: each.reason for each in run.results}
    assert re.search(reason, reasons.pop(1))
    assert set(reasons.values()) == {
        "another partition failed: nothing of the run was put in place"
    }
    assert tree(target) == before
    assert list(target.glob("*-*")) == []


class _Forgetting(LocalFiles):
    """What is given up of memory."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def forget(self, path: str) -> None:
        super().forget(path)
        self.forgotten.append("source" if "/source/" in path else "copy")


@pytest.mark.parametrize(
    ("free_pages", "target_is_new", "is_forgotten"),
    [(0, True, True), (1 << 40, True, False), (0, False, False)],
    ids=["short of memory", "enough memory", "read again"],
)
def test_memory_that_is_short_is_not_kept_for_what_is_not_read_again(
    free_pages: int,
    target_is_new: bool,
    is_forgotten: bool,
    source: Path,
    log_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = os.sysconf
    monkeypatch.setattr(
        os, "sysconf", lambda name: free_pages if name == "SC_AVPHYS_PAGES" else known(name)
    )
    target = log_dir / "target"
    fresh_node(target) if target_is_new else empty_target(target, {"orders": PARTITIONS})
    files = _Forgetting()
    run = restored(source, target, tmp_path, files)
    assert {each.status for each in run.results} == {"restored"}
    segments = len([*source.glob("*/*.log")])
    assert sorted(files.forgotten) == (
        ["copy"] * segments + ["source"] * segments if is_forgotten else []
    )
