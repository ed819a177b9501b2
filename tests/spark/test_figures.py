"""Frames to plot: numbers that are counted again from the log builder's own records."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkalog.spark import bytes_by_topic, key_skew, records_over_time
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark


def test_frames_are_what_the_log_holds(spark: SparkSession, log_dir: Path) -> None:
    logs = [LogBuilder(log_dir, name) for name in ("big-0", "big-1", "small-0")]
    for log, batches in zip(logs, (3, 2, 1), strict=True):
        for number in range(batches):
            pairs = [(f"k{n % 3}", "x" * (900 if n % 3 == 0 else 50)) for n in range(9)]
            log.batch(*pairs, timestamp=START_MS + number * 60_000)
        log.write()
    sizes = [sum(len(s.log) for s in log.segments) for log in logs]
    bars = [tuple(row) for row in bytes_by_topic(spark, str(log_dir)).collect()]
    assert bars == [("big", sizes[0] + sizes[1], 45, 2), ("small", sizes[2], 9, 1)]

    points = records_over_time(spark, str(log_dir), every="1 minute").collect()
    start = dt.datetime.fromtimestamp(START_MS // 60_000 * 60, dt.UTC).replace(tzinfo=None)
    found = [(row.topic, row.timestamp, row.recordsCount) for row in points]
    assert found == [
        ("big", start, 18), ("big", start + dt.timedelta(minutes=1), 18),
        ("big", start + dt.timedelta(minutes=2), 9), ("small", start, 9),
    ]  # fmt: skip
    assert sum(row.sizeInBytes for row in points) == sum(sizes)

    curve = [tuple(row) for row in key_skew(spark, str(log_dir), subscribe="big").collect()]
    shares = [902, 902 + 52, 902 + 52 + 52]
    assert curve == [
        ("big", pytest.approx(n / 3), pytest.approx(share / shares[-1]))
        for n, share in enumerate(shares, 1)
    ]
    two = key_skew(spark, str(log_dir), subscribe="big", points=2).collect()
    assert [row.keysShare for row in two] == [pytest.approx(1 / 3), 1]
