"""Topics restored by Spark tasks: into topics that are there, and with new ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.requests.run_request import run_request
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.restore import RESTORED
from kafkalog.restoring.run import apply_restore, restore_statuses
from kafkalog.spark.restore_topics import spark_executor
from tests.jobs.submit import submit
from tests.restoring.fresh import fresh_node
from tests.restoring.target import empty_target, served
from tests.restoring.test_restore import busy

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["new", pytest.param("empty", marks=pytest.mark.thorough)])
def test_partitions_are_restored_in_tasks(
    kind: str, spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    busy(log_dir / "source").write()
    target = (fresh_node if kind == "new" else empty_target)(log_dir / "target")
    run = apply_restore(
        run_request([str(target)], {"run_dir": str(tmp_path / "runs")}),
        RestoreRequest((str(log_dir / "source"),), ("orders",)),
        lambda _: None,
        execute=spark_executor(spark),
    )
    assert restore_statuses(run) == [RESTORED], run.results
    assert served(target / "orders-0") == served(log_dir / "source/orders-0")


@pytest.mark.thorough
def test_spark_submit_prints_one_document(log_dir: Path, tmp_path: Path) -> None:
    busy(log_dir / "source").write()
    target = fresh_node(log_dir / "target")
    words = ["--into", str(target), "--topic", "orders", "--run-dir", str(tmp_path), "--json"]
    done = submit("restore_topics.py", str(log_dir / "source"), *words, "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)["partitions"]
    assert found["status"] == "restored"
    assert served(target / "orders-0") == served(log_dir / "source/orders-0")
    done = submit("restore_topics.py", "attach", str(target), "--in-place", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)["partitions"]
    assert (found["topic"], found["leader"]) == ("orders", 1)
