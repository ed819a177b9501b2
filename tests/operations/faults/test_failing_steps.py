"""Every single step of a run fails once: the partition is old or new, the run says why, and nothing
is left behind.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kafkalog.swap.scratch import is_scratch
from tests.operations.faults.breaking_files import FailingFiles
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import ISLAND, NAME, compact, contents
from tests.operations.faults.test_kills import differences

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
GROUPS = ((0, 10), (20,), (ISLAND, ISLAND + 10, ISLAND + 20), (ISLAND + 30,), (2 * ISLAND,))


def leftovers(log_dir: Path) -> list[str]:
    names = [path.name for path in log_dir.rglob("*")]
    return [
        n for n in names if is_scratch(n) or n.endswith((".cleaned", ".swap", ".deleted", ".tmp"))
    ]


def check_each_group_is_old_or_new(
    log_dir: Path, old: dict[str, tuple[bytes, int]], new: dict[str, tuple[bytes, int]], what: str
) -> None:
    found = contents(log_dir)
    for group in GROUPS:
        names = [
            f"{NAME}/{base:020d}{s}" for base in group for s in (".log", ".index", ".timeindex")
        ]
        state = [found.get(name) for name in names]
        assert state in ([old.get(n) for n in names], [new.get(n) for n in names]), (what, group)


@pytest.mark.parametrize(
    ("error_number", "steps_each"),
    [(ERRORS[0], 4), *(pytest.param(n, 1, marks=pytest.mark.thorough) for n in ERRORS)],
)
def test_a_failing_step_leaves_each_group_old_or_new_and_is_named(
    undisturbed: Undisturbed, log_dir: Path, error_number: int, steps_each: int
) -> None:
    """Each step fails with one of the errors; the short run takes every fourth of one error's."""
    old = contents(undisturbed.before.log_dir)
    for step in range(ERRORS.index(error_number), len(undisturbed.steps), len(ERRORS) * steps_each):
        name = undisturbed.steps[step]
        what = f"step {step}, {name}"
        broken = undisturbed.copy(log_dir / "broken")
        files = FailingFiles(step, error_number)
        run = compact(broken, files)
        told = [result.reason for result in run.results] + list(run.problems)
        assert any(os.strerror(error_number) in text for text in told), (what, told)
        (result,) = run.results
        assert run.problems or result.status == "failed" or "but then" in result.reason, what
        # What could not be removed is all that may be there still.
        assert leftovers(broken) in ([], [files.steps[step].removeprefix("remove ")]), what
        check_each_group_is_old_or_new(broken, old, undisturbed.after, what)
        again = compact(broken)
        assert not again.problems, what
        assert differences(contents(broken), undisturbed.after) == [], what
        shutil.rmtree(broken)


@pytest.mark.parametrize("stride", [22, pytest.param(7, marks=pytest.mark.thorough)])
def test_a_disk_that_fails_for_good_is_named_and_the_next_run_ends_it(
    undisturbed: Undisturbed, log_dir: Path, stride: int
) -> None:
    for step in range(0, len(undisturbed.steps), stride):
        what = f"from step {step}, {undisturbed.steps[step]}"
        broken = undisturbed.copy(log_dir / "broken")
        run = compact(broken, FailingFiles(step, errno.EIO, for_good=True))
        told = [result.reason for result in run.results] + list(run.problems)
        assert any(os.strerror(errno.EIO) in text for text in told), (what, told)
        again = compact(broken)
        assert not again.problems, what
        assert differences(contents(broken), undisturbed.after) == [], what
        shutil.rmtree(broken)


def test_an_unwritten_checkpoint_is_the_results_reason_and_keeps_the_old_one(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    broken = undisturbed.copy(log_dir / "broken")
    step = undisturbed.steps.index("rename to cleaner-offset-checkpoint")
    run = compact(broken, FailingFiles(step, errno.ENOSPC))
    (result,) = run.results
    assert result.status == "failed"
    assert result.next_dirty_offset is None
    assert result.reason.startswith("compacted, but the cleaner checkpoint was not written")
    assert not (broken / "cleaner-offset-checkpoint").exists()
    assert not (broken / "cleaner-offset-checkpoint.tmp").exists()
