"""What every release of Spark has to do, 3.5 to 4.3: `make matrix` runs this module on each."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kafkalog
from kafkalog.columns.cluster_schemas import CLUSTER_TABLES
from kafkalog.errors import InvalidConfigError
from kafkalog.operations.recover import recover_run
from kafkalog.reading.views import VIEWS
from kafkalog.requests.run_request import run_request
from kafkalog.spark import (
    audit,
    compact,
    create_topic_views,
    create_views,
    decode,
    export_to_delta,
    group_offsets,
    latest_by_key,
    records,
    register,
    retain,
    scan,
    transactional_ids,
)
from kafkalog.spark.loading import load
from kafkalog.spark.recover import spark_executor
from kafkalog.spark.releases import RELEASE, packages_conf, to_tasks
from kafkalog.spark.session import PUSH_FILTERS, PUSHDOWN
from tests.conftest import SAMPLES_NOW_MS
from tests.jobs.submit import submit
from tests.spark.releases import RELEASES, feature
from tests.spark.test_payloads import V1, descriptor_set, values
from tests.support.log_builder import LogBuilder
from tests.support.streams import run_to_end

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples" / "broker"
PATH = str(SAMPLES)
ORDERS = 2700
NO_STREAM = 'format\\("kafkalog"\\) needs Spark 4.0'


@pytest.fixture
def copied(log_dir: Path) -> Path:
    """The samples, to be changed."""
    return Path(shutil.copytree(SAMPLES, log_dir / "broker"))


def test_release_is_one_of_the_table() -> None:
    assert RELEASE in RELEASES


@pytest.mark.matrix
@pytest.mark.parametrize("is_old", [False, True])
def test_rows_go_to_the_tasks_they_name(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    for tasks in (1, 7, 40):
        frame = spark.range(0, 200, 1, 3).select((F.col("id") % tasks).cast("int").alias("target"))
        if is_old:  # what Spark before 4.1 lacks
            for kind in (type(frame), DataFrame):
                monkeypatch.delattr(kind, "repartitionById", raising=False)
        placed = to_tasks(frame, tasks, "target").select("target", F.spark_partition_id())
        assert all(target == task for target, task in placed.collect())
        assert placed.count() == 200


@feature("views as DataFrames: `kafkalog.spark.records` and the others")
def test_rows_of_views_are_those_of_the_reader(spark: SparkSession) -> None:
    """One of each kind: of records, headers, directories, files, messages, groups, producers."""
    for view in (
        "records", "batches", "segments", "time_index", "messages", "offset_commits", "producers",
    ):  # fmt: skip
        options = {} if view in ("records", "messages") else {"mode": "PERMISSIVE"}
        expected = kafkalog.read_view(view, PATH, **options).num_rows
        assert (view, load(spark, view, PATH, options).count()) == (view, expected)


@feature("`kafkalog.spark.scan`")
def test_scan_has_the_samples_orders(spark: SparkSession) -> None:
    found = scan(spark, PATH, subscribe="orders", includeHeaders="true")
    row = found.selectExpr("count(*) n", "count(key) k", "max(offset) o").first()
    assert row is not None
    assert (row.n, row.k, row.o) == (ORDERS, ORDERS, 899)
    first = found.orderBy("partition", "offset").first()
    (batch, *_) = kafkalog.read_records(f"{PATH}/orders-0", columns=["key", "value", "timestamp"])
    expected = batch.slice(0, 1).to_pylist()[0]
    assert first is not None
    assert bytes(first.key) == expected["key"]
    assert bytes(first.value) == expected["value"]
    assert first.timestamp == expected["timestamp"].replace(tzinfo=None)


@feature("`create_views`, SQL over all views; on 3.5 what is read is settled when a view is made")
def test_views_answer_sql(spark: SparkSession) -> None:
    names = create_views(spark, PATH, prefix="m_", subscribe="orders,__consumer_offsets")
    assert {f"m_{name}" for name in (*VIEWS, *CLUSTER_TABLES)} <= set(names)
    sql = "SELECT topic, count(*) n FROM m_record_offsets GROUP BY topic"
    assert {row.topic: row.n for row in spark.sql(sql).collect()}["orders"] == ORDERS
    latest = latest_by_key(spark, PATH, subscribe="orders").count()
    assert latest == spark.sql("SELECT * FROM m_latest_by_key WHERE topic = 'orders'").count() > 0
    stats = spark.sql("SELECT recordsCount, distinctKeys FROM m_key_stats WHERE topic = 'orders'")
    assert stats.first()[0] == ORDERS  # type: ignore[index]
    assert spark.table("m_topics").where("topic = 'orders'").count() == 1


@feature("groups and transactions: `create_topic_views`")
def test_internal_topics_answer_sql(spark: SparkSession) -> None:
    names = create_topic_views(spark, PATH, prefix="t_")
    assert spark.table("t_group_offsets").count() == group_offsets(spark, PATH).count() > 0
    assert transactional_ids(spark, PATH).where("transactionalId IS NULL").count() == 0
    assert "t_open_transactions" in names


@feature('`format("kafkalog")` and `USING kafkalog`', since="4.0", refused=NO_STREAM)
def test_source_is_found_and_can_be_registered_again(spark: SparkSession) -> None:
    register(spark)
    register(spark)
    frame = spark.read.format("kafkalog").option("subscribe", "orders").load(PATH)
    assert frame.count() == ORDERS
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW one (offset BIGINT) USING kafkalog"
        f" OPTIONS (path '{PATH}', subscribe 'orders')"
    )
    assert spark.table("one").count() == ORDERS


def stream(spark: SparkSession, log_dir: Path, work: Path, **options: str) -> list[int]:
    """The rows of each batch that has some, of a stream that ends where the log does."""
    register(spark)
    query = run_to_end(
        spark.readStream.format("kafkalog").options(columns="offset", **options).load(str(log_dir))
        .writeStream.format("parquet").option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
    )  # fmt: skip
    return [each.numInputRows for each in query.recentProgress if each.numInputRows]


@pytest.fixture
def ten_records(log_dir: Path) -> Path:
    LogBuilder(log_dir / "logs", "orders-0").batch(*((f"k{n}", "v") for n in range(10))).write()
    return log_dir / "logs"


@feature("streams, `Trigger.AvailableNow`", since="4.0", refused=NO_STREAM)
def test_stream_has_each_record_once(
    spark: SparkSession, ten_records: Path, tmp_path: Path
) -> None:
    assert stream(spark, ten_records, tmp_path) == [10]
    assert stream(spark, ten_records, tmp_path) == []
    assert spark.read.parquet(str(tmp_path / "out")).count() == 10


@feature(
    "bounded batches of a stream: `maxOffsetsPerTrigger`", since="4.2",
    refused="needs Spark 4",
)  # fmt: skip
def test_stream_is_bounded(spark: SparkSession, ten_records: Path, tmp_path: Path) -> None:
    assert stream(spark, ten_records, tmp_path, maxOffsetsPerTrigger="4") == [4, 4, 2]


@feature("filters pushed down: `spark.kafkalog.pushFilters`", since="4.1", refused="needs Spark 4")
def test_filters_are_pushed(spark: SparkSession, ten_records: Path) -> None:
    own = spark.newSession()
    own.conf.set(PUSH_FILTERS, "true")
    own.conf.set(PUSHDOWN, "true")
    register(own)
    frame = own.read.format("kafkalog").load(str(ten_records)).where("offset < 4")
    assert [row.offset for row in frame.orderBy("offset").collect()] == [0, 1, 2, 3]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FilterExec" not in plan
    assert "Filter (" not in plan.replace("isnotnull", "")


def decoded(df: DataFrame) -> list[Any]:
    rows = [row.asDict(recursive=True) for row in df.orderBy("n").collect()]
    return [row["decoded"] for row in rows]


@feature("`decode` of JSON")
def test_json_is_decoded(spark: SparkSession) -> None:
    df = values(spark, b'{"id": 1}', b'{"id": 1', b'"\xff"', '{"s": "\ufffd"}'.encode(), None)
    found = decode(df, "json", "id INT, s STRING")
    assert decoded(found) == [
        {"id": 1, "s": None}, None, None, {"id": None, "s": "\ufffd"}, None,
    ]  # fmt: skip


@feature("`decode` of Avro", until="4.2", refused=r"(?i)avro")
def test_avro_is_decoded(spark: SparkSession) -> None:
    df = values(spark, b"\2\2\6new", b"\2\2\6ne", None)
    assert decoded(decode(df, "avro", json.dumps(V1))) == [{"id": 1, "status": "new"}, None, None]


@feature("`decode` of Protobuf", since="4.1", refused="Protobuf needs Spark 4.1")
def test_protobuf_is_decoded(spark: SparkSession) -> None:
    schema = descriptor_set().SerializeToString()
    found = decode(values(spark, b"\x08\x05", b"\x08"), "protobuf", schema, message="shop.Order")
    first, second = decoded(found)
    assert (first["id"], second) == (5, None)


@feature("`export_to_delta`, append and merge", until="4.2", refused="Delta")
def test_delta_has_each_record_once(spark: SparkSession, ten_records: Path, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    assert export_to_delta(spark, str(ten_records), table).rows == 10
    assert export_to_delta(spark, str(ten_records), table).version is None
    assert spark.read.format("delta").load(table).count() == 10
    merged = export_to_delta(spark, str(ten_records), f"{table}-merged", mode="merge")
    assert merged.rows == 10


@feature("`compact` in tasks")
def test_compaction_keeps_the_latest(spark: SparkSession, log_dir: Path) -> None:
    log = LogBuilder(log_dir, "orders-0")
    for part in range(3):
        log.segment().batch(("a", f"{part}"), ("b", f"{part}"))
    log.write()
    options: Any = {"topics": ["orders"], "config": ["cleanup.policy=compact"]}
    done = compact(spark, [str(log_dir)], apply=True, **options)
    assert [result.status for result in done.results] == ["compacted"]
    kept = Counter(bytes(row.key) for row in records(spark, str(log_dir)).collect())
    assert kept == {b"a": 2, b"b": 2}


@feature("`retain`")
def test_retention_deletes(spark: SparkSession, copied: Path) -> None:
    options: Any = {"topics": ["orders"], "config": ["retention.bytes=1"]}
    before = records(spark, str(copied), subscribe="orders", columns="offset").count()
    done = retain(spark, [str(copied)], apply=True, now_ms=SAMPLES_NOW_MS, **options)
    assert {result.status for result in done.results} == {"deleted"}
    after = records(spark, str(copied), subscribe="orders", columns="offset").count()
    assert 0 < after < before


@feature("`audit`")
def test_audit_has_its_lists_as_frames(spark: SparkSession) -> None:
    found = audit(spark, [PATH], topics=["orders"], now_ms=SAMPLES_NOW_MS)
    assert found.frame("segments").count() == len(found.document["segments"]) > 0
    assert found.frame("findings").count() == len(found.document["findings"])


@feature("`recover` in tasks")
def test_indexes_are_rebuilt(spark: SparkSession, log_dir: Path) -> None:
    path = LogBuilder(log_dir, "orders-0").segment().batch(("a", "1")).write()
    (index,) = path.glob("*.timeindex")
    right = index.read_bytes()
    index.unlink()
    request = run_request([str(log_dir)], {"topics": ["orders"], "now_ms": SAMPLES_NOW_MS})
    (done,) = recover_run(request, spark_executor(spark)).results
    assert (done.status, index.read_bytes()) == ("rebuilt", right)


@feature("jobs by `spark-submit`")
def test_jobs_print_what_verbs_do(ten_records: Path) -> None:
    sql = "SELECT topic, count(*) AS records FROM record_offsets GROUP BY topic"
    done = submit("query_segments.py", str(ten_records), "--format", "json", "--sql", sql)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {"topic": "orders", "records": 10}
    done = submit("check_segments.py", "--log-dir", str(ten_records), "--json")
    assert "findings" in json.loads(done.stdout), done.stdout + done.stderr
    done = submit("list_segments.py", "--log-dir", str(ten_records), "--json")
    assert done.returncode == 0, done.stdout + done.stderr


def test_packages_are_refused_where_there_is_no_delta() -> None:
    with pytest.raises(InvalidConfigError, match="no release for Spark 4"):
        packages_conf("4.3")
