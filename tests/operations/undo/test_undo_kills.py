"""A run, or its undo, is killed before any of its steps: undo still gives the original files."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.operations.earlier_run import NOTHING, UNDONE
from kafkalog.operations.run_history import held_runs
from kafkalog.operations.undo import undo_run
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.operations.undo.cases import Case, some_cases, written
from tests.operations.undo.trees import Node, differences, files, kept, tree

sampled = pytest.mark.parametrize(
    "every", [11, pytest.param(1, marks=pytest.mark.soak)], ids=["sample", "all"]
)


def copied(log_dir: Path, target: Path) -> Path:
    """A copy with the times to the nanosecond, and the owners."""
    shutil.copytree(log_dir, target)
    for path in (log_dir, *log_dir.rglob("*")):
        stat, copy = path.stat(), target / path.relative_to(log_dir)
        shutil.chown(copy, stat.st_uid, stat.st_gid)
        shutil.copystat(path, copy)
    return target


def undo_all(run_dir: Path, what: str) -> None:
    """Undo every run that holds anything, the latest first."""
    runs, problems = held_runs(run_dir)
    assert not problems, what
    for run in reversed(runs):
        done = undo_run(run_dir, run.run_id)
        assert not done.problems, what
        assert {result.status for result in done.results} <= {UNDONE, NOTHING}, (what, done)


def check_original(log_dir: Path, before: dict[str, Node], what: str) -> None:
    assert differences(files(tree(log_dir)), files(before)) == [], what
    assert kept(log_dir) == [], what


@sampled
@some_cases
def test_killed_at_any_step_the_next_run_completes_and_undo_restores(
    case: Case, log_dir: Path, tmp_path: Path, every: int
) -> None:
    written(case, log_dir / "before")
    before = tree(log_dir / "before")
    counting = CountingFiles()
    done = copied(log_dir / "before", log_dir / "done")
    case.run(done, tmp_path / "counted", counting)
    after = {name: node.data for name, node in files(tree(done)).items() if ".undo" not in name}
    for step in range(len(case.name) % every, len(counting.steps), every):
        what = f"{case.name}: killed before step {step}, {counting.steps[step]}"
        crashed, run_dir = copied(log_dir / "before", log_dir / "crashed"), tmp_path / f"{step}"
        code = run_in_child(lambda: case.run(crashed, run_dir, DyingFiles(step)))  # noqa: B023
        assert code == -signal.SIGKILL, what
        next_run = case.run(crashed, run_dir, None)
        assert not next_run.problems, what
        found = {name: node.data for name, node in files(tree(crashed)).items()}
        found = {name: data for name, data in found.items() if ".undo" not in name}
        logs = [{n: d for n, d in t.items() if n.endswith(".log")} for t in (found, after)]
        assert logs[0] == logs[1], what
        undo_all(run_dir, what)
        check_original(crashed, before, what)
        shutil.rmtree(crashed)


@sampled
@some_cases
def test_undo_that_is_killed_can_be_repeated(
    case: Case, log_dir: Path, tmp_path: Path, every: int
) -> None:
    written(case, log_dir / "before")
    before = tree(log_dir / "before")
    # The run dir names paths: each round has the same one.
    place, run_dir = log_dir / "crashed", tmp_path / "runs"
    run_id = case.run(copied(log_dir / "before", place), run_dir, None).run_id
    counting = CountingFiles()
    undo_run(run_dir, run_id, files=counting)
    for step in range(len(case.name) % every, len(counting.steps), every):
        what = f"{case.name}: undo killed before step {step}, {counting.steps[step]}"
        shutil.rmtree(place)
        run_id = case.run(copied(log_dir / "before", place), run_dir, None).run_id
        code = run_in_child(lambda: undo_run(run_dir, run_id, files=DyingFiles(step)))  # noqa: B023
        assert code == -signal.SIGKILL, what
        done = undo_run(run_dir, run_id)
        assert {result.status for result in done.results} <= {UNDONE, NOTHING}, (what, done)
        check_original(place, before, what)
