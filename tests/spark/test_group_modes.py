"""What groups, their members and offsets make of records that cannot be read, by `mode`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.spark import create_topic_views, group_members, group_offsets, groups
from tests.support.log_builder import LogBuilder
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
