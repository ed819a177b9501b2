"""What Spark hands over of a WHERE clause, what it keeps, and that both give the same rows."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNotNull, LessThanOrEqual, Not

from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.spark import records, register
from kafkalog.spark.pushdown import push_filters
from kafkalog.spark.session import PUSH_FILTERS, PUSHDOWN
from tests.support.counting_source import CountingSource, counted
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.sparse_log import TEN_GIB_OFFSET, ten_gib

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def pushing(spark: SparkSession) -> Iterator[None]:
    """Filters are pushed in these tests, and by no frame twice."""
    spark.conf.set(PUSH_FILTERS, "true")
    register(spark)
    yield
    spark.conf.unset(PUSH_FILTERS)
    register(spark)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    log_dir = tmp_path_factory.mktemp("pushed")
    rnd = random.Random(5)
    for partition in range(3):
        log = LogBuilder(log_dir, f"orders-{partition}", index_interval_bytes=200)
        for number in range(30):
            if number % 10 == 0:
                log.segment()
            log.epoch(number // 12)
            for time in (-1, START_MS + number, START_MS + rnd.randrange(40)):
                keys = [rnd.choice(("a", "b", None, "")) for _ in range(2)]
                log.batch(
                    *((key, "value") for key in keys),
                    timestamp=time,
                    producer_id=rnd.choice((-1, 4, 9)),
                    codec=rnd.choice((0, 4)),
                )
        log.write()
    LogBuilder(log_dir, "clicks-0").batch(("a", "click")).write()
    return str(log_dir)


def explained(frame: DataFrame) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        frame.explain()
    return out.getvalue()


# A plan's line for rows that Spark itself looks at.
SPARK_FILTERS = re.compile(r"\bFilter ").search

TIME = f"timestamp_millis({START_MS + 12})"
PUSHED = [
    "offset = 17",
    "offset BETWEEN 20 AND 33 AND partition = 1",
    "offset IN (3, 50, 100000)",
    "topic = 'clicks'",
    "topic IN ('orders', 'none')",
    "key = X'61'",
    "key IN (X'61', X'')",
    f"timestamp >= {TIME}",
    f"timestamp < {TIME}",
    f"timestamp = {TIME}",
    "timestampMs = -1",
    "producerId = 9",
    "producerId <= 4",
    "leaderEpoch > 1",
    "isControl = false AND NOT isTransactional",
    "isControl",
]
LEFT_TO_SPARK = [
    "cast(key AS STRING) = 'a'",
    "offset = 3 OR offset = 4",
    "offset % 7 = 0",
    "offset <> 5",
    "key IS NULL",
    "producerId IS NULL",
    "key > X'61'",
    "value = X'76616c7565'",
]
COLUMNS = (
    "key,value,topic,partition,offset,timestamp,timestampMs,producerId,leaderEpoch,isControl,"
    "isTransactional"
)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    ordered = frame.select("topic", "partition", "offset", "key").orderBy(
        "topic", "partition", "offset"
    )
    return [tuple(row) for row in ordered.collect()]


@pytest.mark.thorough
def test_pushed_or_not_the_rows_are_the_same(spark: SparkSession, path: str) -> None:
    everything = records(spark, path, columns=COLUMNS).localCheckpoint()
    assert everything.count() == 3 * 180 + 1
    frame = records(spark, path, columns=COLUMNS)
    empty = []
    for condition in PUSHED:
        found = rows(frame.where(condition))
        assert found == rows(everything.where(condition)), condition
        if not found:
            empty.append(condition)
        assert not SPARK_FILTERS(explained(frame.where(condition))), condition
    assert empty == ["isControl"]
    for condition in LEFT_TO_SPARK:
        assert rows(frame.where(condition)) == rows(everything.where(condition)), condition
        assert SPARK_FILTERS(explained(frame.where(condition))), condition


def test_permissive_rows_of_bad_batches_are_filtered_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = LogBuilder(tmp_path).batch(("a", "1")).batch(("b", "2")).batch(("a", "3"))
    file = log.write() / f"{0:020}.log"
    content = bytearray(file.read_bytes())
    content[log.segments[0].batches[1][0] + 65] ^= 1
    file.write_bytes(content)
    frame = records(spark, str(tmp_path), mode="PERMISSIVE")
    assert frame.count() == 3
    assert [row.offset for row in frame.where("key = X'61'").collect()] == [0, 2]
    assert frame.where("key IS NULL").count() == 1


def test_without_the_sessions_setting_nothing_is_pushed(spark: SparkSession, path: str) -> None:
    """A reader that takes filters would fail every query there."""
    assert spark.conf.get(PUSHDOWN) == "true"
    try:
        spark.conf.set(PUSHDOWN, "false")
        register(spark)
        frame = spark.read.format("kafkalog").load(path)
        assert frame.where("offset = 17").count() == 3
        by_options = spark.read.format("kafkalog").options(
            key="a", producerId="4,9", leaderEpoch="1", columns=COLUMNS
        )
        plain = spark.read.format("kafkalog").options(columns=COLUMNS).load(path)
        condition = "key = X'61' AND producerId IN (4, 9) AND leaderEpoch = 1"
        assert rows(by_options.load(path)) == rows(plain.where(condition)) != []
    finally:
        spark.conf.set(PUSHDOWN, "true")
        register(spark)


def test_unless_asked_for_a_frame_answers_each_query_anew(spark: SparkSession, path: str) -> None:
    """Spark 4.2.0 would give the second query the rows of the first."""
    spark.conf.unset(PUSH_FILTERS)
    frame = records(spark, path, columns="partition,offset")
    assert frame.where("offset = 17").count() == 3
    assert frame.count() == 541
    frame.createOrReplaceTempView("asked_again")
    both = (
        "SELECT offset FROM asked_again WHERE offset = 5 UNION SELECT offset FROM asked_again WHERE"
    )
    assert sorted(row[0] for row in spark.sql(f"{both} offset = 6").collect()) == [5, 6]


def test_filters_become_conditions() -> None:
    """Also those that cannot be met, and those of other views."""
    offset, key, topic = ("offset",), ("key",), ("topic",)
    taken = [
        EqualTo(("OFFSET",), 5),
        In(key, (b"a", None)),
        EqualTo(topic, "t"),
        IsNotNull(offset),
        IsNotNull(key),
        GreaterThan(offset, 2**63 - 1),
    ]
    value = ("value",)
    left = [Not(EqualTo(offset, 5)), IsNotNull(value), EqualTo(("headers", "key"), "x")]
    row_filter, kept = push_filters("records", RowFilter(), [*taken, *left])
    assert kept == left
    assert row_filter.topics == {"t"}
    assert row_filter.keys == {b"a"}
    assert row_filter.is_impossible
    row_filter, kept = push_filters("batches", RowFilter(), [LessThanOrEqual(("producerId",), -1)])
    assert (row_filter.numbers, kept) == ({"producerId": Condition(high=-1)}, [])
    assert push_filters("checkpoints", RowFilter(), [EqualTo(topic, "t")])[1] != []


def test_tasks_of_a_read(spark: SparkSession, path: str) -> None:
    assert records(spark, path).rdd.getNumPartitions() == 1
    many = records(spark, path, minPartitions="6")
    assert 6 <= many.rdd.getNumPartitions() <= 12
    assert many.count() == 541
    assert records(spark, path, maxBytesPerPartition="1000").rdd.getNumPartitions() > 20


def test_point_queries_of_ten_gib_read_less_than_a_megabyte(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Plans and tasks together; by filter and by option."""
    log_dir = ten_gib(tmp_path / "logs").log_dir
    spark.dataSource.register(CountingSource)
    time = START_MS + TEN_GIB_OFFSET
    asked = spark.read.format("counting").option("columns", "offset,key,timestampMs")
    for frame in (
        asked.load(str(log_dir)).where(f"offset = {TEN_GIB_OFFSET}"),
        asked.options(startingTimestamp=time, endingTimestamp=time + 1).load(str(log_dir)),
    ):
        assert [tuple(row) for row in frame.collect()] == [(TEN_GIB_OFFSET, b"k30", time)]
        assert 1000 < counted(log_dir)["read"] < 1_000_000


@pytest.mark.parametrize("codec", [pytest.param(0, marks=pytest.mark.thorough), 4])
def test_one_key_copies_no_other_records_value(
    spark: SparkSession, tmp_path: Path, codec: int
) -> None:
    log_dir = tmp_path / "logs"
    for partition in range(2):
        log = LogBuilder(log_dir, f"orders-{partition}")
        for number in range(40):
            log.batch(*((f"key-{number % 7}", "v" * (100 + i)) for i in range(30)), codec=codec)
        log.batch(("other", f"wanted {partition}"), ("othex", "x" * 900), codec=codec).write()
    spark.dataSource.register(CountingSource)
    asked = spark.read.format("counting").option("columns", "key,value")
    for frame in (
        asked.load(str(log_dir)).where("key = X'6f74686572'"),
        asked.option("key", "other").load(str(log_dir)),
    ):
        found = sorted(tuple(row) for row in frame.collect())
        assert found == [(b"other", b"wanted 0"), (b"other", b"wanted 1")]
        assert counted(log_dir)["copied"] == sum(len(key) + len(value) for key, value in found)
