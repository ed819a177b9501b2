"""`make demo` on the samples: five named sections, and every check of the last one holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from data import demo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.slow
def test_demo_prints_five_sections_and_every_check_holds(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = demo.run(spark)
    printed = capsys.readouterr().out
    assert failed == 0, printed
    assert re.findall(r"^== (\d)\. (\w+)", printed, re.MULTILINE) == [
        ("1", "Segments"),
        ("2", "SQL"),
        ("3", "The"),
        ("4", "Compaction"),
        ("5", "Verification"),
    ]
    assert len(re.findall(r"^  yes  ", printed, re.MULTILINE)) >= 7
