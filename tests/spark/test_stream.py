"""readStream: batches of bounded size, AvailableNow, going on from a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.support.log_builder import LogBuilder
from tests.support.streams import run_to_end

pytestmark = pytest.mark.spark


def available_now(frame: DataFrame, work: Path) -> int:
    """Run the query to the end of the log as it is now; how many batches had rows."""
    writer = frame.writeStream.format("parquet").option("path", str(work / "out"))
    query = run_to_end(writer.option("checkpointLocation", str(work / "checkpoint")))
    assert query.exception() is None
    return sum(progress.numInputRows > 0 for progress in query.recentProgress)


def test_stream_goes_on_where_its_checkpoint_stands(spark: SparkSession, tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    logs = [LogBuilder(log_dir, f"orders-{number}") for number in range(2)]
    for log in logs:
        log.segment().batch(*(("k", str(n)) for n in range(10)))
        log.segment().batch(("k", "last")).torn(30).write(clean_shutdown=False)
        log.segments[-1].log = log.segments[-1].log[:-30]
    frame = (
        spark.readStream.format("kafkalog")
        .option("maxOffsetsPerTrigger", "8")
        .option("columns", "partition,offset,value")
        .load(str(log_dir))
    )
    assert available_now(frame, tmp_path) == 3
    assert available_now(frame, tmp_path) == 0
    for log in logs:
        log.batch(("k", "more"), ("k", "and more")).segment().batch(("k", "rolled"))
        shutil.rmtree(log.path)
        log.write()
    assert available_now(frame, tmp_path) == 1
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    written = [(p, r.offset, r.value) for p, log in enumerate(logs) for r in log.records]
    assert sorted((r.partition, r.offset, bytes(r.value)) for r in rows) == written
    with pytest.raises(PySparkException, match="a stream is of view records"):
        available_now(
            spark.readStream.format("kafkalog").option("view", "batches").load(str(log_dir)),
            tmp_path / "other",
        )
