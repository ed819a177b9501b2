"""A run looks at all directories to know what to lock, and again once it holds the locks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalog.log import partition_dir
from kafkalog.operations import run_steps
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.requests.run_request import CompactionRequest
from tests.cleaning.test_laws import CONFIG
from tests.operations.test_compact import NOW_MS, write_partition
from tests.support.log_builder import START_MS, LogBuilder


def _statuses(
    log_dir: Path, between: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> dict[str, tuple[str, int]]:
    """By partition how it ended and how many records were read; `between` comes when the locks are
    held, and nothing is looked at again yet.
    """
    monkeypatch.setattr(run_steps, "check_no_writer", lambda _: between())
    request = CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=("t", "u"))
    run = apply_run(request, clean_pack)
    return {f"{r.topic}-{r.partition}": (r.status, r.stats.records_read) for r in run.results}


def test_what_changes_before_the_lock_is_held_is_planned_as_it_is_then(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t-0", "u-0"):
        write_partition(log_dir, name)

    def rewrite() -> None:
        shutil.rmtree(log_dir / "u-0")
        log = LogBuilder(log_dir, "u-0")
        for value in "123456":
            log.segment(modified_ms=START_MS).batch(("a", value), ("b", value))
        log.write()

    before = _statuses(log_dir, rewrite, monkeypatch)
    assert before == {"t-0": ("compacted", 3), "u-0": ("compacted", 10)}


@pytest.mark.parametrize("changes", [False, True])
def test_a_directory_is_read_again_under_the_lock_only_if_it_has_changed(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    for name in ("t-0", "u-0"):
        write_partition(log_dir, name)
    read_end, ends = partition_dir._log_end_offset, list[str]()
    counts: list[int] = []

    def noting(active: partition_dir.SegmentInfo, *others: object) -> int:
        ends.append(active.path)
        return read_end(active, *others)  # type: ignore[arg-type]

    def between() -> None:
        counts.append(len(ends))
        if changes:
            os.utime(log_dir / "u-0" / f"{0:020d}.index", ns=(START_MS, START_MS))

    monkeypatch.setattr(partition_dir, "_log_end_offset", noting)
    found = _statuses(log_dir, between, monkeypatch)
    assert {status for status, _ in found.values()} == {"compacted"}
    # Once each before the lock; each partition's own work takes what has the digest still.
    assert counts == [2]
    assert len(ends) == 2 + int(changes)
