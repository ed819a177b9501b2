"""Checks on Spark: many partitions, a few damaged, the same findings as without it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkalog.columns.schemas import FINDINGS
from kafkalog.remote.paths import RemoteStorage
from kafkalog.spark.check_segments import verify
from tests.checking.running import verify as verify_alone
from tests.remote.test_aiven import (
    BROKER,
    KEYS,
    STORE,
    TOPICS,
    flip,
    verified,
    without_closed_segments,
)
from tests.support.log_builder import LogBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 120
DAMAGED = {3: "crc-mismatch", 57: "segment-missing", 58: "time-index-short", 119: "torn-tail"}
# A log dir that tests build is a node's whose metadata log is nowhere.
FOUND = {**DAMAGED, None: "metadata-log-missing"}


def write_many(log_dir: Path) -> None:
    for number in range(PARTITIONS):
        log = LogBuilder(log_dir, f"many-{number}").segment()
        for _ in range(3):
            log.batch(("k", "v" * 40), ("l", "w" * 40))
        log.segment().batch(("k", "1")).segment().batch(("k", "2")).write()
        bases = sorted(log.path.glob("*.log"))
        if DAMAGED.get(number) == "crc-mismatch":
            bases[0].write_bytes(bases[0].read_bytes()[:-2] + b"\x77\x77")
        elif DAMAGED.get(number) == "segment-missing":
            for path in log.path.glob(f"{bases[1].stem}.*"):
                path.unlink()
        elif DAMAGED.get(number) == "time-index-short":
            bases[0].with_suffix(".timeindex").write_bytes(b"")
        elif DAMAGED.get(number) == "torn-tail":
            bases[2].write_bytes(bases[2].read_bytes() + bytes(8) + b"\0\0\0\x7f" + bytes(9))


@pytest.mark.spark
def test_findings_of_many_partitions_are_a_data_frame(
    spark: SparkSession, log_dir: Path, tmp_path: Path
) -> None:
    write_many(log_dir)
    found = verify(spark, [str(log_dir)], run_dir=str(tmp_path))
    assert found.columns == [column.name for column in FINDINGS]
    rows = found.collect()
    assert {row.partition: row.id for row in rows if row.severity != "info"} == FOUND
    told = verify_alone(log_dir).findings
    alone = {(f.partition, f.kind, f.path, f.position, f.text) for f in told}
    assert {(r.partition, r.id, r.path, r.position, r.text) for r in rows} == alone
    (kept,) = tmp_path.iterdir()
    again = verify(spark, [str(log_dir)], run_dir=str(tmp_path), since=kept.name)
    assert again.collect() == rows
    assert found.where("id = 'crc-mismatch'").count() == 1


@pytest.mark.spark
@pytest.mark.thorough
def test_segments_in_remote_storage_are_checked_by_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    local = without_closed_segments(Path(shutil.copytree(BROKER, tmp_path / "broker")))
    store = Path(shutil.copytree(STORE, tmp_path / "store"))
    flip(next(store.glob("prefix/b-lz4-*/0/*.log")), 100)
    found = verify(
        spark, [str(local)], topics=TOPICS, run_dir=str(tmp_path / "runs"),
        remote_dirs=[str(store)], remote_keys=KEYS,
    )  # fmt: skip
    (row,) = found.where("severity = 'error'").collect()
    assert (row.topic, row.id) == ("b-lz4", "unreadable")
    assert "the tag is wrong" in row.text
    alone = verified(local, RemoteStorage((str(store),), keys=tuple(KEYS.items())), tmp_path / "r")
    assert found.count() == len(alone[0])
