"""Groups of a real broker: what our tables make of its log, against what Kafka's tools printed. No
Spark: its functions show these tables.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from data.copy_samples import SAMPLES
from kafkalog.columns.column import arrow_schema
from kafkalog.columns.schemas import LATEST_RECORDS
from kafkalog.reading.consumer_offsets.groups import group_members, groups
from kafkalog.reading.consumer_offsets.parts import (
    CommitsPart,
    commits_in_force,
    group_messages,
    plan_latest_records,
    read_latest_records,
)

SAMPLE = SAMPLES / "groups"
LAST: dict[str, Any] = json.loads((SAMPLE / "events.json").read_text())[-1]


@pytest.fixture(scope="module")
def records() -> pa.Table:
    parts = plan_latest_records([str(SAMPLE / "data")], part_bytes=512)
    batches = [
        batch
        for part in parts
        if isinstance(part, CommitsPart)
        for batch in read_latest_records(part)
    ]
    return pa.Table.from_batches(batches, arrow_schema(LATEST_RECORDS, all_nullable=True))


def test_commits_in_force_are_those_that_the_tool_shows(records: pa.Table) -> None:
    seen = {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
        for row in LAST["offsets"]
        if row["CURRENT-OFFSET"] != "-"
    }
    found = commits_in_force(records).to_pylist()
    assert {(r["group"], r["topic"], r["partition"]): r["offset"] for r in found} == seen


def test_groups_are_those_that_the_tools_show(records: pa.Table) -> None:
    table = groups(group_messages(records), commits_in_force(records))
    found = {row["group"]: row for row in table.to_pylist()}
    assert set(found) == {row["GROUP"] for row in LAST["groups"]}
    for its in LAST["groups"]:
        row = found[its["GROUP"]]
        kind = its["TYPE"].lower() if its["PROTOCOL"] else "simple"
        assert (row["kind"], row["state"]) == (kind, its["STATE"])
        assert row["members"] == int(its["#MEMBERS"])
        if its.get("GROUP-EPOCH", "-") != "-":
            assert row["epoch"] == int(its["GROUP-EPOCH"])


def test_members_are_those_that_the_tools_show(records: pa.Table) -> None:
    table = group_members(group_messages(records))
    found = {(row["group"], row["memberId"]): row for row in table.to_pylist()}
    assert set(found) == {(row["GROUP"], row["CONSUMER-ID"]) for row in LAST["members"]}
    for its in LAST["members"]:
        row = found[its["GROUP"], its["CONSUMER-ID"]]
        assert (row["clientId"], row["clientHost"]) == (its["CLIENT-ID"], its["HOST"])
        assert row["instanceId"] == (its.get("GROUP-INSTANCE-ID") or None)
        assert row["subscribedTopics"] == ["orders"]
        epoch = its.get("CURRENT-EPOCH", its.get("MEMBER-EPOCH", "-"))
        if epoch != "-":
            assert row["epoch"] == int(epoch)
