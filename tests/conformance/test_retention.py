"""Retention: what goes, and what is on the disk afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.checkpoints import (
    LOG_START_OFFSET_FILE,
    parse_leader_epoch_checkpoint,
    parse_offset_checkpoint,
)
from kafkalog.log.log_dir import open_log_dir
from kafkalog.operations.retain import RetentionRun, apply_retention_run
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import RunRequest
from tests.conformance.rounds import NOW_MS, bases, compact
from tests.support.log_builder import START_MS, LogBuilder


def retain(
    log_dir: Path, *settings: str, now_ms: int = NOW_MS, high_watermark: int | None = None
) -> RetentionRun:
    """One `retain --apply` over the topic; without a setting data is kept for ever."""
    config = LogConfig.from_overrides(["cleanup.policy=delete", "retention.ms=-1", *settings])
    request = RunRequest(
        (str(log_dir),), now_ms, config, topics=("orders",), high_watermark=high_watermark
    )
    run = apply_retention_run(request)
    assert not run.problems
    assert all(result.status == "deleted" for result in run.results), run.results
    return run


def gone(run: RetentionRun) -> int:
    return sum(len(plan.deleted) for plan in run.plans)


def written(log_dir: Path, segments: int, records: int = 5) -> LogBuilder:
    """Segments of as many records, one a batch, all of the same size and time."""
    log = LogBuilder(log_dir)
    for _ in range(segments):
        log.segment()
        for _ in range(records):
            log.batch(("key", "value"), timestamp=START_MS)
    return log


def segment_bytes(path: Path) -> int:
    sizes = {file.stat().st_size for file in path.glob("*.log")}
    assert len(sizes) == 1
    return sizes.pop()


def log_end(log_dir: Path) -> int:
    (partition,) = open_log_dir(log_dir).partitions
    assert not partition.problems
    return partition.log_end_offset


def log_start(log_dir: Path) -> int:
    (partition,) = open_log_dir(log_dir).partitions
    return partition.log_start_offset


@pytest.mark.parametrize(
    ("watermark", "left"), [(0, [0, 5, 10]), (9, [5, 10]), (10, [10]), (15, [15])]
)
def test_time_retention_reaches_to_the_high_watermark(
    log_dir: Path, watermark: int, left: list[int]
) -> None:
    log = written(log_dir, 3)
    path = log.high_watermark(watermark).write()
    retain(log_dir, "retention.ms=999", now_ms=START_MS + 1000)
    assert bases(path) == left
    assert log_start(log_dir) == left[0]


def test_the_log_start_never_passes_the_high_watermark(log_dir: Path) -> None:
    path = written(log_dir, 20).write()
    for watermark in range(0, 101, 7):
        retain(log_dir, "retention.ms=999", high_watermark=watermark)
        assert log_start(log_dir) <= watermark
        assert bases(path)[0] == watermark // 5 * 5
    retain(log_dir, "retention.ms=999")
    assert bases(path) == [100]
    assert (path / f"{100:020d}.log").stat().st_size == 0


@pytest.mark.parametrize(("limit", "left"), [(2, 2), (3, 3), (4, 3)])
def test_size_retention_keeps_at_least_the_limit(log_dir: Path, limit: int, left: int) -> None:
    path = written(log_dir, 3).write()
    retain(log_dir, f"retention.bytes={limit * segment_bytes(path)}")
    assert len(bases(path)) == left


def test_size_retention_over_many_segments(log_dir: Path) -> None:
    path = written(log_dir, 20, records=10).write()
    retain(log_dir, f"retention.bytes={5 * segment_bytes(path) + 10}")
    assert len(bases(path)) == 6


def test_expired_data_leaves_one_empty_segment_and_fresh_data_stays(log_dir: Path) -> None:
    path = written(log_dir, 3).write()
    assert gone(retain(log_dir, "retention.ms=10000", now_ms=START_MS + 10_000)) == 0
    assert gone(retain(log_dir, "retention.ms=10000", now_ms=START_MS + 10_001)) == 3
    names = sorted(file.name for file in path.iterdir() if file.name[0].isdigit())
    new = f"{15:020d}"
    assert names == [f"{new}.index", f"{new}.log", f"{new}.snapshot", f"{new}.timeindex"]
    assert all(not (path / n).stat().st_size for n in names if not n.endswith(".snapshot"))


def _old_files(log_dir: Path) -> Path:
    """Records without timestamps, in files of an age ago."""
    log = LogBuilder(log_dir)
    for _ in range(3):
        log.segment(modified_ms=START_MS - 10**9).batch(("k", "v"), timestamp=-1)
    return log.write()


def test_compact_alone_deletes_nothing_by_time(log_dir: Path) -> None:
    path = _old_files(log_dir)
    run = retain(log_dir, "cleanup.policy=compact", "retention.ms=1", "retention.bytes=0")
    assert gone(run) == 0
    assert bases(path) == [0, 1, 2]


def test_compact_and_delete_deletes_by_time(log_dir: Path) -> None:
    path = written(log_dir, 3).write()
    retain(log_dir, "cleanup.policy=compact,delete", "retention.ms=1")
    assert bases(path) == [15]


@pytest.mark.parametrize("policy", ["compact", "delete", "compact,delete", ""])
def test_every_policy_deletes_below_the_log_start(log_dir: Path, policy: str) -> None:
    path = written(log_dir, 3).log_start_offset(10).write()
    assert gone(retain(log_dir, f"cleanup.policy={policy}")) == 2
    assert bases(path) == [10]


def test_the_first_survivor_may_overlap_the_log_start(log_dir: Path) -> None:
    path = written(log_dir, 3).log_start_offset(7).write()
    retain(log_dir, "cleanup.policy=compact")
    assert bases(path) == [5, 10]
    assert log_start(log_dir) == 7
    lines = parse_offset_checkpoint((log_dir / LOG_START_OFFSET_FILE).read_bytes())
    assert lines == {("orders", 0): 7}


@pytest.mark.parametrize(("start", "left"), [(1, 3), (6, 2), (15, 1)])
def test_segments_below_a_moved_log_start(log_dir: Path, start: int, left: int) -> None:
    path = written(log_dir, 3).log_start_offset(start).write()
    retain(log_dir)
    assert len(bases(path)) == left
    assert log_start(log_dir) == start


def test_one_call_deletes_all_that_is_due_and_the_next_nothing(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for timestamp in (START_MS + 10**9, START_MS, START_MS + 10**9):
        log.segment().batch(("k", "v"), timestamp=timestamp)
    path = log.log_start_offset(1).write()
    assert gone(retain(log_dir, "retention.ms=5")) == 2
    assert bases(path) == [2]
    assert gone(retain(log_dir, "retention.ms=5")) == 0


@pytest.mark.parametrize("records", [0, 1, 25])
def test_the_log_end_stays_when_all_goes(log_dir: Path, records: int) -> None:
    log = LogBuilder(log_dir)
    for number in range(records):
        if number % 5 == 0:
            log.segment()
        log.batch(("k", "v"), timestamp=START_MS)
    path = log.segment().write() if not records else log.write()
    retain(log_dir, "retention.ms=1")
    assert bases(path) == [records]
    assert log_end(log_dir) == records
    assert log_start(log_dir) == records


def test_snapshots_of_deleted_segments_go(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for _ in range(3):
        log.segment().batch(("k", "v"), producer_id=7, timestamp=START_MS)
    path = log.log_start_offset(2).write()
    retain(log_dir)
    snapshots = sorted(file.name for file in path.glob("*.snapshot"))
    assert snapshots == [f"{2:020d}.snapshot", f"{3:020d}.snapshot"]
    retain(log_dir, "retention.ms=1")
    assert [file.name for file in path.glob("*.snapshot")] == [f"{3:020d}.snapshot"]


def test_compact_and_delete_by_file_time_and_runs_after_it(log_dir: Path) -> None:
    path = _old_files(log_dir)
    policy = "cleanup.policy=compact,delete"
    compact(log_dir, policy)
    retain(log_dir, policy, "retention.ms=1000", now_ms=START_MS)
    assert bases(path) == [3]
    assert log_start(log_dir) == log_end(log_dir) == 3
    assert [plan.status for plan in compact(log_dir, policy).plans] == ["skip"]
    assert gone(retain(log_dir, policy, "retention.ms=1000", now_ms=START_MS)) == 0


@pytest.mark.parametrize(
    ("start", "epochs"),
    [
        (4, [(0, 0), (1, 5), (3, 10)]),
        (5, [(1, 5), (3, 10)]),
        (10, [(3, 10)]),
        (15, [(3, 15)]),
    ],
)
def test_leader_epochs_are_trimmed(
    log_dir: Path, start: int, epochs: list[tuple[int, int]]
) -> None:
    log = LogBuilder(log_dir)
    for epoch in (0, 1, 3):
        log.segment().epoch(epoch)
        for _ in range(5):
            log.batch(("key", "value"), timestamp=START_MS)
    path = log.high_watermark(start).write()
    retain(log_dir, "retention.ms=1")
    assert parse_leader_epoch_checkpoint((path / "leader-epoch-checkpoint").read_bytes()) == epochs
