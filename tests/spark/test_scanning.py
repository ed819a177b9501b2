"""`scan` gives what the data source gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import CompressionType
from kafkalog.spark import register, scan
from tests.support.log_builder import LogBuilder

pytestmark = pytest.mark.spark


def rows(frame: DataFrame) -> list[Any]:
    return sorted(map(str, frame.collect()))


@pytest.fixture
def two_topics(log_dir: Path) -> Path:
    for topic, codec in (("orders-0", CompressionType.ZSTD), ("payments-1", CompressionType.NONE)):
        log = LogBuilder(log_dir, topic)
        for _ in range(3):
            log.segment().batch(("k", "v"), ("k", None), ("l", ""), codec=codec)
        log.write()
    return log_dir


@pytest.mark.parametrize(
    ("view", "options"),
    [
        ("records", {"includeHeaders": "true"}),
        ("segments", {}),
        pytest.param(
            "records",
            {"subscribe": "orders", "columns": "offset,key,segmentBaseOffset"},
            marks=pytest.mark.thorough,
        ),
        pytest.param("batches", {}, marks=pytest.mark.thorough),
    ],
)
def test_rows_and_schema_are_those_of_the_source(
    spark: SparkSession, two_topics: Path, view: str, options: dict[str, str]
) -> None:
    register(spark)
    source = spark.read.format("kafkalog").options(view=view, **options).load(str(two_topics))
    found = scan(spark, str(two_topics), view=view, **options)
    assert found.schema == source.schema
    assert rows(found) == rows(source)
    assert found.count() > 0


def test_several_paths_and_none_of_a_topic(spark: SparkSession, two_topics: Path) -> None:
    paths = [str(two_topics / "orders-0"), str(two_topics / "payments-1")]
    assert scan(spark, paths).count() == 18
    empty = two_topics / "empty"
    empty.mkdir()
    (empty / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    assert scan(spark, str(empty)).collect() == []


def test_a_log_that_changed_since_ends_in_a_named_error(
    spark: SparkSession, two_topics: Path
) -> None:
    frame = scan(spark, str(two_topics), subscribe="orders")
    with (two_topics / "orders-0" / f"{0:020}.log").open("ab") as log:
        log.write(bytes(100))
    with pytest.raises(PythonException, match="LogChangedError"):
        frame.collect()


def test_unknown_options_are_refused_before_anything_is_read(
    spark: SparkSession, two_topics: Path
) -> None:
    with pytest.raises(InvalidConfigError, match="subscribed"):
        scan(spark, str(two_topics), subscribed="orders")
