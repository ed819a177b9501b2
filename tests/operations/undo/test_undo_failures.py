"""Every single step of a run, of its undo and of its purge fails once: the partition is old or new,
it is told why, the next run ends it, and undo still gives the original files.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.operations.earlier_run import NOTHING, PURGED, UNDONE
from kafkalog.operations.purge import purge_run
from kafkalog.operations.undo import undo_run
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.scratch import is_scratch
from tests.operations.faults.breaking_files import CountingFiles, FailingFiles
from tests.operations.undo.cases import CASES, Case, some_cases, written
from tests.operations.undo.test_undo_kills import check_original, copied, undo_all
from tests.operations.undo.trees import NAME, Node, differences, files, kept, tree

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
LOG_START = "log-start-offset-checkpoint"
RECOVER = next(case for case in CASES if case.name == "recover-split")
Tree = dict[str, Node]

sampled = pytest.mark.parametrize(
    "every", [61, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"]
)


@dataclass(frozen=True)
class Scene:
    """A case's log dir before its run, and the files after it. `split` is what a segment whose
    offsets lie too far apart becomes before the run goes on with it.
    """

    case: Case
    source: Path
    place: Path
    work: Path
    old: Tree
    new: Tree
    split: Tree

    def fresh(self) -> None:
        """The log dir as before the run. Run dirs name paths: each round has the same one."""
        shutil.rmtree(self.place, ignore_errors=True)
        copied(self.source, self.place)

    def run(self, files: LocalFiles | None, name: str = "runs") -> Any:
        return self.case.run(self.place, self.work / name, files)


@pytest.fixture
def scene(case: Case, log_dir: Path, tmp_path: Path) -> Scene:
    written(case, log_dir / "before")
    scene = Scene(case, log_dir / "before", log_dir / "place", tmp_path, {}, {}, {})
    scene.fresh()
    old, split = files(tree(scene.place)), {}
    if case.name == "compact-split":
        assert not RECOVER.run(scene.place, tmp_path / "splitting", None).problems
        split = live(scene.place)
        scene.fresh()
    assert not scene.run(None, "first").problems
    return replace(scene, old=old, new=live(scene.place), split=split)


def live(log_dir: Path) -> Tree:
    """The files that are not kept for undo."""
    return {name: node for name, node in files(tree(log_dir)).items() if ".undo" not in name}


def failures(count: int, every: int, offset: int) -> Iterable[tuple[int, int]]:
    """(step, error number): each step with each error; of a sample each with one of them."""
    for step in range(offset % every, count, every):
        numbers = ERRORS if every == 1 else [ERRORS[step % len(ERRORS)]]
        yield from ((step, number) for number in numbers)


def check_told(run: Any, error_number: int, what: str) -> None:
    told = [result.reason for result in run.results] + list(run.problems)
    assert any(os.strerror(error_number) in text for text in told), (what, told)
    assert not run.faults, (what, run.faults)


def check_old_or_new(scene: Scene, what: str) -> None:
    """Each file has the bytes from before or after, and so have all files of a segment whose `.log`
    is another one after the run; a rebuilt index is right beside either `.log`.
    """
    found = {name: node.data for name, node in live(scene.place).items()}
    states = [state for state in (scene.old, scene.new, scene.split) if state]
    known = [{name: node.data for name, node in state.items()} for state in states]
    for name, data in found.items():
        if is_scratch(name.rpartition("/")[2]) or name.endswith((".deleted", ".tmp")):
            continue  # what could not be removed: check_left has it
        if name == LOG_START:
            check_log_start(scene, data or b"", what)
        else:
            assert data in [state.get(name) for state in known], (what, name)
    for log in {name for state in known for name in state if name.endswith(".log")}:
        logs = [state.get(log) for state in known]
        names = [log[:-3] + kind for kind in ("log", "index", "timeindex", "txnindex")]
        segment = [found.get(name) for name in names]
        if segment[0] is None:
            assert None in logs, (what, log)
        elif len(set(logs)) > 1 and not is_cut(logs):
            assert segment in [[state.get(n) for n in names] for state in known], (what, log)


def is_cut(logs: list[bytes | None]) -> bool:
    """Whether a run cuts a torn tail, and does no more."""
    old, new, *_ = [*logs, None]
    return old is not None and new is not None and old != new and old.startswith(new) and new != b""


def check_log_start(scene: Scene, data: bytes, what: str) -> None:
    """The line of the partition is the old one or says where the new log starts; that of its
    neighbour is there.
    """
    lines = [tree[LOG_START].data or b"" for tree in (scene.old, scene.new) if LOG_START in tree]
    first = min(int(Path(n).stem) for n in scene.new if n.startswith(NAME) and n.endswith(".log"))
    neighbours, own = b"neighbour 0 1\n", f"{NAME[:-2]} 0 {first}\n".encode()
    assert data in (*lines, b"0\n2\n" + neighbours + own), (what, data)


def check_left(scene: Scene, failed: str, what: str) -> None:
    """Nothing of the run is left but what it could not remove."""
    names = [path.name for path in scene.place.rglob("*")]
    left = [
        n for n in names if is_scratch(n) or n.endswith((".cleaned", ".swap", ".deleted", ".tmp"))
    ]
    assert left in ([], [failed.removeprefix("remove ")]), (what, left)


@sampled
@some_cases
def test_a_failing_step_of_a_run_leaves_old_or_new(scene: Scene, every: int) -> None:
    counting = CountingFiles()
    scene.fresh()
    scene.run(counting, "counted")
    for step, number in failures(len(counting.steps), every, len(scene.case.name)):
        what = f"{scene.case.name}: {errno.errorcode[number]} at {step}, {counting.steps[step]}"
        scene.fresh()
        breaking, run_dir = FailingFiles(step, number), f"{step}-{number}"
        check_told(scene.run(breaking, run_dir), number, what)
        check_old_or_new(scene, what)
        check_left(scene, breaking.steps[step], what)
        again = scene.run(None, run_dir)
        assert not again.problems, (what, again.problems)
        found = {n: node.data for n, node in live(scene.place).items()}
        assert found == {n: node.data for n, node in scene.new.items()}, what
        undo_all(scene.work / run_dir, what)
        check_original(scene.place, scene.old, what)


@sampled
@some_cases
def test_a_failing_step_of_undo_leaves_old_or_new_and_undo_can_be_repeated(
    scene: Scene, every: int
) -> None:
    def undo(run_id: str, files: LocalFiles | None) -> Any:
        return undo_run(scene.work / "runs", run_id, files=files)

    def check(run_id: str, what: str) -> None:
        check_old_or_new(scene, what)
        done = undo(run_id, None)
        assert not done.problems, (what, done.problems)
        assert {result.status for result in done.results} <= {UNDONE, NOTHING}, (what, done)
        check_original(scene.place, scene.old, what)

    each_step_fails(scene, every, undo, check)


@sampled
@some_cases
def test_a_failing_step_of_purge_touches_nothing_live(scene: Scene, every: int) -> None:
    def purge(run_id: str, files: LocalFiles | None) -> Any:
        return purge_run(scene.work / "runs", run_id, files=files)

    def check(run_id: str, what: str) -> None:
        assert differences(live(scene.place), dressed) == [], what
        done = purge(run_id, None)
        assert not done.problems, (what, done.problems)
        assert {result.status for result in done.results} == {PURGED}, (what, done)
        assert kept(scene.place) == [], what
        assert differences(live(scene.place), dressed) == [], what

    dressed: Tree = {}

    def prepared() -> str:
        run_id = str(scene.run(None).run_id)
        dressed.clear()
        dressed.update(live(scene.place))
        return run_id

    each_step_fails(scene, every, purge, check, prepared)


def each_step_fails(
    scene: Scene,
    every: int,
    act: Callable[[str, LocalFiles | None], Any],
    check: Callable[[str, str], None],
    prepared: Callable[[], str] | None = None,
) -> None:
    """`act` on a finished run, with every step failing once; then `check`."""
    prepare = prepared or (lambda: str(scene.run(None).run_id))
    counting = CountingFiles()
    scene.fresh()
    act(prepare(), counting)
    for step, number in failures(len(counting.steps), every, len(scene.case.name)):
        what = f"{scene.case.name}: {errno.errorcode[number]} at {step}, {counting.steps[step]}"
        scene.fresh()
        run_id = prepare()
        check_told(act(run_id, FailingFiles(step, number)), number, what)
        check(run_id, what)
