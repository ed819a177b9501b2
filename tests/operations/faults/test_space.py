"""Disks without room: refused before anything is written, or named when they fill midway."""

from __future__ import annotations

import errno
import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.operations import space
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import CompactionRun, apply_run, plan_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.operations.undo import undo_run
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.runs.run_dir import default_run_dir
from kafkalog.swap.local_files import LocalFiles
from tests.conftest import NOW_MS
from tests.operations.faults.breaking_files import (
    CountingFiles,
    DyingFiles,
    FailingFiles,
    run_in_child,
)
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import CONFIG, NAME, compact, contents
from tests.operations.faults.test_failing_steps import leftovers
from tests.operations.faults.test_workers import write_partitions
from tests.operations.undo.trees import files as files_of
from tests.operations.undo.trees import tree
from tests.support.topics import topics_of


def request(log_dir: Path, *, keeps_undo: bool) -> CompactionRequest:
    return CompactionRequest(
        (str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir), keeps_undo=keeps_undo
    )


@pytest.mark.parametrize("keeps_undo", [True, False])
def test_partitions_without_room_are_refused(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, keeps_undo: bool
) -> None:
    write_partitions(log_dir)
    sizes = {plan.peak_bytes for plan in plan_run(request(log_dir, keeps_undo=keeps_undo)).plans}
    (size,) = sizes
    assert size > 0
    monkeypatch.setattr(space, "free_bytes", lambda _: 2 * size + 1)
    statuses = [p.status for p in plan_run(request(log_dir, keeps_undo=keeps_undo)).plans]
    # What is kept adds up; without it the space is free again after each partition.
    assert statuses == (["clean"] * 2 + ["refused"] * 2 if keeps_undo else ["clean"] * 4)
    monkeypatch.setattr(space, "free_bytes", lambda _: size - 1)
    plans = plan_run(request(log_dir, keeps_undo=keeps_undo)).plans
    assert [plan.status for plan in plans] == ["refused"] * 4
    assert f"may take {size} bytes" in plans[0].reason
    assert ("--no-undo" in plans[0].reason) == keeps_undo


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_midway_is_named_and_leaves_nothing(
    undisturbed,
    log_dir: Path,
    number: int,  # type: ignore[no-untyped-def]
) -> None:
    broken = undisturbed.copy(log_dir / "broken")
    before = contents(broken)
    writes = [n for n, step in enumerate(undisturbed.steps) if step.startswith("write")]
    (result,) = compact(broken, FailingFiles(writes[len(writes) // 3], number)).results
    assert result.status == "failed"
    assert "space" in result.reason or "quota" in result.reason
    assert leftovers(broken) == []
    assert contents(broken) == before


def per_group(
    log_dir: Path, files: LocalFiles | None = None, *, keeps_undo: bool = False
) -> CompactionRun:
    request = CompactionRequest(
        (str(log_dir),),
        NOW_MS,
        CONFIG,
        topics=topics_of(log_dir),
        keeps_undo=keeps_undo,
        swap_per_group=True,
    )

    def one_by_one(plans, run: CleanRun):  # type: ignore[no-untyped-def]
        return (clean_partition(plan, run, files) for plan in plans)

    return apply_run(request, one_by_one, files=files)


class WatchedFiles(CountingFiles):
    """Notes the most bytes there ever were of scratch files and files beside the live ones."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self.most = 0

    def before(self, step: str) -> None:
        super().before(step)
        sizes = [p.stat().st_size for p in self._directory.iterdir() if p.suffix != ".snapshot"]
        self.most = max(self.most, sum(sizes))


def test_swapped_per_group_the_result_is_the_same_and_takes_less_room(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    before = sum(p.stat().st_size for p in undisturbed.before.path.iterdir())
    peaks = {}
    for name, run in (("whole", compact), ("per group", per_group)):
        copy = undisturbed.copy(log_dir / name)
        files = WatchedFiles(copy / NAME)
        (result,) = run(copy, files).results
        assert result.status == "compacted"
        assert contents(copy) == undisturbed.after
        peaks[name] = files.most - before
    (plan,) = plan_run(request(undisturbed.before.log_dir, keeps_undo=False)).plans
    assert plan.peak_bytes_per_group < plan.peak_bytes
    # records of the swap, which are small on a disk that is nearly full, are larger than this log
    records = 16_000
    assert peaks["per group"] < plan.peak_bytes_per_group + records
    assert peaks["per group"] < peaks["whole"]


@pytest.mark.parametrize("keeps_undo", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_killed_between_groups_the_next_run_goes_on(
    undisturbed: Undisturbed, log_dir: Path, tmp_path: Path, keeps_undo: bool
) -> None:
    counted = CountingFiles()
    per_group(undisturbed.copy(log_dir / "counted"), counted, keeps_undo=keeps_undo)
    for step in range(3 + keeps_undo, len(counted.steps), 11):
        what = f"killed before step {step}, {counted.steps[step]}"
        crashed = undisturbed.copy(log_dir / "crashed")
        code = run_in_child(
            lambda: per_group(crashed, DyingFiles(step), keeps_undo=keeps_undo)  # noqa: B023
        )
        assert code == -signal.SIGKILL, what
        again = per_group(crashed, keeps_undo=keeps_undo)
        assert not again.problems, what
        assert contents(crashed) == undisturbed.after, what
        shutil.rmtree(crashed)


def test_what_was_swapped_per_group_is_undone_as_a_whole(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    before = files_of(tree(copy))
    run = per_group(copy, keeps_undo=True)
    assert files_of(tree(copy)) != before
    (result,) = undo_run(default_run_dir(), run.run_id).results
    assert result.status == "undone", result
    assert files_of(tree(copy)) == before
