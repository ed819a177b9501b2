"""Groups of a real broker: what our tables make of its log, against what Kafka's tools printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from data.copy_samples import SAMPLES
from kafkalog.reading.function_views.table import TOPIC_VIEWS
from kafkalog.spark import create_topic_views, group_members, group_offsets, groups

pytestmark = pytest.mark.spark

DATA = str(SAMPLES / "groups" / "data")
EVENTS: list[dict[str, Any]] = json.loads((SAMPLES / "groups" / "events.json").read_text())
LAST = EVENTS[-1]


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def committed(event: dict[str, Any]) -> dict[tuple[str, str, int], int]:
    """What the tool printed of offsets; a dash where nothing is committed."""
    return {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in event["offsets"]
        if row["CURRENT-OFFSET"] != "-"
    }


def test_groups_are_those_that_the_tools_show(spark: SparkSession) -> None:
    found = {row["group"]: row for row in rows(groups(spark, DATA))}
    seen = {row["GROUP"]: row for row in LAST["groups"]}
    assert set(found) == set(seen)
    for name, its in seen.items():
        row = found[name]
        is_simple = its["PROTOCOL"] == ""
        assert row["kind"] == ("simple" if is_simple else its["TYPE"].lower()), name
        assert (row["state"], row["members"]) == (its["STATE"], int(its["#MEMBERS"])), name
        if its.get("GROUP-EPOCH", "-") != "-":
            assert row["epoch"] == int(its["GROUP-EPOCH"]), name


def test_members_are_those_that_the_tools_show(spark: SparkSession) -> None:
    found = {(row["group"], row["memberId"]): row for row in rows(group_members(spark, DATA))}
    seen = {(row["GROUP"], row["CONSUMER-ID"]): row for row in LAST["members"]}
    assert set(found) == set(seen)
    for name, its in seen.items():
        row = found[name]
        assert (row["clientId"], row["clientHost"]) == (its["CLIENT-ID"], its["HOST"]), name
        assert row["instanceId"] == (its.get("GROUP-INSTANCE-ID") or None), name
        assert row["subscribedTopics"] == ["orders"], name
        epoch = its.get("CURRENT-EPOCH", its.get("MEMBER-EPOCH", "-"))
        if epoch != "-":
            assert row["epoch"] == int(epoch), name


def test_offsets_and_lag_are_those_that_the_tool_shows(spark: SparkSession) -> None:
    found = rows(group_offsets(spark, DATA))
    assert {(r["group"], r["topic"], r["partition"]): r["offset"] for r in found} == committed(LAST)
    lags = {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): int(row["LAG"])
        for row in LAST["offsets"]
        if row["LAG"] != "-"
    }
    assert {(r["group"], r["topic"], r["partition"]): r["lag"] for r in found} == lags


@pytest.mark.thorough
def test_the_history_has_what_the_tool_showed_after_each_step(spark: SparkSession) -> None:
    history = sorted(
        rows(group_offsets(spark, DATA, history=True)), key=lambda row: row["recordOffset"]
    )
    assert len(EVENTS) >= 4
    for event in EVENTS:
        then: dict[tuple[str, str, int], int] = {}
        for row in history:
            if not row["isTombstone"] and row["commitTimestampMs"] <= event["atMs"]:
                then[row["group"], row["topic"], row["partition"]] = row["offset"]
        seen = committed(event)
        # A group that is deleted in the end leaves tombstones, which have no time.
        gone = {key for key in then if key[0] not in {group for group, _, _ in seen}}
        assert {key: offset for key, offset in then.items() if key not in gone} == seen
        assert {group for group, _, _ in gone} <= {"forgotten"}


def test_topic_views_are_the_functions(spark: SparkSession) -> None:
    names = create_topic_views(spark, DATA, prefix="v_")
    assert names == [f"v_{name}" for name in TOPIC_VIEWS]
    for name in names:
        spark.sql(f"SELECT * FROM {name} LIMIT 0").collect()
    found = spark.sql(
        "SELECT g.kind, count(*) AS members FROM v_groups g JOIN v_group_members m"
        " ON g.`group` = m.`group` GROUP BY g.kind ORDER BY g.kind"
    )
    counts: dict[str, int] = {}
    kinds = {row["GROUP"]: row["TYPE"].lower() for row in LAST["groups"]}
    for row in LAST["members"]:
        kind = kinds[row["GROUP"]]
        counts[kind] = counts.get(kind, 0) + 1
    assert {row.kind: row.members for row in found.collect()} == counts
