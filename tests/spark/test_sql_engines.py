"""`kafkalog sql` on DuckDB and on Spark: the same views, the same answers, the same JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kafkalog
from data.copy_samples import SAMPLES
from kafkalog.cli.arguments import parse_arguments
from kafkalog.cli.main import main
from kafkalog.cli.statements import split_statements
from kafkalog.query_on_spark import work
from kafkalog.reading.sql_views import SQL_VIEWS
from kafkalog.spark import create_topic_views, create_views
from tests.support.documents import DOCS, examples

pytestmark = pytest.mark.spark

BROKER = str(SAMPLES / "broker")
GUIDE = DOCS / "guides" / "query.md"
# Those of the guide's ten questions whose ORDER BY leaves ties.
OPEN_ORDER = (
    "sizeInBytes DESC LIMIT 10",
    "records DESC",
    "missing DESC",
    "keys DESC",
    "bytes DESC",
)


def ten_questions() -> list[str]:
    text = next(e.text for e in examples("sql", GUIDE) if "What is in here?" in e.text)
    return list(split_statements(text))


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    create_views(spark, BROKER)
    create_topic_views(spark, BROKER)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


def rows(table: pa.Table) -> list[str]:
    """In an order of their own."""
    return sorted(repr(row) for row in table.to_pylist())


def typed(table: pa.Table) -> list[tuple[str, str]]:
    return [(field.name, str(field.type).replace(" not null", "")) for field in table.schema]


def test_there_are_ten_questions() -> None:
    assert len(ten_questions()) == 10


@pytest.mark.parametrize("number", range(10))
def test_the_guides_questions_have_the_same_answers(views: SparkSession, number: int) -> None:
    """Names, types and rows; in the same order where the question fixes one."""
    question = ten_questions()[number]
    wanted, found = views.sql(question).toArrow(), kafkalog.sql(BROKER, question)
    assert typed(found) == typed(wanted)
    assert rows(found) == rows(wanted)
    assert found.num_rows > 0
    if not question.endswith(OPEN_ORDER):
        assert found.to_pylist() == wanted.to_pylist()


@pytest.mark.parametrize("name", SQL_VIEWS)
def test_every_view_is_the_same(views: SparkSession, name: str) -> None:
    wanted, found = views.table(name).toArrow(), kafkalog.sql(BROKER, f"SELECT * FROM {name}")
    assert typed(found) == typed(wanted)
    assert rows(found) == rows(wanted)


def test_function_views_are_the_same(views: SparkSession) -> None:
    for name in ("brokers", "configs", "groups", "group_members", "gaps", "key_stats"):
        wanted, found = views.table(name).toArrow(), kafkalog.sql(BROKER, f"SELECT * FROM {name}")
        assert typed(found) == typed(wanted), name
        assert rows(found) == rows(wanted), name


def test_json_lines_and_csv_are_the_same(
    views: SparkSession, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Bytes, headers, times, nulls, broken floats and what JSON escapes."""
    query = (
        "SELECT key, value, headers, timestamp, offset, isnull(key) AS yes, offset / 4 AS real,"
        " concat('\"', topic, '\\n', 'é') AS text, CAST(timestamp AS DATE) AS day"
        " FROM records WHERE topic IN ('orders', 'odd-timestamps') AND offset < 20"
        " ORDER BY topic, partition, offset"
    )
    for format_ in ("json", "csv"):
        asked = ["sql", BROKER, "--format", format_, "--sql", query]
        assert main(asked) == 0
        ours = capfdbinary.readouterr().out
        work(views, parse_arguments([*asked, "--engine", "spark"]), lambda _: None)
        theirs = capfdbinary.readouterr().out
        if format_ == "csv":
            assert ours.splitlines() == theirs.splitlines()
        else:
            assert parsed(ours) == parsed(theirs)
        assert len(ours.splitlines()) > 60


def parsed(lines: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]
