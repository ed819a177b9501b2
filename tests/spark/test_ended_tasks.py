"""Results of Spark tasks as each task ends, and the line that a job says of each partition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kafkalog.auditing.audit_run import audit_run
from kafkalog.auditing.request import audit_request
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import verify_run
from kafkalog.log.json_facts import JsonFacts
from kafkalog.spark import tasks
from kafkalog.spark.audit_retention import spark_executor as audit_executor
from kafkalog.spark.check_segments import spark_executor as verify_executor
from kafkalog.spark.tasks import run_packs
from kafkalog.texts import format_bytes
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark

# Far more than a busy machine needs.
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Number(JsonFacts):
    """A task, and its result."""

    value: int


def second_waits(numbers: Sequence[Number], flag: Path) -> Iterator[Number]:
    """The task of number 1 ends when somebody has seen what the one of number 0 found."""
    for number in numbers:
        last = time.monotonic() + PATIENCE_S
        while number.value == 1 and not flag.exists() and time.monotonic() < last:
            time.sleep(0.05)
        yield Number(number.value if flag.exists() else -1)


@pytest.mark.thorough
def test_result_of_a_task_is_there_while_others_run(spark: SparkSession, tmp_path: Path) -> None:
    flag = tmp_path / "seen"
    work = partial(second_waits, flag=flag)
    coming = run_packs(spark, [[Number(0)], [Number(1)]], work, Number, Number, "two")
    assert next(coming) == Number(-1)
    flag.touch()
    assert list(coming) == [Number(1)]


def fails(numbers: Sequence[Number]) -> Iterator[Number]:
    raise ArithmeticError("no number")


def test_job_that_fails_raises(spark: SparkSession) -> None:
    coming = run_packs(spark, [[Number(0)]], fails, Number, Number, "none")
    with pytest.raises(Exception, match="no number"):
        list(coming)


def test_tasks_without_a_spark_context_get_numbers_and_give_rows_in_batches() -> None:
    """As Spark Connect has it: the same function, in Arrow's batches."""
    in_arrow = tasks._InArrow[str](lambda numbers: (f"pack {n}" for n in numbers))
    batches = [pa.RecordBatch.from_pydict({"id": ids}) for ids in ([3], [4, 5])]
    rows = [row for batch in in_arrow(iter(batches)) for row in batch.to_pylist()]
    assert rows == [{"result": f"pack {n}"} for n in (3, 4, 5)]


def test_each_partition_has_a_line(spark: SparkSession, log_dir: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        log = LogBuilder(log_dir, name)
        log.segment().batch(("a", "1")).segment().batch(("b", "2")).write()
    said: list[str] = []
    request = VerifyRequest((str(log_dir),), run_dir=str(tmp_path))
    verify_run(request, verify_executor(spark, said.append), said.append)
    size = sum(path.stat().st_size for path in log_dir.glob("orders-0/*.log"))
    assert sorted(said) == [f"orders-{n}: 2 segments, {size} B read" for n in (0, 1)]
    said.clear()
    found = audit_run(
        audit_request([str(log_dir)], {"now_ms": START_MS}), audit_executor(spark, said.append)
    )
    sizes = [format_bytes(each.size_in_bytes) for each in found.partitions]
    assert sorted(said) == [f"orders-{n}: 2 segments, {sizes[n]} audited" for n in (0, 1)]
