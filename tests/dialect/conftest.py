"""Both engines with the same tables, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.dialect.engines import Engines, small_plans
from tests.dialect.tables import TABLES


@pytest.fixture(scope="session")
def engines(spark: SparkSession) -> Iterator[Engines]:
    with small_plans(spark):
        yield Engines(spark, TABLES)
