"""What internal topics say: the samples' groups and transactions, and logs written for what the
samples lack.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data.copy_samples import SAMPLES
from kafkalog.format.topics import (
    OFFSETS_TOPIC,
    REMOTE_LOG_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.messages.remote_log_records import LAYOUTS
from kafkalog.messages.share_state_records import SHARE_SNAPSHOT, SHARE_UPDATE
from kafkalog.messages.transaction_records import TRANSACTION_LOG
from kafkalog.reading.function_views import group_costs as costs
from kafkalog.reading.function_views import remote_segments as segments
from kafkalog.reading.function_views import share_states as states
from kafkalog.reading.function_views import transactions
from kafkalog.reading.function_views.shared_reads import FunctionOptions, SharedReads
from kafkalog.reading.function_views.table import FUNCTION_VIEWS, TOPIC_VIEWS
from tests.support.coordinator_logs import write_coordinator_logs
from tests.support.log_builder import START_MS, TOPIC_ID, LogBuilder
from tests.support.message_encoder import encode_key, encode_message, encode_value

BROKER = str(SAMPLES / "broker")
HOUR_MS = 3_600_000
Row = dict[str, Any]


def rows(name: str, path: str, **options: int) -> list[Row]:
    """Of a function view, as it is made without Spark."""
    made = FUNCTION_VIEWS[name].made
    assert made is not None
    return made(SharedReads([path], FunctionOptions(**options))).to_pylist()


def test_groups_of_the_samples() -> None:
    found = {row["group"]: row for row in rows("groups", BROKER)}
    assert "forgotten" not in found
    assert found["classic"]["kind"] == "classic"
    assert (found["classic"]["state"], found["classic"]["members"]) == ("Empty", 0)
    assert found["modern"]["kind"] == "consumer"
    assert found["group-in-a-transaction"]["kind"] in ("classic", "simple")


def test_groups_of_the_share_sample() -> None:
    shared = {row["group"]: row for row in rows("groups", str(SAMPLES / "share"))}
    assert {name: shared[name]["kind"] for name in shared} == {
        "readers": "share",
        "others": "share",
    }
    assert all(row["epoch"] > 1 for row in shared.values())


def test_offsets_of_the_samples_and_their_lag() -> None:
    found = {
        (row["group"], row["topic"], row["partition"]): row
        for row in rows("group_offsets", BROKER, now_ms=START_MS)
    }
    gzip = found["classic", "codec-gzip", 0]
    assert (gzip["offset"], gzip["logEndOffset"], gzip["lag"]) == (300, 450, 150)
    assert gzip["topicId"] == gzip["diskTopicId"]
    assert not any(row["isExpired"] for row in found.values())
    # of an empty group seven days after it became so
    assert gzip["expiresAtMs"] > gzip["commitTimestampMs"] + 7 * 24 * HOUR_MS - HOUR_MS


def test_offsets_of_old_consumers_stand_beside_those_of_the_topic() -> None:
    old = SAMPLES / "zookeeper"
    ensemble = (str(old / "ensemble"),)
    options = FunctionOptions(now_ms=START_MS, zookeeper_dir=ensemble)
    made = FUNCTION_VIEWS["group_offsets"].made
    assert made is not None
    found = made(SharedReads([str(old / "broker-1")], options)).to_pylist()
    assert {(row["group"], row["topic"], row["partition"]): row["offset"] for row in found} == {
        ("old", "plain", 0): 25,
        ("old", "plain", 1): 7,
    }
    for row in found:
        assert row["source"].startswith("zookeeper")
        assert row["lag"] == max(0, row["logEndOffset"] - row["offset"])
        assert (row["expiresAtMs"], row["isExpired"]) == (None, False)


def test_what_groups_cost() -> None:
    committers = {row["group"]: row for row in rows("top_committers", BROKER)}
    assert committers["classic"]["commits"] >= 3
    assert committers["classic"]["bytes"] > committers["group-in-a-transaction"]["bytes"]
    hours = rows("rebalances", BROKER)
    assert sum(row["rebalances"] for row in hours if row["group"] == "classic") >= 2
    load = rows("coordinator_load", BROKER)
    assert [row["coordinatorPartition"] for row in load] == [0, 1, 2]
    assert sum(row["groups"] for row in load) == 3
    for row in load:
        logs = (SAMPLES / "broker" / f"__consumer_offsets-{row['coordinatorPartition']}").glob(
            "*.log"
        )
        assert row["bytes"] == sum(path.stat().st_size for path in logs)


def test_members_expiry_and_a_group_in_use(tmp_path: Path) -> None:
    subscription = "AAAAAAABAAR1c2Vk/////w=="  # version 0: topics [used]
    member = {
        "memberId": "m-1", "groupInstanceId": "static", "clientId": "c", "clientHost": "/h",
        "rebalanceTimeout": 1, "sessionTimeout": 2, "subscription": subscription, "assignment": "",
    }  # fmt: skip
    fields = {
        "protocolType": "consumer", "generation": 5, "protocol": "range", "leader": "m-1",
        "currentStateTimestamp": 9, "members": [member],
    }  # fmt: skip
    log = LogBuilder(tmp_path, "__consumer_offsets-0")
    log.batch((encode_key(GROUP_METADATA.key, {"group": "g"}),
               encode_value(GROUP_METADATA.value, 3, fields)))  # fmt: skip
    for topic, expire in (("used", -1), ("left", -1), ("said", 123)):
        key = encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": topic, "partition": 0})
        commit = {"offset": 4, "metadata": "", "commitTimestamp": 1000, "expireTimestamp": expire}
        log.batch((key, encode_value(OFFSET_COMMIT.value, 1, commit)))
    log.write()
    (found,) = rows("group_members", str(tmp_path))
    assert (found["memberId"], found["instanceId"], found["epoch"]) == ("m-1", "static", 5)
    assert (found["subscribedTopics"], found["isLeader"]) == (["used"], True)
    (group,) = rows("groups", str(tmp_path))
    assert (group["state"], group["members"], group["epoch"]) == ("Stable", 1, 5)
    offsets = rows("group_offsets", str(tmp_path), now_ms=61_000, offsets_retention_minutes=1)
    expires = {row["topic"]: (row["expiresAtMs"], row["isExpired"]) for row in offsets}
    assert expires == {"used": (None, False), "left": (61_000, True), "said": (123, True)}
    assert {row["lag"] for row in offsets} == {None}


def test_the_open_transaction_of_the_samples() -> None:
    ids = {row["transactionalId"]: row for row in rows("transactional_ids", BROKER)}
    assert ids["left-open"]["state"] == "ONGOING"
    assert ids["left-open"]["partitions"] == [{"topic": "transactions", "partitionIds": [0]}]
    assert {ids[name]["state"] for name in ("billing", "shipping")} <= {
        "COMPLETE_COMMIT",
        "COMPLETE_ABORT",
    }
    soon = ids["left-open"]["startMs"] + 1000
    (found,) = rows("open_transactions", BROKER, now_ms=soon)
    assert (found["topic"], found["transactionalId"]) == ("transactions", "left-open")
    assert (found["producerId"], found["isHanging"]) == (ids["left-open"]["producerId"], False)
    assert found["command"].endswith(
        f"abort --topic transactions --partition 0 --start-offset {found['firstOffset']}"
    )
    (late,) = rows("open_transactions", BROKER, now_ms=soon + 24 * HOUR_MS)
    assert late["isHanging"]
    assert late["ageMs"] > late["timeoutMs"]


def test_a_transaction_its_coordinator_has_forgotten_hangs(tmp_path: Path) -> None:
    now = START_MS
    LogBuilder(tmp_path, "data-0").batch(
        ("k", "v"), producer_id=7, is_transactional=True, timestamp=now
    ).write()
    key = encode_key(OFFSET_COMMIT.key, {"group": "g", "topic": "t", "partition": 0})
    commit = encode_value(
        OFFSET_COMMIT.value, 3, {"offset": 1, "metadata": "", "commitTimestamp": 1}
    )
    LogBuilder(tmp_path, "__consumer_offsets-0").batch(
        (key, commit), producer_id=7, is_transactional=True, timestamp=now
    ).write()
    fields = {
        "producerId": 7, "producerEpoch": 0, "transactionTimeoutMs": 60_000,
        "transactionStatus": 1, "transactionLastUpdateTimestampMs": now,
        "transactionStartTimestampMs": now,
        "transactionPartitions": [{"topic": "__consumer_offsets", "partitionIds": [0]}],
    }  # fmt: skip
    LogBuilder(tmp_path, "__transaction_state-0").batch(
        (encode_key(TRANSACTION_LOG.key, {"transactionalId": "t"}),
         encode_value(TRANSACTION_LOG.value, 0, fields))
    ).write()  # fmt: skip
    found = {r["topic"]: r for r in rows("open_transactions", str(tmp_path), now_ms=now + 1)}
    assert {topic: row["isHanging"] for topic, row in found.items()} == {
        "data": True,
        "__consumer_offsets": False,
    }
    assert found["__consumer_offsets"]["blockedGroups"] == ["g"]
    assert rows("group_offsets", str(tmp_path)) == []


def test_remote_segments_with_their_history(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "__remote_log_metadata-0")
    place = {"name": "t", "id": TOPIC_ID, "partition": 3}

    def put(number: int, fields: Row) -> None:
        segment = {"topicIdPartition": place, "id": f"{number:021d}A"}
        body = encode_message(
            LAYOUTS[fields.pop("kind")][0], 0, {"remoteLogSegmentId": segment, **fields}
        )
        kind = 1 if len(fields) == 4 else 0
        log.batch((None, bytes([1, kind, 0]) + body))

    spans = [(0, 9), (10, 19), (15, 29), (40, 49), (50, 59)]
    for number, (first, last) in enumerate(spans):
        put(number, {
            "kind": 0, "startOffset": first, "endOffset": last, "brokerId": 1,
            "maxTimestampMs": 5, "eventTimestampMs": 100 + number, "segmentLeaderEpochs": [],
            "segmentSizeInBytes": 1000, "customMetadata": None, "remoteLogSegmentState": 0,
        })  # fmt: skip
        if number != 4:
            update = {"brokerId": 1, "eventTimestampMs": 200, "customMetadata": None}
            put(number, {"kind": 1, **update, "remoteLogSegmentState": 1})
    log.write()
    found = rows("remote_segments", str(tmp_path))
    assert [(row["startOffset"], row["endOffset"]) for row in found] == spans
    assert [row["overlapsPrevious"] for row in found] == [False, False, True, False, False]
    assert [row["gapBefore"] for row in found] == [False, False, False, True, False]
    assert [row["isOrphan"] for row in found] == [False] * 4 + [True]
    assert found[0]["history"] == [
        {"timestampMs": 100, "state": "COPY_SEGMENT_STARTED"},
        {"timestampMs": 200, "state": "COPY_SEGMENT_FINISHED"},
    ]
    assert {(row["topic"], row["partition"]) for row in found} == {("t", 3)}


def test_share_states_of_a_snapshot_and_its_updates(tmp_path: Path) -> None:
    key = {"groupId": "g", "topicId": TOPIC_ID, "partition": 2}
    batch = {"firstOffset": 5, "lastOffset": 6, "deliveryState": 2, "deliveryCount": 1}
    snapshot = {
        "stateEpoch": 1, "leaderEpoch": 3, "createTimestamp": 10, "writeTimestamp": 11,
        "stateBatches": [],
    }  # fmt: skip
    update = {"leaderEpoch": 4, "stateBatches": [batch]}
    log = LogBuilder(tmp_path, "__share_group_state-0")

    def put(known: Any, fields: Row) -> None:
        log.batch((encode_key(known.key, key), encode_value(known.value, 0, fields)))

    put(SHARE_SNAPSHOT, {**snapshot, "snapshotEpoch": 1, "startOffset": 0})
    put(SHARE_UPDATE, {**update, "snapshotEpoch": 1, "startOffset": 3})
    put(SHARE_SNAPSHOT, {**snapshot, "snapshotEpoch": 2, "startOffset": 5})
    put(SHARE_UPDATE, {**update, "snapshotEpoch": 2, "startOffset": 7})
    put(SHARE_UPDATE, {**update, "snapshotEpoch": 2, "startOffset": -1})
    log.write()
    (found,) = rows("share_states", str(tmp_path))
    assert (found["group"], found["partition"], found["snapshotEpoch"]) == ("g", 2, 2)
    assert (found["startOffset"], found["leaderEpoch"], found["updates"]) == (7, 4, 2)
    assert found["updateBatches"] == [batch, batch]
    sample = rows("share_states", str(SAMPLES / "share"))
    assert {row["group"] for row in sample} == {"readers", "others"}
    assert {row["partition"] for row in sample} == {0, 1}


def test_a_share_state_that_was_deleted_is_gone(tmp_path: Path) -> None:
    snapshot = {
        "snapshotEpoch": 1, "stateEpoch": 1, "leaderEpoch": 3, "startOffset": 5,
        "createTimestamp": 10, "writeTimestamp": 11, "stateBatches": [],
    }  # fmt: skip
    log = LogBuilder(tmp_path, "__share_group_state-0")
    for group, values in (("left", (snapshot, None)), ("back", (snapshot, None, snapshot))):
        key = encode_key(
            SHARE_SNAPSHOT.key, {"groupId": group, "topicId": TOPIC_ID, "partition": 0}
        )
        for value in values:
            encoded = None if value is None else encode_value(SHARE_SNAPSHOT.value, 0, value)
            log.batch((key, encoded))
    log.write()
    assert [row["group"] for row in rows("share_states", str(tmp_path))] == ["back"]


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.thorough) for n in (2, 3))]
)
def test_tables_are_the_same_of_any_parts_in_any_order(tmp_path: Path, seed: int) -> None:
    write_coordinator_logs(tmp_path, seed)
    reads = SharedReads([str(tmp_path)], FunctionOptions(now_ms=START_MS))
    rng = random.Random(seed)
    for view, topic, columns, made in (
        ("messages", TRANSACTION_TOPIC, transactions.STATE_COLUMNS, transactions.transactional_ids),
        ("messages", REMOTE_LOG_TOPIC, segments.EVENT_COLUMNS, segments.remote_segments),
        ("messages", SHARE_STATE_TOPIC, states.STATE_COLUMNS, states.share_states),
        ("offset_commits", OFFSETS_TOPIC, costs.COMMITTER_COLUMNS, _top_committers),
        ("group_messages", OFFSETS_TOPIC, costs.REBALANCE_COLUMNS, _rebalances),
    ):
        batches = list(reads.topic(view, topic, columns))
        rows = [batch.slice(at, 1) for batch in batches for at in range(len(batch))]
        rng.shuffle(rows)
        one, other = made(batches).to_pylist(), made(rows).to_pylist()
        assert len(one) > 2, view
        assert sorted(other, key=repr) == sorted(one, key=repr), made


def _top_committers(commits: Iterable[pa.RecordBatch]) -> pa.Table:
    """By way of sums of three parts."""
    parts = list(commits)
    sums = [costs.committer_sums(parts[at::3]) for at in range(3)]
    return costs.top_committers(batch for part in sums for batch in part.to_batches())


def _rebalances(messages: Iterable[pa.RecordBatch]) -> pa.Table:
    parts = list(messages)
    epochs = [costs.group_epochs(parts[at::3]) for at in range(3)]
    return costs.rebalances(batch for part in epochs for batch in part.to_batches())


def test_a_log_dir_without_such_topics_gives_no_rows(tmp_path: Path) -> None:
    LogBuilder(tmp_path, "orders-0").batch(("k", struct.pack(">i", 1))).write()
    for name in TOPIC_VIEWS:
        assert rows(name, str(tmp_path)) == [], name
