"""Restores that something comes between: a broker or another run that has the lock, a source that
is written to, a disk that fills up, an undo too many. Nothing live is touched, or undo gives it
back.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.operations.undo import undo_run
from kafkalog.requests.run_request import run_request
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RESTORED, RestoreRun
from kafkalog.restoring.run import apply_restore, restore_statuses
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.log_dir_lock import LogDirLock
from tests.operations.faults.breaking_files import CountingFiles, FailingFiles
from tests.restoring.fresh import fresh_node
from tests.restoring.target import empty_target, restore, served
from tests.restoring.test_fresh import tree
from tests.restoring.test_restore import busy

MAKERS: dict[str, Callable[[Path], Path]] = {"existing": empty_target, "fresh": fresh_node}


@pytest.fixture
def source(log_dir: Path) -> Path:
    busy(log_dir / "source").log_start_offset(3).write()
    return log_dir / "source"


@pytest.fixture(params=[pytest.param("existing", marks=pytest.mark.thorough), "fresh"])
def target(log_dir: Path, request: pytest.FixtureRequest) -> Path:
    return MAKERS[request.param](log_dir / "target")


def run(source: Path, target: Path, run_dir: Path, files: LocalFiles) -> RestoreRun:
    asked = RestoreRequest((str(source),), ("orders",))
    request = run_request([str(target)], {"run_dir": str(run_dir)})
    return apply_restore(request, asked, lambda _: None, files)


@contextmanager
def held_by_another(log_dir: Path) -> Iterator[None]:
    """Within it another process has the lock, as a broker has it."""
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        with LogDirLock(str(log_dir)):
            os.write(ready[1], b"x")
            os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        yield
    finally:
        os.write(done[1], b"x")
        os.waitpid(pid, 0)


@pytest.mark.parametrize("who", ["source", "target"])
def test_log_dir_that_somebody_holds_is_left_alone(
    who: str, source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"source": source, "target": target}[who]
    before = tree(target)
    with held_by_another(held):
        assert restore(source, target) == 3
    shown = "".join(capsys.readouterr())
    assert "lock" in shown
    assert str(held) in shown
    assert tree(target) == before


class _Writing(LocalFiles):
    """Somebody appends to the source once the first byte was copied."""

    def __init__(self, segment: Path) -> None:
        self._segment = segment

    def create(self, path: str) -> int:
        with self._segment.open("ab") as file:
            file.write(bytes(100))
        return super().create(path)


def test_source_that_is_written_to_meanwhile_fails_the_run(
    source: Path, target: Path, tmp_path: Path
) -> None:
    before = tree(target)
    last = max((source / "orders-0").glob("*.log"))
    (result,) = run(source, target, tmp_path / "runs", _Writing(last)).results
    assert (result.status, "somebody wrote meanwhile" in result.reason) == ("failed", True)
    assert before.items() <= tree(target).items()
    assert [path.name for path in target.rglob("*.tmp")] == []


@pytest.mark.parametrize(
    "every", [pytest.param(43, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("kind", MAKERS)
def test_disk_that_is_full_leaves_what_was_there_or_undo_gives_it_back(
    kind: str, for_good: bool, every: int, source: Path, log_dir: Path, tmp_path: Path
) -> None:
    counting = CountingFiles()
    run(source, MAKERS[kind](log_dir / "whole"), tmp_path / "whole", counting)
    for step in range(every // 2, len(counting.steps), every):
        what = f"{kind}, full at step {step}, {counting.steps[step]}"
        target, runs = MAKERS[kind](log_dir / f"{step}-target"), tmp_path / f"{step}"
        before = tree(target)
        files = FailingFiles(step, errno.ENOSPC, for_good=for_good)
        try:
            found = run(source, target, runs, files)
        except OSError:
            found = None
        if found is not None and restore_statuses(found) == [RESTORED]:
            assert served(target / "orders-0") == served(source / "orders-0"), what
        for each in runs.iterdir():
            undo_run(runs, each.name)
        assert {n: its for n, its in tree(target).items() if n in before} == before, what
        assert not (target / "orders-0").is_dir() or served(target / "orders-0")[0] == [], what


def test_error_while_segments_get_their_names_leaves_the_log_start_of_what_is_there(
    source: Path, log_dir: Path, tmp_path: Path
) -> None:
    counting = CountingFiles()
    run(source, empty_target(log_dir / "whole"), tmp_path / "whole", counting)
    step = counting.steps.index(f"rename to {14:020d}.log")
    target = empty_target(log_dir / "target")
    (result,) = run(source, target, tmp_path / "runs", FailingFiles(step, errno.ENOSPC)).results
    assert result.status == "failed"
    assert served(target / "orders-0") == served(source / "orders-0")


def test_second_undo_does_nothing_and_says_so(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(target)
    assert restore(source, target) == 0
    (run_id,) = set(re.findall(r"kafkalog undo (\w+)", capsys.readouterr().err))
    assert main(["undo", run_id]) == 0
    assert tree(target) == before
    capsys.readouterr()
    assert main(["undo", run_id]) == 3
    assert "nothing" in capsys.readouterr().out
    assert tree(target) == before


def test_undo_leaves_what_was_written_to_since(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert restore(source, target) == 0
    (run_id,) = set(re.findall(r"kafkalog undo (\w+)", capsys.readouterr().err))
    last = max((target / "orders-0").glob("*.log"))
    last.write_bytes(last.read_bytes() * 2)
    before = tree(target)
    assert main(["undo", run_id]) in (1, 3)
    assert "changed since" in "".join(capsys.readouterr())
    assert (target / "orders-0" / last.name).read_bytes() == before[f"orders-0/{last.name}"]
