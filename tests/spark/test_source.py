"""The data source through Spark: it is found, its views, its schema, its refusals."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from data.copy_samples import SAMPLES
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.columns.schemas import RECORDS
from kafkalog.reading.function_views.table import RECORD_VIEWS
from kafkalog.reading.option_table import OPEN_TRANSACTIONS
from kafkalog.reading.sql_views import SQL_VIEWS
from kafkalog.reading.streams_views import SUFFIXES
from kafkalog.reading.views import VIEWS, view_columns
from kafkalog.spark import batches, create_views, records, scan, session
from kafkalog.spark.source import KafkaLogSource
from tests.support.client_records import CLIENT_VIEWS, write_client_topics
from tests.support.log_builder import START_MS, LogBuilder

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """orders-0 in two segments, orders-1, and clicks-0 with headers; all in one log dir."""
    log_dir = tmp_path_factory.mktemp("logs")
    orders = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1"), ("b", None), codec=4)
    orders.segment().batch(("a", "")).torn(20).write()
    LogBuilder(log_dir, "orders-1").batch((None, "x")).write()
    headers = ((b"h", b"1"), (b"h", None))
    times = [-1, 1_750_000_000_000_000, 253_402_300_799_999, -5]
    clicks = LogBuilder(log_dir, "clicks-0").batch(("c", "2", headers))
    for time in times:
        clicks.batch(("t", "3"), timestamp=time)
    clicks.write()
    return str(log_dir)


def load(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("kafkalog").options(**options).load(path)


def test_spark_finds_the_source_by_itself(spark: SparkSession, path: str) -> None:
    """First in the file on purpose: nothing here has called `register` before."""
    fresh = spark.newSession()
    assert load(fresh, path, subscribe="orders").count() == 4


def test_records_have_the_columns_and_types_of_sparks_kafka_source(
    spark: SparkSession, path: str
) -> None:
    schema = load(spark, path, includeHeaders="true").schema
    assert schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )


def test_null_and_empty_stay_apart(spark: SparkSession, path: str) -> None:
    rows = load(spark, path, subscribe="orders").orderBy("partition", "offset").collect()
    assert [(r.key, r.value) for r in rows] == [
        (bytearray(b"a"), bytearray(b"1")),
        (bytearray(b"b"), None),
        (bytearray(b"a"), bytearray(b"")),
        (None, bytearray(b"x")),
    ]


def test_headers_and_odd_timestamps(spark: SparkSession, path: str) -> None:
    columns = "offset,timestamp,timestampMs,headers"
    rows = load(spark, path, subscribe="clicks", columns=columns).orderBy("offset").collect()
    assert [tuple(header) for header in rows[0].headers] == [("h", bytearray(b"1")), ("h", None)]
    assert [row.headers for row in rows[1:]] == [None] * 4
    raw = [START_MS, -1, 1_750_000_000_000_000, 253_402_300_799_999, -5]
    assert [row.timestampMs for row in rows] == raw
    assert [row.timestamp is None for row in rows] == [False, True, True, False, False]
    assert rows[3].timestamp.year == 9999
    assert rows[4].timestamp == dt.datetime(1969, 12, 31, 23, 59, 59, 995_000)


@pytest.mark.parametrize(
    "view", [pytest.param(v, marks=[pytest.mark.thorough] * (v in SUFFIXES)) for v in VIEWS]
)
def test_every_column_of_every_view_passes_sparks_schema_check(
    spark: SparkSession, path: str, tmp_path: Path, view: str
) -> None:
    names = [column.name for column in view_columns(view)]
    # the builder's small logs have no index entries and no transactions
    of_the_log = ("records", "batches", "segments", "partitions")
    if view in CLIENT_VIEWS:  # which the sample does not have
        path = str(tmp_path)
        write_client_topics(tmp_path)
    elif view not in of_the_log:
        path = str(SAMPLES / "broker")
    frame = load(spark, path, view=view, columns=",".join(names))
    assert frame.columns == names
    assert [field.nullable for field in frame.schema] == [c.nullable for c in view_columns(view)]
    found = frame.collect()
    assert len(found) > 0
    assert load(spark, path, view=view, mode="PERMISSIVE").count() == len(found)


def test_each_column_alone_equals_it_among_all(spark: SparkSession, path: str) -> None:
    """A narrow schema skips decoding; what is left must not change by that."""
    names = [column.name for column in RECORDS]
    wide = load(spark, path, columns=",".join(names)).collect()
    for name in ("value", "headers"):
        narrow = load(spark, path, columns=name).collect()
        assert [row[name] for row in narrow] == [row[name] for row in wide]


def test_what_a_task_says_of_a_log_is_the_last_line(spark: SparkSession, tmp_path: Path) -> None:
    path = LogBuilder(tmp_path, "orders-0").batch(("a", "1")).write() / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(PySparkException) as raised:
        scan(spark, str(tmp_path)).collect()
    text = str(raised.value).strip()
    last = text.splitlines()[-1]
    assert last.startswith("kafkalog.errors.CorruptRecordError: ")
    assert last.endswith("stored checksum differs from the one of the bytes")
    assert "Traceback" not in text


def test_temporary_view_from_sql_reads_only_its_columns(spark: SparkSession, path: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW narrow (OFFSET BIGINT, value BINARY, topic STRING) "
        f"USING kafkalog OPTIONS (path '{path}', subscribe 'orders', Mode 'failfast')"
    )
    frame = spark.table("narrow")
    assert frame.columns == ["OFFSET", "value", "topic"]
    rows = spark.sql("SELECT offset, cast(value AS string) v FROM narrow ORDER BY 1, 2").collect()
    assert [(row.offset, row.v) for row in rows] == [(0, "1"), (0, "x"), (1, None), (2, "")]


def test_table_is_refused_with_the_way_that_works(spark: SparkSession, path: str) -> None:
    """Spark 4.2 loses a table's options on the way to the reader of a Python source."""
    own = spark.newSession()
    own.conf.unset("spark.sql.catalog.spark_catalog")  # Delta's refuses in words of its own
    own.sql(f"CREATE TABLE batch_table USING kafkalog OPTIONS (path '{path}', view 'batches')")
    try:
        with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW"):
            own.table("batch_table").collect()
    finally:
        own.sql("DROP TABLE batch_table")


def test_offsets_partitions_and_several_paths(spark: SparkSession, path: str) -> None:
    assign = json.dumps({"orders": [0]})
    frame = load(
        spark,
        path,
        assign=assign,
        startingOffsets=json.dumps({"orders": {"0": 1}}),
        endingOffsets=json.dumps({"orders": {"0": -1}}),
    )
    assert [row.offset for row in frame.orderBy("offset").collect()] == [1, 2]
    two = spark.read.format("kafkalog").load([f"{path}/orders-1", f"{path}/orders-0"])
    assert two.count() == 4
    file = f"{path}/orders-0/{0:020}.log"
    assert records(spark, file).count() == 2
    assert batches(spark, [file, f"{path}/clicks-*"]).count() == 6


def test_views_of_a_log(spark: SparkSession, path: str) -> None:
    names = create_views(spark, path, prefix="v_", subscribe="orders")
    views = (*SQL_VIEWS, OPEN_TRANSACTIONS, *RECORD_VIEWS)
    assert names == [f"v_{name}" for name in (*views, *CLUSTER_TABLES)]
    # Those of internal topics have none of `orders`, and say so.
    expected = {
        "v_records": 4,
        "v_record_offsets": 4,
        "v_record_keys": 4,
        "v_batches": 3,
        "v_segments": 3,
        "v_partitions": 2,
        "v_offset_index": 0,
        "v_time_index": 3,
        "v_transaction_index": 0,
        "v_producer_snapshot": 0,
        "v_leader_epochs": 2,
        "v_checkpoints": 4,
        "v_transactions": 0,
        "v_producers": 2,
        "v_latest_by_key": 2,
        "v_key_stats": 1,
        "v_hot_keys": 3,
        "v_gaps": 0,
    }
    assert {name: spark.table(name).count() for name in expected} == expected
    topics = Counter(row.topic for row in spark.table("v_segments").collect())
    assert topics == {"orders": 3}


def test_log_dir_without_partitions_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    """A formatted one; a directory that is none is an error."""
    with pytest.raises(PySparkException, match="no log dir"):
        load(spark, str(tmp_path)).collect()
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    assert load(spark, str(tmp_path)).collect() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colour": "red"}, "option 'colour' is unknown; available: path"),
        ({"kafkaVersion": "3.9"}, "option kafkaVersion takes 4.1 to 4.4"),
        ({"view": "producer"}, "view 'producer' is unknown"),
        ({"now": "5"}, "option now is for view open_transactions, not for view 'records'"),
        (
            {"view": "open_transactions", "subscribe": "orders"},
            "option subscribe is not for view 'open_transactions'",
        ),
        ({"columns": "kee"}, "column 'kee' is unknown"),
        ({"subscribe": "order"}, "not there: order; there are: clicks, orders"),
    ],
)
def test_what_is_wrong_is_named(
    spark: SparkSession, path: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        load(spark, path, **options).collect()


def test_schema_with_another_type_is_refused(spark: SparkSession, path: str) -> None:
    reader = spark.read.format("kafkalog")
    with pytest.raises(PySparkException, match="column 'offset' is bigint, not int"):
        reader.schema("offset INT").load(path).collect()
    permissive = reader.option("mode", "PERMISSIVE")
    with pytest.raises(PySparkException, match="needs the column 'error'"):
        permissive.schema("key BINARY").load(path).collect()


def test_bad_batch_in_each_mode(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).batch(("a", "1")).batch(("b", "2")).batch(("c", "3"))
    file = log.write() / f"{0:020}.log"
    content = bytearray(file.read_bytes())
    position = log.segments[0].batches[1][0]
    content[position + 65] ^= 1
    file.write_bytes(content)
    with pytest.raises(PySparkException, match=rf"{0:020}\.log @ {position} \(offset 1\)"):
        load(spark, str(tmp_path)).collect()
    assert load(spark, str(tmp_path), mode="DROPMALFORMED").count() == 2
    rows = load(spark, str(tmp_path), mode="PERMISSIVE").collect()
    assert [row.offset for row in rows] == [0, None, 2]
    assert [row.error is None for row in rows] == [True, False, True]


def test_error_of_an_option_is_one_line(spark: SparkSession, path: str) -> None:
    for options in ({"colour": "red"}, {"subscribe": "order"}):
        with pytest.raises(PySparkException) as raised:
            load(spark, path, **options).collect()
        said = str(raised.value)
        assert "Traceback" not in said
        assert len([line for line in said.strip().splitlines() if line.strip()]) <= 2, said


def test_views_tell_spark_of_the_source_once(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark warns of each source that replaces one of its name."""
    told: list[object] = []
    real = session.register_source
    monkeypatch.setattr(session, "_registered", WeakKeyDictionary())
    monkeypatch.setattr(
        session, "register_source", lambda *each: told.append(each[1]) or real(*each)
    )
    assert len(create_views(spark, path, prefix="once_")) > 20
    create_views(spark, path, prefix="again_")
    assert told == [KafkaLogSource]
