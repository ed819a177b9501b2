"""A restore that is killed leaves the empty topic or the restored one, also for Kafka's loader;
the next run goes on, and undo brings every byte back.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.undo import undo_run
from kafkalog.planning.statuses import REFUSED
from kafkalog.requests.run_request import run_request
from kafkalog.restoring.request import ABORT, RestoreRequest
from kafkalog.restoring.restore import RESTORED, RestoreRun
from kafkalog.restoring.run import apply_restore, restore_statuses
from kafkalog.swap.local_files import LocalFiles
from tests.operations.faults.breaking_files import CountingFiles, DyingFiles, run_in_child
from tests.oracle.kafka import Kafka
from tests.restoring.target import contents, empty_target, served
from tests.restoring.test_restore import busy
from tests.support.log_builder import START_MS


def run(source: Path, target: Path, run_dir: Path, files: LocalFiles | None) -> RestoreRun:
    request = run_request([str(target)], {"run_dir": str(run_dir), "now_ms": START_MS})
    asked = RestoreRequest(
        (str(source),), ("orders",), until_offsets={TopicPartition("orders", 0): 17},
        end_transactions=ABORT,
    )  # fmt: skip
    return apply_restore(request, asked, lambda _: None, files)


def prepared(log_dir: Path) -> tuple[Path, Path]:
    """A source whose log start lies inside its first segment, and an empty target."""
    busy(log_dir / "source").log_start_offset(3).write()
    return log_dir / "source", empty_target(log_dir / "before")


def data_files(target: Path) -> dict[str, tuple[bytes, int]]:
    """Without what belongs to no broker."""
    found = contents(target)
    return {name: its for name, its in found.items() if "/kafkalog-" not in name and its[0]}


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def undone(run_dir: Path) -> None:
    for each in sorted(run_dir.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True):
        undo_run(run_dir, each.name)


@pytest.mark.parametrize(
    "every",
    [17, pytest.param(5, marks=pytest.mark.thorough), pytest.param(1, marks=pytest.mark.soak)],
)
def test_restore_that_is_killed_is_finished_or_begun_again(
    every: int, log_dir: Path, tmp_path: Path
) -> None:
    source, before = prepared(log_dir)
    place = copied(before, log_dir / "place")
    counting = CountingFiles()
    assert restore_statuses(run(source, place, tmp_path / "whole", counting)) == [RESTORED]
    after = served(place / "orders-0")
    for step in range(every // 2, len(counting.steps), every):
        what = f"killed before step {step}, {counting.steps[step]}"
        copied(before, place)
        run_dir = tmp_path / f"{step}"
        original = contents(place)
        code = run_in_child(lambda: run(source, place, run_dir, DyingFiles(step)))  # noqa: B023
        assert code == -signal.SIGKILL, what
        again = run(source, place, run_dir, None)
        # Past the point of no return it is there already, and the next run says so.
        statuses = restore_statuses(again)
        assert statuses in ([RESTORED], [REFUSED]), (what, again)
        undo_place = copied(place, log_dir / "looked-at")
        assert served(undo_place / "orders-0") == after, (what, again.plans, again.results)
        undone(run_dir)
        found, wanted = contents(place), original
        assert {n: its[0] for n, its in found.items()} == {
            n: its[0] for n, its in wanted.items()
        }, what


def test_run_that_died_over_its_small_files_is_undone_behind_the_next(
    log_dir: Path, tmp_path: Path
) -> None:
    source, before = prepared(log_dir)
    place, run_dir = copied(before, log_dir / "place"), tmp_path / "runs"
    counting = CountingFiles()
    run(source, place, tmp_path / "whole", counting)
    step = counting.steps.index("rename to leader-epoch-checkpoint")
    copied(before, place)
    original = contents(place)
    assert run_in_child(lambda: run(source, place, run_dir, DyingFiles(step))) == -signal.SIGKILL
    assert restore_statuses(run(source, place, run_dir, None)) == [RESTORED]
    undone(run_dir)
    assert {n: its[0] for n, its in contents(place).items()} == {
        n: its[0] for n, its in original.items()
    }


@pytest.mark.oracle
@pytest.mark.soak
def test_kafka_loads_what_a_killed_restore_leaves(log_dir: Path, tmp_path: Path) -> None:
    source, before = prepared(log_dir)
    place = copied(before, log_dir / "place")
    counting = CountingFiles()
    run(source, place, tmp_path / "whole", counting)
    config = {"retention.ms": "-1"}
    ends = set()
    with Kafka() as kafka:
        for step in range(0, len(counting.steps) + 1, 2):
            copied(before, place)
            run_in_child(lambda: run(source, place, tmp_path / f"{step}", DyingFiles(step)))  # noqa: B023
            facts = kafka.open_once(place, "orders-0", now_ms=START_MS, config=config)
            ends.add(facts["logEndOffset"])
            if facts["logEndOffset"] == 18:
                assert facts["lastStableOffset"] == 18
    # Nothing in between: the empty log, at last with the log start that it is to have, or all that
    # was restored with the marker at its end.
    assert ends == {0, 3, 18}
