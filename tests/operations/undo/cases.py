"""Log dirs that each kind of run changes, and how to run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.operations.recover import recover_run
from kafkalog.operations.retain import apply_retention_run
from kafkalog.operations.run_frame import Run
from kafkalog.planning.log_config import LogConfig
from kafkalog.repair.recover import recover_partition
from kafkalog.requests.run_request import CompactionRequest, RunRequest
from kafkalog.swap.local_files import LocalFiles
from tests.conftest import NOW_MS
from tests.operations.faults import logs
from tests.operations.faults.logs import write_fault_log
from tests.operations.faults.test_retention_kills import CONFIG as RETENTION_CONFIG
from tests.operations.faults.test_retention_kills import write_log as write_due_log
from tests.operations.faults.test_split_kills import write_log as write_split_log
from tests.operations.undo.trees import NAME, dress
from tests.repair.test_recover import write_log as write_sound_log
from tests.support.log_builder import LogBuilder
from tests.support.topics import topics_of


@dataclass(frozen=True)
class Case:
    """How a log dir is written, and how a run over it is done with these files and this run dir."""

    name: str
    write: Callable[[Path], object]
    run: Callable[[Path, Path, LocalFiles | None], Run[Any, Any]]


def _compact(log_dir: Path, run_dir: Path, files: LocalFiles | None) -> Run[Any, Any]:
    request = CompactionRequest(
        (str(log_dir),), NOW_MS, logs.CONFIG, topics=topics_of(log_dir), run_dir=str(run_dir)
    )

    def one_by_one(plans, run: CleanRun):  # type: ignore[no-untyped-def]
        return (clean_partition(plan, run, files) for plan in plans)

    return apply_run(request, one_by_one, files=files)


def _retain(log_dir: Path, run_dir: Path, files: LocalFiles | None) -> Run[Any, Any]:
    request = RunRequest(
        (str(log_dir),),
        NOW_MS,
        RETENTION_CONFIG,
        topics=("orders", "neighbour"),
        run_dir=str(run_dir),
    )
    return apply_retention_run(request, files=files)


def _recover(log_dir: Path, run_dir: Path, files: LocalFiles | None) -> Run[Any, Any]:
    config = LogConfig.from_overrides(["index.interval.bytes=100"])
    request = RunRequest((str(log_dir),), NOW_MS, config, topics=("*",), run_dir=str(run_dir))

    def one_by_one(tasks):  # type: ignore[no-untyped-def]
        return (recover_partition(task, files) for task in tasks)

    return recover_run(request, one_by_one, files=files)


def _write_compacted(log_dir: Path) -> None:
    """Beside the fault log one that has nothing to clean, with lines of its own."""
    write_fault_log(log_dir)
    other = LogBuilder(log_dir, "orders-1").segment().batch(("a", "1"))
    other.segment().batch(("b", "1")).cleaner_offset(1).high_watermark(2).write()


def _write_damaged(log_dir: Path, tail: bytes) -> None:
    """Files missing, wrong, cut, of no segment; a torn tail."""
    path = write_sound_log(log_dir)
    bases = sorted(int(file.stem) for file in path.glob("*.log"))
    first, second, third = (f"{base:020d}" for base in bases)
    (path / f"{first}.index").unlink()
    (path / f"{first}.txnindex").unlink()
    index = path / f"{second}.index"
    index.write_bytes(index.read_bytes() + bytes(800))
    time_index = path / f"{second}.timeindex"
    time_index.write_bytes(time_index.read_bytes()[:-9])
    (path / f"{third}.snapshot").write_bytes(b"no snapshot")
    (path / f"{5:020d}.snapshot").write_bytes(b"of no segment")
    log = path / f"{third}.log"
    log.write_bytes(log.read_bytes() + tail)


def _write_split_and_damaged(log_dir: Path) -> None:
    write_split_log(log_dir)
    (log_dir / NAME / f"{0:020d}.index").unlink()


TORN = bytes(range(1, 90))
CASES = (
    Case("compact", _write_compacted, _compact),
    Case("compact-split", write_split_log, _compact),
    Case("retain-some", lambda path: write_due_log(path, all_due=False), _retain),
    Case("retain-all", lambda path: write_due_log(path, all_due=True), _retain),
    Case("recover-torn", lambda path: _write_damaged(path, TORN), _recover),
    Case("recover-zeros", lambda path: _write_damaged(path, TORN + bytes(5000)), _recover),
    Case("recover-split", _write_split_and_damaged, _recover),
)
# A compaction, a deletion and a recovery in `make test`, where each step of each costs a run.
QUICK = ("compact", "retain-all", "recover-torn")
some_cases = pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=() if c.name in QUICK else pytest.mark.thorough) for c in CASES],
    ids=lambda case: case.name,
)


def written(case: Case, log_dir: Path) -> Path:
    """The case's log dir with odd owners, modes and times."""
    log_dir.mkdir(exist_ok=True)
    case.write(log_dir)
    dress(log_dir)
    return log_dir / NAME
