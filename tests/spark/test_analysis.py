"""Questions about whole logs: latest by key, keys by cost, gaps; against plain Python over what was
written."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.spark import gaps, hot_keys, key_stats, latest_by_key
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogBuilder:
    """Keys of unlike number and size, tombstones, headers, an aborted transaction at the end."""
    rnd = random.Random(8)
    builder = LogBuilder(tmp_path_factory.mktemp("keys"), "orders-0")
    for number in range(60):
        if number % 20 == 0:
            builder.segment()
        keys = [f"k{int(rnd.paretovariate(1)) % 30}" for _ in range(5)]
        specs = [
            (key, rnd.choice((None, "v" * rnd.randrange(30))), ((b"h", rnd.choice((None, b"xy"))),))
            for key in keys
        ]
        builder.batch(*specs, (None, "keyless"))
    builder.batch(("k1", "aborted"), ("new", "aborted"), producer_id=5, is_transactional=True)
    builder.marker(ControlRecordType.ABORT, 5)
    builder.write()
    return builder


@pytest.mark.thorough
def test_latest_by_key_is_the_last_committed_of_each(spark: SparkSession, log: LogBuilder) -> None:
    expected = {r.key: r for r in log.records[:-2] if r.key is not None}
    rows = latest_by_key(spark, str(log.path)).collect()
    assert {bytes(row.key): row.offset for row in rows} == {
        k: r.offset for k, r in expected.items()
    }
    for row in rows:
        record = expected[bytes(row.key)]
        assert row.isTombstone == (record.value is None)
        assert (None if row.value is None else bytes(row.value)) == record.value
    assert any(row.isTombstone for row in rows)
    uncommitted = latest_by_key(spark, str(log.path), isolationLevel="read_uncommitted")
    assert uncommitted.where("key = X'6e6577'").count() == 1


def size(record: Record) -> int:
    headers = sum(len(key) + len(value or b"") for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def test_keys_by_what_they_cost(spark: SparkSession, log: LogBuilder) -> None:
    by_key: dict[bytes | None, list[Record]] = defaultdict(list)
    for record in log.records:
        by_key[record.key].append(record)
    rows = {
        None if r.key is None else bytes(r.key): r for r in hot_keys(spark, str(log.path)).collect()
    }
    assert {k: (r.recordsCount, r.sizeInBytes) for k, r in rows.items()} == {
        key: (len(found), sum(map(size, found))) for key, found in by_key.items()
    }
    assert sum(row.share for row in rows.values()) == pytest.approx(1)
    (exact,) = key_stats(spark, str(log.path)).collect()
    assert exact.distinctKeys == len(by_key) - 1
    assert exact.recordsCount == len(log.records)
    assert exact.tombstonesCount == sum(r.value is None for r in log.records)
    assert exact.keyBytes == sum(len(r.key or b"") for r in log.records)
    assert exact.headerBytes + exact.keyBytes + exact.valueBytes == exact.sizeInBytes
    hottest = sorted((sum(map(size, found)) for found in by_key.values()), reverse=True)[:10]
    assert [hot.sizeInBytes for hot in exact.hotKeys] == hottest
    (about,) = key_stats(spark, str(log.path), approximate=True).collect()
    assert about.distinctKeys == pytest.approx(exact.distinctKeys, rel=0.1)
    assert about.sizeInBytes == exact.sizeInBytes


def test_gaps_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "holes-3").segment(7)
    log.batch(("a", "1")).batch(("b", "1"))
    log.next_offset = 12
    log.batch(("c", "1"), Record(15, START_MS, b"d", b"1"))
    log.segment(20).batch(("e", "1")).segment().batch(("f", "1"))
    log.write()
    rows = gaps(spark, str(tmp_path)).orderBy("startOffset", "place").collect()
    assert [(r.startOffset, r.endOffset, r.missingCount, r.place) for r in rows] == [
        (0, 7, 7, "start"),
        (9, 12, 3, "batches"),
        (12, 16, 2, "batch"),
        (16, 20, 4, "segments"),
    ]
    assert {(r.topic, r.partition, r.path) for r in rows} == {("holes", 3, str(log.path))}
    present = {record.offset for record in log.records}
    missing = sum(r.missingCount for r in rows)
    assert missing == log.next_offset - len(present)
