"""Disks without room: refused before anything is written, or named when they fill midway."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kafkalog.cleaner import space
from kafkalog.cleaner.run import plan_run
from kafkalog.cleaner.run_request import CompactionRequest
from tests.conftest import NOW_MS
from tests.faults.breaking_files import FailingFiles
from tests.faults.logs import CONFIG, compact, contents
from tests.faults.test_failing_steps import leftovers
from tests.faults.test_workers import write_partitions


def request(log_dir: Path, *, keeps_undo: bool) -> CompactionRequest:
    return CompactionRequest((str(log_dir),), NOW_MS, CONFIG, keeps_undo=keeps_undo)


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
