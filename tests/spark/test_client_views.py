"""Views of topics that other programs keep have the same rows on Spark and without."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kafkalog
from kafkalog.messages.client_topics import CLIENT_TOPICS
from kafkalog.reading.streams_views import SUFFIXES
from tests.spark.test_function_views import sorted_rows, types_of
from tests.support.client_records import write_client_topics

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "views", [CLIENT_TOPICS, pytest.param(SUFFIXES, marks=pytest.mark.thorough, id="streams")]
)
def test_both_engines_have_the_same_rows(
    views: Iterable[str], spark: SparkSession, tmp_path: Path
) -> None:
    write_client_topics(tmp_path)
    for view in views:
        wanted = kafkalog.read_view(view, str(tmp_path))
        frame = spark.read.format("kafkalog").option("view", view).load(str(tmp_path))
        found = [row.asDict(recursive=True) for row in frame.collect()]
        assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == types_of(
            wanted.schema
        )
        assert sorted_rows(found) == sorted_rows(wanted.to_pylist())
        assert found, view
