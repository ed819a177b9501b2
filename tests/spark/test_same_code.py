"""Spark tasks run the code of the driver, or do nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from kafkalog.errors import CodeDiffersError
from kafkalog.spark import batch_reader, compact, same_code
from kafkalog.spark.batch_reader import ScanPartition
from kafkalog.spark.same_code import on_same_code
from tests.support.log_builder import LogBuilder

OTHER = "9.9.9 (0123456789abcdef)"


@pytest.mark.spark
@pytest.mark.parametrize(
    "strategy", ["within-task", pytest.param("across-tasks", marks=pytest.mark.thorough)]
)
def test_tasks_on_other_code_are_refused_and_change_nothing(
    spark: SparkSession,
    log_dir: Path,
    now_ms: int,
    strategy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = LogBuilder(log_dir)
    for _ in range(3):
        log.segment().batch(("k", "v"), ("k", "w"))
    log.write()
    monkeypatch.setattr(same_code, "code_digest", lambda: OTHER)
    before = {path: path.read_bytes() for path in log_dir.rglob("*.*") if path.is_file()}
    with pytest.raises(
        CodeDiffersError, match=r"made by kafkalog 9\.9\.9 \(0123.*, this task runs"
    ):
        compact(
            spark, [str(log_dir)], apply=True, topics=["orders"], now_ms=now_ms,
            config=["cleanup.policy=compact"], strategy=strategy,
        )  # fmt: skip
    assert {path: path.read_bytes() for path in before} == before
    assert not list(log_dir.rglob("*.cleaned")) + list(log_dir.rglob("*.swap"))


def _twice(batches: same_code.Batches) -> same_code.Batches:
    for batch in batches:
        yield from (batch, batch)


def test_a_worker_whose_kafkalog_is_older_says_so(tmp_path: Path) -> None:
    """What is sent needs nothing of the package before the check."""
    batch = pa.RecordBatch.from_pydict({"id": [1]})
    assert list(on_same_code(_twice)(iter([batch]))) == [batch, batch]
    (tmp_path / "kafkalog").mkdir()
    (tmp_path / "kafkalog" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    (tmp_path / "sent").write_bytes(cloudpickle.dumps(on_same_code(_twice)))
    command = "import pickle; list(pickle.load(open('sent', 'rb'))(iter(())))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "this task has none like it: No module named 'kafkalog.code_digest'" in done.stderr


def test_what_a_source_planned_is_read_by_the_same_code_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = ScanPartition(None)
    own.check_code()
    monkeypatch.setattr(batch_reader, "code_digest", lambda: OTHER)
    with pytest.raises(CodeDiffersError, match="made by kafkalog 9"):
        ScanPartition(None).check_code()
