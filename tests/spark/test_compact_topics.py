"""Compaction as Spark tasks: the same bytes as worker processes write, one task a partition."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.errors import InvalidConfigError, LogDirLockedError
from kafkalog.format.constants import CompressionType
from kafkalog.operations.clean_result import COMPACTED
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import apply_run, plan_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.statuses import FAILED
from kafkalog.requests.run_request import CompactionOptions, CompactionRequest
from kafkalog.spark import compact
from kafkalog.spark.compact_topics import spark_executor
from kafkalog.spark.tasks import described, tasks_at_once
from kafkalog.swap.log_dir_lock import LogDirLock
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark

CONFIG = ["cleanup.policy=compact"]


@pytest.fixture
def three_partitions(log_dir: Path) -> Path:
    """orders-0 to orders-2, of three codecs, each with two segments below the active one."""
    for partition, codec in enumerate(
        (CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4)
    ):
        builder = LogBuilder(log_dir, f"orders-{partition}")
        for round_ in range(3):
            builder.segment()
            for batch in range(4):
                specs = [(f"k{(batch * n) % 5}", f"{round_}.{batch}.{n}") for n in range(6)]
                builder.batch(*specs, codec=codec)
        builder.write()
    return log_dir


def contents(log_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(log_dir)): path.read_bytes()
        for path in sorted(log_dir.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("strategy", [None, pytest.param("across-tasks", marks=pytest.mark.soak)])
def test_tasks_write_beside_the_log_dir_what_apply_would_put_in_place(
    spark: SparkSession, three_partitions: Path, tmp_path: Path, now_ms: int, strategy: str | None
) -> None:
    """Compared record by record, at a pace that tasks share."""
    before = contents(three_partitions)
    applied = Path(shutil.copytree(three_partitions, tmp_path / "applied"))
    options: CompactionOptions = {
        "topics": ["orders"], "config": CONFIG, "now_ms": now_ms, "strategy": strategy,
        "verify": "deep", "max_bytes_per_second": 100_000_000,
    }  # fmt: skip
    run = compact(spark, [str(three_partitions)], output=str(tmp_path / "output"), **options)
    assert [(result.status, result.reason) for result in run.results] == [("written", "")] * 3
    assert contents(three_partitions) == before
    done = compact(spark, [str(applied)], apply=True, no_undo=True, **options)
    assert [result.status for result in done.results] == [COMPACTED] * 3
    made = contents(tmp_path / "output")
    wanted = contents(applied)
    assert made.pop("swap.sh")
    assert len(json.loads(made.pop("compaction.json"))["partitions"]) == 3
    assert made == {name: wanted[name] for name in made}
    assert len(made) >= 9
    with pytest.raises(InvalidConfigError, match="not both"):
        compact(spark, [str(applied)], apply=True, output=str(tmp_path / "x"), **options)


def test_a_sessions_tasks_at_once_are_its_cores(spark: SparkSession) -> None:
    assert tasks_at_once(spark) == 2


def test_tasks_write_the_same_bytes_as_processes(
    spark: SparkSession, three_partitions: Path, tmp_path: Path, now_ms: int
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(three_partitions, copy)
    request = CompactionRequest(
        (str(copy),),
        now_ms,
        LogConfig.from_overrides(CONFIG),
        topics=("orders",),
        keeps_undo=False,
    )
    apply_run(request, clean_pack)
    run = compact(
        spark,
        [str(three_partitions)],
        topics=["orders"],
        config=CONFIG,
        now_ms=now_ms,
        apply=True,
        no_undo=True,
    )
    assert [result.status for result in run.results] == [COMPACTED] * 3
    assert {result.partition for result in run.results} == {0, 1, 2}
    assert contents(three_partitions) == contents(copy)
    assert not list(three_partitions.rglob("kafkalog-*"))


def test_a_map_across_tasks_gives_the_same_bytes(
    spark: SparkSession, three_partitions: Path, tmp_path: Path, now_ms: int
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(three_partitions, copy)
    config = LogConfig.from_overrides([*CONFIG, "internal.segment.bytes=100"])  # a group each
    request = CompactionRequest((str(copy),), now_ms, config, topics=("orders",), keeps_undo=False)
    apply_run(request, clean_pack)
    run = compact(
        spark,
        [str(three_partitions)],
        topics=["orders"],
        config=[*CONFIG, "internal.segment.bytes=100"],
        now_ms=now_ms,
        strategy="across-tasks",
        no_undo=True,
        apply=True,
    )
    assert [plan.strategy for plan in run.plans] == ["across-tasks"] * 3
    assert [len(plan.groups) for plan in run.plans] == [2] * 3
    assert [result.status for result in run.results] == [COMPACTED] * 3
    assert contents(three_partitions) == contents(copy)
    assert not list(three_partitions.rglob("kafkalog-*"))


def test_a_dry_run_starts_no_task_and_changes_nothing(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    before = contents(three_partitions)
    run = compact(spark, [str(three_partitions)], topics=["orders"], config=CONFIG, now_ms=now_ms)
    assert [plan.status for plan in run.plans] == ["clean"] * 3
    assert not run.applied
    assert not run.results
    assert contents(three_partitions) == before
    assert not (three_partitions / ".lock").exists()


def test_limits_hold_for_tasks(spark: SparkSession, three_partitions: Path, now_ms: int) -> None:
    request = {"topics": ["orders"], "config": CONFIG, "now_ms": now_ms}
    where = [str(three_partitions)]
    before = contents(three_partitions)
    over = compact(spark, where, **request, max_minutes=1e-9, apply=True)  # type: ignore[arg-type]
    assert [result.status for result in over.results] == ["left"] * 3
    assert contents(three_partitions) == before
    sizes = {plan.topic_partition.partition: plan.source_bytes for plan in over.plans}
    largest = max(sizes, key=lambda partition: sizes[partition])  # all are wholly dirty
    done = []
    for _ in sizes:
        run = compact(spark, where, **request, max_bytes=1, apply=True)  # type: ignore[arg-type]
        done += [result.partition for result in run.results if result.status == COMPACTED]
        assert [p.status for p in run.plans].count("left") == 3 - len(done)
    assert done[0] == largest
    assert sorted(done) == [0, 1, 2]


def test_a_damaged_partition_stays_and_the_others_are_done(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    log = three_partitions / "orders-1" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    before = contents(three_partitions / "orders-1")
    run = compact(
        spark, [str(three_partitions)], topics=["orders"], config=CONFIG, now_ms=now_ms, apply=True
    )
    by_partition = {result.partition: result for result in run.results}
    assert by_partition[1].status == FAILED
    assert str(log) in by_partition[1].reason
    assert by_partition[0].status == by_partition[2].status == COMPACTED
    assert contents(three_partitions / "orders-1") == before
    checkpoint = (three_partitions / "cleaner-offset-checkpoint").read_text().split("\n")
    assert sorted(checkpoint[2:4]) == ["orders 0 48", "orders 2 48"]


def test_nothing_starts_while_another_process_holds_the_lock(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    before = contents(three_partitions)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with LogDirLock(str(three_partitions)):
            os.write(writing, b"held")
            signal.pause()
        os._exit(0)
    assert os.read(reading, 4) == b"held"
    try:
        with pytest.raises(LogDirLockedError, match=r"\.lock"):
            compact(
                spark,
                [str(three_partitions)],
                topics=["orders"],
                config=CONFIG,
                now_ms=now_ms,
                apply=True,
            )
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert contents(three_partitions) == before


def test_apply_without_topics_is_refused(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    with pytest.raises(InvalidConfigError, match="--topic"):
        compact(spark, [str(three_partitions)], config=CONFIG, now_ms=now_ms, apply=True)


def test_a_task_on_another_disk_stops_before_it_changes_anything(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    request = CompactionRequest(
        (str(three_partitions),), now_ms, LogConfig.from_overrides(CONFIG), topics=("orders",)
    )
    plans = plan_run(request).plans
    # The same files and path, other inodes: what a task sees on another replica's host.
    other = three_partitions.with_name(three_partitions.name + "-other")
    shutil.copytree(three_partitions, other)
    shutil.rmtree(three_partitions)
    other.rename(three_partitions)
    before = contents(three_partitions)
    results = list(spark_executor(spark)(plans, CleanRun("r1", os.getpid())))
    assert [result.status for result in results] == [FAILED] * 3
    assert all("another host's disk" in result.reason for result in results)
    assert contents(three_partitions) == before


def test_the_same_task_twice_gives_one_result(
    spark: SparkSession, three_partitions: Path, now_ms: int
) -> None:
    request = CompactionRequest(
        (str(three_partitions),), now_ms, LogConfig.from_overrides(CONFIG), topics=("orders",)
    )

    def twice(plans, run):  # type: ignore[no-untyped-def]
        return spark_executor(spark)([*plans, *plans], run)

    run = apply_run(request, twice)
    assert [result.status for result in run.results] == [COMPACTED] * 6
    for partition in range(3):
        stats = {
            json.dumps(result.stats.to_json())
            for result in run.results
            if result.partition == partition
        }
        assert len(stats) == 1
    again = plan_run(request)
    assert [plan.status for plan in again.plans] == ["skip"] * 3


def test_many_small_partitions_share_tasks(spark: SparkSession, log_dir: Path, now_ms: int) -> None:
    """Forty partitions in sixteen tasks, whose job says what it does."""
    for partition in range(40):
        log = LogBuilder(log_dir, f"small-{partition}").segment()
        log.batch(("a", "1"), ("b", "1")).batch(("a", "2")).segment().batch(("b", "2")).write()
    group = f"many-{os.getpid()}"
    spark.sparkContext.setJobGroup(group, "not what is shown")
    try:
        run = compact(
            spark, [str(log_dir)], topics=["small"], config=CONFIG, now_ms=now_ms, apply=True
        )
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert [result.status for result in run.results] == [COMPACTED] * 40
    assert {result.partition for result in run.results} == set(range(40))
    assert {result.stats.records_retained for result in run.results} == {2}
    tracker = spark.sparkContext.statusTracker()
    stages = [
        tracker.getStageInfo(stage)
        for job in tracker.getJobIdsForGroup(group)
        for stage in tracker.getJobInfo(job).stageIds  # type: ignore[union-attr]
    ]
    assert 16 in {stage.numTasks for stage in stages if stage is not None}


def test_jobs_say_what_they_do_with_and_without_a_spark_context(spark: SparkSession) -> None:
    with described(spark, "compact 3 partitions, run 1"):
        assert spark.getTags() == {"kafkalog: compact 3 partitions; run 1"}
        text = spark.sparkContext.getLocalProperty("spark.job.description")
        assert text == "kafkalog: compact 3 partitions; run 1"
    assert spark.getTags() == set()
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None

    class Connected:
        """A session of Spark Connect has tags, and no context."""

        def __init__(self) -> None:
            self.said: list[tuple[str, str]] = []

        def addTag(self, tag: str) -> None:
            self.said.append(("add", tag))

        def removeTag(self, tag: str) -> None:
            self.said.append(("remove", tag))

    session = Connected()
    with described(session, "recover"):  # type: ignore[arg-type]
        pass
    assert session.said == [("add", "kafkalog: recover"), ("remove", "kafkalog: recover")]
