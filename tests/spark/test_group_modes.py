"""What groups, their members and offsets make of records that cannot be read, by `mode`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kafkalog.spark
from kafkalog.errors import InvalidConfigError
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.reading.request import ReadMode
from kafkalog.spark import create_topic_views, group_members, group_offsets, groups
from tests.reading.function_views.test_modes import ERRORS, table, write_unreadable
from tests.support.coordinator_logs import write_coordinator_logs
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.message_encoder import encode_key, encode_value

pytestmark = pytest.mark.spark


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def test_modes_of_groups_whose_records_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "__consumer_offsets-0")
    metadata = encode_value(GROUP_METADATA.value, 3, {"protocolType": "consumer", "generation": 1})
    commit = {"offset": 4, "metadata": "", "commitTimestamp": 1000, "expireTimestamp": -1}
    for group in ("sound", "bad"):
        log.batch((encode_key(GROUP_METADATA.key, {"group": group}), metadata))
        key = encode_key(OFFSET_COMMIT.key, {"group": group, "topic": "t", "partition": 0})
        log.batch((key, encode_value(OFFSET_COMMIT.value, 1, commit)))
    log.batch((encode_key(GROUP_METADATA.key, {"group": "bad"}), b"\0\x63"), (key, b"\0\x63"))
    log.write()
    path = str(tmp_path)
    with pytest.raises(PySparkException, match="is not known"):
        group_members(spark, path).collect()
    dropped = group_offsets(spark, path, mode="DROPMALFORMED")
    assert "error" not in dropped.columns
    assert [row["group"] for row in rows(dropped)] == ["sound"]
    for history in (False, True):
        found = rows(group_offsets(spark, path, history=history, mode="permissive"))
        errors = {(row["group"], row["recordOffset"]): row["error"] for row in found}
        assert errors.pop(("bad", 5)) is not None
        older = {("bad", 3): None} if history else {}
        assert errors == {("sound", 1): None} | older
        (bad,) = (row for row in found if row["error"])
        assert (bad["offset"], bad["isExpired"], bad["topic"]) == (None, None, "t")
    create_topic_views(spark, path, prefix="m_", mode="PERMISSIVE")
    found = rows(spark.sql("SELECT `group`, kind, epoch, error FROM m_groups ORDER BY `group`"))
    assert [(row["group"], row["kind"], row["epoch"]) for row in found] == [
        ("bad", "classic", None), ("sound", "classic", 1),
    ]  # fmt: skip
    assert "offset 4: GroupMetadata version 99" in found[0]["error"]
    members = rows(spark.sql("SELECT `group`, memberId, error FROM m_group_members"))
    assert [(row["group"], row["memberId"]) for row in members] == [("bad", None)]
    with pytest.raises(InvalidConfigError, match="mode 'LOUD'"):
        groups(spark, path, mode="LOUD")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*ERRORS, "lag", "coordinator_load"])
def test_other_tables_have_the_rows_that_they_have_without_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    write_coordinator_logs(tmp_path, 3)
    write_unreadable(tmp_path)
    time = {"now_ms": START_MS} if name == "open_transactions" else {}
    for mode in (ReadMode.PERMISSIVE, ReadMode.DROPMALFORMED):
        found = getattr(kafkalog.spark, name)(spark, str(tmp_path), mode=mode, **time)
        wanted = table(name, tmp_path, mode)
        assert found.columns == list(wanted[0])
        for row in wanted:
            if isinstance(row.get("hour"), datetime):  # Spark's have no time zone
                row["hour"] = row["hour"].replace(tzinfo=None)
        assert sorted(rows(found), key=repr) == sorted(wanted, key=repr)
