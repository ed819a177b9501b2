"""A task that outlived its driver, and the lock with it, while the next run begins."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from kafkalog.errors import LogDirLockedError
from kafkalog.swap import partition_lock
from kafkalog.swap.partition_lock import locked_partition
from kafkalog.swap.scratch import Scratch
from tests.operations.faults.conftest import Undisturbed
from tests.operations.faults.logs import NAME, compact, contents

HOLD_S = 0.6


def start_swapping(partition: Path, seconds: float) -> int:
    """A process of another run that has its turn at the partition for so long."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with locked_partition(Scratch(str(partition), "earlier")):
                os.write(told, b"!")
                time.sleep(seconds)
                (partition / "done-by-the-earlier-run").touch()
        finally:
            os._exit(0)
    os.close(told)
    assert os.read(ready, 1) == b"!"
    os.close(ready)
    return pid


def test_a_run_waits_for_a_swap_that_an_earlier_one_left_going(
    undisturbed: Undisturbed, log_dir: Path
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    pid = start_swapping(copy / NAME, HOLD_S)
    run = compact(copy)
    done = copy / NAME / "done-by-the-earlier-run"
    assert done.exists()
    os.waitpid(pid, 0)
    assert [result.status for result in run.results] == ["compacted"]
    done.unlink()
    assert contents(copy) == undisturbed.after


def test_a_swap_of_an_earlier_run_that_hangs_stops_the_run(
    undisturbed: Undisturbed, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = undisturbed.copy(log_dir / "copy")
    monkeypatch.setattr(partition_lock, "MAX_WAIT_S", 0.1)
    pid = start_swapping(copy / NAME, 600)
    before = contents(copy)
    try:
        with pytest.raises(LogDirLockedError, match="earlier run"):
            compact(copy)
        assert contents(copy) == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    # What died with its turn is no reason to wait.
    assert [result.status for result in compact(copy).results] == ["compacted"]
    assert contents(copy) == undisturbed.after
