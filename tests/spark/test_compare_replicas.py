"""Replicas compared by Spark tasks: what the command line finds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from data.copy_samples import SAMPLES, copy_sample
from kafkalog.cli.main import main
from kafkalog.columns.compare_schemas import DIFFERENCES
from kafkalog.comparing.across_tasks import CompareAcross, execute_by_size
from kafkalog.comparing.comparison import compare_partition
from kafkalog.comparing.difference import ComparedPartition
from kafkalog.comparing.request import CompareRequest
from kafkalog.comparing.run import compare_run
from kafkalog.healing.run import apply_healing, heal_statuses
from kafkalog.requests.run_request import run_request
from kafkalog.spark import compare, compare_replicas
from kafkalog.spark.compare_replicas import heal_executor, spark_executor
from tests.comparing.comparing import told
from tests.comparing.test_across_tasks import plain_logs
from tests.jobs.submit import submit

pytestmark = pytest.mark.spark

NODES = [str(SAMPLES / "replicas" / name) for name in ("node1", "node2")]


def test_a_frame_has_what_the_command_line_finds(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = compare(spark, NODES)
    assert frame.columns == [column.name for column in DIFFERENCES]
    rows = [row.asDict() for row in frame.collect()]
    assert [(row["topic"], row["offset"], bytes(row.pop("keyBytes"))) for row in rows] == [
        ("abrt", 0, b"a"),
        ("tomb", 0, b"erased"),
    ]
    capsys.readouterr()
    assert main(["compare", *NODES, "--json", "--workers", "1"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert rows == [{k: v for k, v in each.items() if k != "keyBytes"} for each in findings]


@pytest.mark.thorough
def test_a_large_partition_is_compared_by_many_tasks(
    spark: SparkSession, log_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def by_size(tasks: Any, across: Any, within: Any) -> Iterable[ComparedPartition]:
        def counted(stages: CompareAcross) -> Any:
            sizes.append(len(stages.ranges))
            return across(stages)

        return execute_by_size(tasks, counted, within, least_bytes=0, range_bytes=1)

    monkeypatch.setattr(compare_replicas, "execute_by_size", by_size)
    log_dirs = plain_logs(log_dir)
    (log_dirs[1] / "orders-0" / f"{13:020d}.log").unlink()
    request = CompareRequest(tuple(map(str, log_dirs)))
    run = compare_run(request, spark_executor(spark))
    assert run == compare_run(request, lambda tasks: map(compare_partition, tasks))
    assert [(each.kind, each.offset, each.last_offset) for each in run.differences] == [
        ("missing-range", 13, 25)
    ]
    assert sizes == [8]


@pytest.mark.thorough
def test_replicas_are_healed_in_tasks(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    paths = [copy_sample(f"replicas/node{n}", log_dir / f"node{n}") for n in (1, 2)]
    log_dirs = tuple(map(str, paths))
    lines: list[str] = []
    healing = apply_healing(
        run_request(log_dirs, {"topics": ["*"], "run_dir": str(tmp_path / "runs")}),
        CompareRequest(log_dirs), spark_executor(spark), lines.append, heal_executor(spark),
    )  # fmt: skip
    assert heal_statuses(healing.healed) == ["healed", "healed"], lines
    assert told(*paths) == []


@pytest.mark.thorough
def test_spark_submit_prints_one_document() -> None:
    done = submit("compare_replicas.py", *NODES, "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(json.loads(done.stdout)["findings"]) == 2
    compared = {each["topic"] for each in json.loads(done.stdout)["partitions"]}
    assert compared
    for topic in compared:
        assert re.search(rf"{topic}-\d+: \d+ replicas, .*\d differences?\n", done.stderr)
