"""Many small partitions in one task, a few at once: the same bytes, each by itself."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalog.operations import compact_pack
from kafkalog.operations.clean_result import CleanResult
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import (
    CompactionRun,
    Executor,
    apply_run,
    plan_run,
)
from kafkalog.operations.compact_pack import clean_pack, pack_plans
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.operations.worker_processes import clean_in_processes
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources import forked_shares, turns
from tests.conftest import NOW_MS
from tests.operations.faults.logs import contents
from tests.support.log_builder import LogBuilder

PARTITIONS = 48
CONFIG = LogConfig.from_overrides(["cleanup.policy=compact"])


def write(log_dir: Path) -> None:
    for partition in range(PARTITIONS):
        log = LogBuilder(log_dir, f"orders-{partition}")
        for round_ in range(3):
            log.segment(modified_ms=NOW_MS - 1000)
            for n in range(4):
                log.batch((f"k{n % 3}", f"{round_} {n}"), (f"p{partition}", "x" * n))
        log.write()


def request(log_dir: Path) -> CompactionRequest:
    return CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=("orders",))


def run(log_dir: Path, execute: Executor) -> CompactionRun:
    return apply_run(request(log_dir), execute)


def test_packs_write_what_one_by_one_does(log_dir: Path) -> None:
    source = log_dir / "source"
    write(source)
    wanted = Path(shutil.copytree(source, log_dir / "one-by-one"))
    run(wanted, lambda plans, run: (clean_partition(plan, run) for plan in plans))
    for workers in (1, 2):
        ours = Path(shutil.copytree(source, log_dir / f"workers-{workers}"))
        found = run(ours, lambda plans, run, w=workers: clean_in_processes(plans, run, w))  # type: ignore[misc]
        assert [result.status for result in found.results] == ["compacted"] * PARTITIONS
        assert contents(ours) == contents(wanted)


def test_more_processes_make_the_same_plans(log_dir: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    write(log_dir)
    os.truncate(log_dir / "orders-3" / f"{0:020d}.log", 100)
    wanted = plan_run(request(log_dir))
    monkeypatch.setattr(forked_shares, "LEAST_ITEMS", 2)
    found = plan_run(replace(request(log_dir), workers=3))
    assert found.plans == wanted.plans
    assert (found.notes, found.problems) == (wanted.notes, wanted.problems)
    assert {plan.status for plan in found.plans} == {"clean", "refused"}


def test_large_ones_come_first_and_by_themselves(log_dir: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    write(log_dir)
    plans = plan_run(request(log_dir)).plans
    sizes = {plan.topic_partition.partition: plan.source_bytes for plan in plans}
    monkeypatch.setattr(compact_pack, "SMALL_BYTES", min(sizes.values()))
    found = [result.partition for result in run(log_dir, clean_pack).results]
    large = [partition for partition, size in sizes.items() if size > compact_pack.SMALL_BYTES]
    assert large
    assert set(found[: len(large)]) == set(large)
    assert sorted(found) == sorted(sizes)


def test_of_smaller_ones_more_are_at_work_at_once(log_dir: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    write(log_dir)
    plans = plan_run(request(log_dir)).plans
    largest = max(plan.source_bytes for plan in plans)
    found = []
    for small_bytes in (largest, 2 * largest, 1000 * largest):
        monkeypatch.setattr(compact_pack, "SMALL_BYTES", small_bytes)
        found.append(compact_pack.threads_for(plans))
    assert found == [4, 8, 16]


@pytest.mark.parametrize(("short_s", "is_shared"), [(3600.0, False), (0.0, True)])
def test_one_thread_does_all_until_a_wait_is_long(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, short_s: float, *, is_shared: bool
) -> None:
    write(log_dir)
    monkeypatch.setattr(turns, "_SHORT_S", short_s)
    threads = set()

    def noted(plan: CompactionPlan, run: CleanRun) -> CleanResult:
        threads.add(threading.current_thread().name)
        return clean_partition(plan, run)

    monkeypatch.setattr(compact_pack, "clean_partition", noted)
    results = run(log_dir, clean_pack).results
    assert [result.status for result in results] == ["compacted"] * PARTITIONS
    assert (len(threads) > 1) is is_shared


def test_what_a_thread_dies_of_is_raised(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(log_dir)
    plans = plan_run(request(log_dir)).plans

    class Killed(BaseException):
        pass

    def dies(plan: CompactionPlan, run: CleanRun) -> CleanResult:
        raise Killed

    monkeypatch.setattr(compact_pack, "clean_partition", dies)
    with pytest.raises(Killed):
        list(clean_pack(plans, CleanRun("run3", os.getpid())))


def test_a_run_that_may_end_early_keeps_its_order(log_dir: Path) -> None:
    write(log_dir)
    plans = plan_run(request(log_dir)).plans[::-1]
    limited = CleanRun("run1", os.getpid(), end_s=1.0)
    assert pack_plans(plans, limited, task_bytes=1 << 30, min_tasks=2) == [(p,) for p in plans]
    results = list(clean_pack(plans, limited))
    assert [r.partition for r in results] == [p.topic_partition.partition for p in plans]
    assert {result.status for result in results} == {"left"}


def test_one_that_fails_leaves_the_others_alone(log_dir: Path) -> None:
    write(log_dir)

    def spoil_and_clean(plans, run):  # type: ignore[no-untyped-def]
        (log_dir / "orders-7" / f"{0:020d}.log").write_bytes(b"")
        return clean_pack(plans, run)

    results = run(log_dir, spoil_and_clean).results
    assert [r.partition for r in results if r.status != "compacted"] == [7]
    assert len(results) == PARTITIONS


def test_closed_early_it_begins_nothing_further(log_dir: Path) -> None:
    write(log_dir)
    plans = plan_run(request(log_dir)).plans
    results = clean_pack(plans, CleanRun("run2", os.getpid()))
    next(results)
    results.close()  # type: ignore[attr-defined]
    touched = [p for p in plans if list(Path(p.path).glob("kafkalog-*-done.tmp"))]
    assert 1 <= len(touched) < PARTITIONS
