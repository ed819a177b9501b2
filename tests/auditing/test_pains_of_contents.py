"""Disks as people have them, and the finding that names what is wrong: what logs hold against what
was promised. Numbers are those of the list of pains these come from.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.cli.main import main
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.meta_properties import META_PROPERTIES_FILE, pack_meta_properties
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.messages.remote_log_records import LAYOUTS, RemoteLogSegmentState
from tests.auditing.documents import audited_document, findings_of
from tests.support.coordinator_variants import VARIANTS
from tests.support.log_builder import META, START_MS, TOPIC_ID, LogBuilder
from tests.support.message_encoder import encode_key, encode_message, encode_value
from tests.support.metadata_builder import frame
from tests.support.sparse_log import MIB, SparseLog

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
CONTENTS = {"reads_records": True}
DELETE = "cleanup.policy=delete"
COMPACT = ("cleanup.policy=compact", "min.cleanable.dirty.ratio=0")

Row = dict[str, Any]


def the_finding(document: Row, kind: str) -> Row:
    (found,) = findings_of(document, kind)
    assert found["fix"]
    return found


def the_contents(document: Row, topic: str = "orders") -> Row:
    (row,) = [row for row in document["contents"] if row["topic"] == topic]
    return row


# -- 6: retention.bytes is per partition -----------------------------------------------------------


def test_6_retention_bytes_does_not_cap_the_topic(log_dir: Path) -> None:
    for number in range(4):
        log = LogBuilder(log_dir, f"orders-{number}")
        for _ in range(3):
            log.segment().batch(("k", "v" * 1000))
        log.write()
    limit, segment_bytes = 2500, 1 << 20
    config = [DELETE, f"retention.bytes={limit}", f"segment.bytes={segment_bytes}"]
    document = audited_document(log_dir, now_ms=START_MS, config=config)
    found = the_finding(document, "retention-bytes-per-partition")
    assert found["severity"] == "info"
    assert found["topic"] == "orders"
    assert "4 partitions" in found["text"]
    (topic,) = document["topics"]
    assert topic["retentionCeilingBytes"] == 4 * (limit + segment_bytes)
    assert document["whatIf"][0]["ceilings"] == [
        {"topic": "orders", "bytes": 4 * (limit + segment_bytes)}
    ]
    # one partition below its limit: nothing to explain
    small = audited_document(
        log_dir, now_ms=START_MS, config=[DELETE, "retention.bytes=1000000"], topics=["orders"]
    )
    assert not findings_of(small, "retention-bytes-per-partition")


# -- 8: older than retention, and readable ---------------------------------------------------------


def test_8_records_readable_beyond_retention(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("old", "1"), ("old", "2"), timestamp=START_MS)
    log.batch(("young", "1"), timestamp=START_MS + 5 * HOUR_MS)
    log.segment().batch(("old", "3"), timestamp=START_MS + HOUR_MS // 2)
    log.batch(("young", "2"), timestamp=START_MS + 5 * HOUR_MS)
    log.write()
    sizes = [header.size_in_bytes for s in log.segments for _, header in s.batches]
    now = START_MS + 6 * HOUR_MS
    config = [DELETE, f"retention.ms={2 * HOUR_MS}", f"segment.ms={DAY_MS}"]
    document = audited_document(log_dir, now_ms=now, config=config)
    found = the_finding(document, "readable-beyond-policy")
    assert "3 records" in found["text"]
    assert "2023-11-14T22:13:20.000Z" in found["text"]
    assert the_contents(document)["readableBeyondPolicyRecords"] == 3
    assert document["ageHistogram"] == [
        {"topic": "orders", "fromMs": HOUR_MS, "toMs": 6 * HOUR_MS, "closedBytes": sizes[1],
         "activeBytes": sizes[2] + sizes[3], "records": 3},
        {"topic": "orders", "fromMs": 6 * HOUR_MS, "toMs": DAY_MS, "closedBytes": sizes[0],
         "activeBytes": 0, "records": 2},
    ]  # fmt: skip
    # rolled after an hour they would be gone: more than Kafka's own grain
    late = audited_document(log_dir, now_ms=now, config=[*config[:2], f"segment.ms={HOUR_MS}"])
    assert the_finding(late, "age-beyond-promise")["severity"] == "warning"
    assert not findings_of(late, "readable-beyond-policy")


# -- 15: remote copies -----------------------------------------------------------------------------


def remote_records(
    *segments: tuple[int, int, RemoteLogSegmentState],
) -> Iterable[tuple[None, bytes]]:
    started, changed = LAYOUTS[0][0], LAYOUTS[1][0]
    for start, size, state in segments:
        segment_id = {
            "topicIdPartition": {"name": "tiered", "id": TOPIC_ID, "partition": 0},
            "id": f"4L6g3nShT-eMCtK--X8{start:03d}"[:21] + "w",
        }
        fields = {
            "remoteLogSegmentId": segment_id, "startOffset": start, "endOffset": start + 9,
            "brokerId": 1, "maxTimestampMs": START_MS, "eventTimestampMs": START_MS + start,
            "segmentLeaderEpochs": [{"leaderEpoch": 0, "offset": start}],
            "segmentSizeInBytes": size, "customMetadata": None, "remoteLogSegmentState": 0,
            "txnIndexEmpty": True,
        }  # fmt: skip
        yield None, frame(0, 0, encode_message(started, 0, fields))
        if state != RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            update = {
                "remoteLogSegmentId": segment_id, "brokerId": 1, "eventTimestampMs": START_MS + 99,
                "customMetadata": None, "remoteLogSegmentState": int(state),
            }  # fmt: skip
            yield None, frame(1, 0, encode_message(changed, 0, update))


def test_15_copies_that_failed_do_not_count(log_dir: Path) -> None:
    state = RemoteLogSegmentState
    log = LogBuilder(log_dir, "__remote_log_metadata-7")
    log.segment().batch(
        *remote_records(
            (0, 1000, state.COPY_SEGMENT_FINISHED),
            (10, 2000, state.COPY_SEGMENT_STARTED),
            (20, 4000, state.COPY_SEGMENT_FINISHED),
            (30, 8000, state.DELETE_SEGMENT_FINISHED),
            (40, 16000, state.COPY_SEGMENT_STARTED),
        )
    )
    log.write()
    document = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS)
    found = the_finding(document, "unfinished-remote-copies")
    assert found["topic"] == "__remote_log_metadata"
    text = found["text"]
    assert text.startswith(
        "tiered-0: 2 copies (17.6 KiB) were begun since 2023-11-14T22:13:20.010Z"
    )
    assert "4.9 KiB of 2 finished ones count for retention.bytes, not 22.5 KiB" in text


# -- groups ----------------------------------------------------------------------------------------


def commits(
    log: LogBuilder, *rows: tuple[str, str, int, int], at_ms: Callable[[int], int] | None = None
) -> None:
    """(group, topic, partition, offset) each."""
    records = []
    for number, (group, topic, partition, offset) in enumerate(rows):
        time = START_MS + number if at_ms is None else at_ms(number)
        names = {"group": group, "topic": topic, "partition": partition}
        fields = {"offset": offset, "leaderEpoch": 0, "metadata": "", "commitTimestamp": time}
        value = encode_value(OFFSET_COMMIT.value, 3, fields)
        records.append((encode_key(OFFSET_COMMIT.key, names), value))
    log.batch(*records)


def filled(log_dir: Path, name: str, segments: int = 4) -> LogBuilder:
    log = LogBuilder(log_dir, name)
    for _ in range(segments):
        log.segment().batch(*((f"k{i}", "v" * 50) for i in range(10)))
    log.write()
    return log


def test_19_what_all_groups_have_read_may_go(log_dir: Path) -> None:
    log = filled(log_dir, "orders-0")
    filled(log_dir, "orders-1")
    offsets = LogBuilder(log_dir, "__consumer_offsets-3")
    offsets.segment()
    commits(offsets, ("quick", "orders", 0, 39), ("slow", "orders", 0, 5))
    commits(offsets, ("slow", "orders", 0, 25), ("gone", "orders", 1, 3))
    offsets.write()
    other = LogBuilder(log_dir, "__consumer_offsets-4")
    other.segment()
    commits(other, ("third", "orders", 0, 31), ("third", "elsewhere", 0, 7))
    other.write()
    document = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS, config=[DELETE])
    first = log.segments[0].batches[0][1].size_in_bytes
    assert document["safeDeleteOffsets"] == [
        {"clusterId": META.cluster_id, "topic": "orders", "partition": 0, "offset": 25,
         "group": "slow", "groups": 3, "committedMs": START_MS, "bytes": 2 * first},
        {"clusterId": META.cluster_id, "topic": "orders", "partition": 1, "offset": 3,
         "group": "gone", "groups": 1, "committedMs": START_MS + 1, "bytes": 0},
    ]  # fmt: skip
    found = the_finding(document, "consumed-by-all")
    assert found["severity"] == "info"
    assert (found["topic"], found["partition"]) == ("orders", 0)
    assert "3 groups have read up to offset 25 (last of them slow)" in found["text"]
    # a broker does not delete records of a topic that is only compacted
    compacted = audited_document(
        log_dir, now_ms=START_MS, scope=CONTENTS, config=["cleanup.policy=compact"]
    )
    assert compacted["safeDeleteOffsets"] == []


def test_19_what_groups_of_another_cluster_have_read_says_nothing(log_dir: Path) -> None:
    """Two clusters' disks below one audit: topics and groups may have the same names."""
    for name, offset in (("mine", 25), ("theirs", 12)):
        filled(log_dir / name, "orders-0")
        offsets = LogBuilder(log_dir / name, "__consumer_offsets-3").segment()
        commits(offsets, (name, "orders", 0, offset))
        offsets.write()
    theirs = replace(META, cluster_id="7L6g3nShT-eMCtK--X86sw", directory_id=None)
    path = log_dir / "theirs" / META_PROPERTIES_FILE
    path.write_bytes(pack_meta_properties(theirs))
    document = audited_document(
        log_dir / "mine", log_dir / "theirs", now_ms=START_MS, scope=CONTENTS, config=[DELETE]
    )
    told = {row["clusterId"]: row for row in document["safeDeleteOffsets"]}
    assert {key: (row["group"], row["groups"], row["offset"]) for key, row in told.items()} == {
        META.cluster_id: ("mine", 1, 25),
        theirs.cluster_id: ("theirs", 1, 12),
    }
    found = findings_of(document, "consumed-by-all")
    assert {f["logDir"].rpartition("/")[2] for f in found} == {"mine", "theirs"}
    for finding in found:
        assert f"last of them {finding['logDir'].rpartition('/')[2]}" in finding["text"]


def test_29_a_group_that_commits_each_message(log_dir: Path) -> None:
    offsets = LogBuilder(log_dir, "__consumer_offsets-24")
    offsets.segment()
    busy = [("eager", "orders", number % 2, number) for number in range(2000)]
    commits(offsets, *busy, at_ms=lambda number: START_MS + number * 100)
    calm = [("calm", "orders", number % 4, number) for number in range(1200)]
    commits(offsets, *calm, at_ms=lambda number: START_MS + number * 1000)
    offsets.write()
    document = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS)
    found = the_finding(document, "busy-committer")
    assert found["severity"] == "warning"
    assert "group eager has committed 2000 times for 2 partitions of orders" in found["text"]
    assert "10.0 a second" in found["text"]
    share = int(found["text"].rpartition(", ")[2].partition("%")[0])
    assert 50 < share < 70


def test_30_a_coordinator_has_much_to_read(log_dir: Path) -> None:
    sparse = SparseLog(log_dir, "__consumer_offsets-5")
    for _ in range(3):
        sparse.fill(16 * MIB, 32)
    sparse.write_checkpoints()
    document = audited_document(log_dir, now_ms=START_MS)
    found = the_finding(document, "coordinator-load")
    assert found["severity"] == "warning"
    assert found["text"] == "1.5 GiB and 9600 records to read"


def test_41_offsets_past_the_end_and_below_the_start(log_dir: Path) -> None:
    log = filled(log_dir, "orders-0")
    offsets = LogBuilder(log_dir, "__consumer_offsets-3")
    offsets.segment()
    commits(offsets, ("ahead", "orders", 0, log.next_offset + 5), ("fine", "orders", 0, 30))
    offsets.write()
    document = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS)
    text = the_finding(document, "committed-beyond-end")["text"]
    assert text == "group ahead has committed 45, 5 past the log's end 40"
    assert not findings_of(document, "committed-below-start")

    LogBuilder(log_dir, "payments-0").segment(20).batch(("k", "v")).write()
    late = LogBuilder(log_dir, "__consumer_offsets-9")
    late.segment()
    commits(late, ("behind", "payments", 0, 12))
    late.write()
    document = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS)
    text = the_finding(document, "committed-below-start")["text"]
    assert text.startswith("group behind has committed 12 (2023-11-14T22:13:20.000Z), 8 below")


# -- 42: tombstones and markers that stay ----------------------------------------------------------


def compact(log_dir: Path, now_ms: int, *more: str) -> None:
    options = [*("--log-dir", str(log_dir), "--topic", "orders", "--apply", "--no-undo")]
    options += [part for setting in COMPACT for part in ("--config", setting)]
    assert main(["compact", *options, "--now", str(now_ms), *more]) == 0


def lives_on(log_dir: Path) -> None:
    """The log dir's files are no copy's: one is as old as the log, and checkpoints are new."""
    os.utime(log_dir / META_PROPERTIES_FILE, ns=(START_MS * 1_000_000,) * 2)


def test_42_tombstones_stay_where_nothing_is_written(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1"), ("b", "1")).batch(("a", None)).batch(("c", None))
    log.segment().batch(("d", "active"))
    log.write()
    lives_on(log_dir)
    now = START_MS + DAY_MS
    compact(log_dir, now)
    # the round has stamped them: they may go a day later
    document = audited_document(log_dir, now_ms=now, config=COMPACT, scope=CONTENTS)
    row = the_contents(document)
    assert (row["tombstones"], row["tombstonesWithHorizon"]) == (2, 2)
    assert row["nextTombstoneMs"] == now + DAY_MS
    assert not findings_of(document, "stuck-tombstones")
    later = audited_document(log_dir, now_ms=now + 2 * DAY_MS, config=COMPACT)
    found = the_finding(later, "stuck-tombstones")
    assert "2 batches may go since 2023-11-16T22:13:20.000Z" in found["text"]
    assert "no round is to come" in found["text"]
    assert the_contents(later)["stuckTombstoneBatches"] == 2
    assert the_contents(later)["tombstones"] is None  # nobody asked for records
    # what is advised does it, and then nothing is said any more
    compact(log_dir, now + 2 * DAY_MS)
    assert findings_of(
        audited_document(log_dir, now_ms=now + 2 * DAY_MS, config=COMPACT), "stuck-tombstones"
    )
    advised = shlex.split(found["fix"].split("`")[1])
    assert {*advised} >= {"--force", "nothing-dirty", "--topic", "orders", "cleanup.policy=compact"}
    assert main([*advised[1:], "--now", str(now + 2 * DAY_MS), "--no-undo"]) == 0
    after = audited_document(log_dir, now_ms=now + 2 * DAY_MS, config=COMPACT, scope=CONTENTS)
    assert the_contents(after)["tombstones"] == 0
    assert not findings_of(after, "stuck-tombstones")


def test_a_horizon_is_no_tombstone(log_dir: Path) -> None:
    """A round took the tombstone; what stays of its batch keeps the horizon."""
    log = LogBuilder(log_dir)
    log.segment().batch(("a", None), ("b", "1")).segment().batch(("d", "active"))
    log.write()
    lives_on(log_dir)
    compact(log_dir, START_MS + DAY_MS)
    later_ms = START_MS + 3 * DAY_MS
    assert findings_of(
        audited_document(log_dir, now_ms=later_ms, config=COMPACT), "stuck-tombstones"
    )
    compact(log_dir, later_ms, "--force", "nothing-dirty")
    document = audited_document(log_dir, now_ms=later_ms, config=COMPACT)
    assert the_contents(document)["stuckTombstoneBatches"] == 1
    assert not findings_of(document, "stuck-tombstones")


def test_42_tombstones_without_a_horizon_stay_for_ever(log_dir: Path) -> None:
    """As cleaned by a broker before 3.1."""
    log = LogBuilder(log_dir)
    log.segment().batch(("a", None), ("b", "1"))
    log.segment().batch(("c", "active"))
    log.cleaner_offset(2).write()
    document = audited_document(log_dir, now_ms=START_MS, config=COMPACT, scope=CONTENTS)
    assert the_contents(document)["stuckTombstones"] == 1
    text = the_finding(document, "stuck-tombstones")["text"]
    assert "1 tombstones below the first dirty offset 2 have no delete horizon" in text


def test_42_markers_of_nothing(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1"))
    log.marker(ControlRecordType.COMMIT, 7).marker(ControlRecordType.ABORT, 8)
    log.segment().batch(("c", "active"))
    log.cleaner_offset(3).write()
    document = audited_document(log_dir, now_ms=START_MS, config=COMPACT)
    row = the_contents(document)
    assert (row["markers"], row["stuckMarkers"]) == (2, 2)
    assert row["markerBytes"] == 2 * 78
    assert "2 of transactions without records" in the_finding(document, "stuck-markers")["text"]


# -- 49 and 50: values and keys --------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", "null"])
def test_49_values_that_are_no_tombstones(log_dir: Path, value: str) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("gone", "1"), ("back", value), ("dead", None))
    log.batch(("gone", value), ("gone too", value), ("back", "2"))
    log.write()
    document = audited_document(log_dir, now_ms=START_MS, config=COMPACT, scope=CONTENTS)
    found = the_finding(document, "fake-tombstones")
    assert found["severity"] == "warning"
    assert "of 2 keys the latest value is empty or the text null" in found["text"]
    row = the_contents(document)
    assert row["fakeTombstones"] == 2
    assert row["emptyValues" if not value else "nullTextValues"] == 3
    assert row["tombstones"] == 1
    # what is deleted by age has no use for tombstones
    deleting = audited_document(log_dir, now_ms=START_MS, scope=CONTENTS)
    assert not findings_of(deleting, "fake-tombstones")


def test_50_keyless_records_on_a_compacted_topic(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1"), (None, "lost"), ("", "an empty key is one"), (None, None))
    log.write()
    document = audited_document(log_dir, now_ms=START_MS, config=COMPACT, scope=CONTENTS)
    found = the_finding(document, "keyless-records")
    assert found["severity"] == "warning"
    assert "2 of 4 records have no key" in found["text"]
    assert the_contents(document)["keylessRecords"] == 2
    assert not findings_of(
        audited_document(log_dir, now_ms=START_MS, scope=CONTENTS), "keyless-records"
    )


# -- and where it cannot be told -------------------------------------------------------------------


def test_damaged_records_are_told_and_the_rest_is_complete(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("a", "1")).batch(("b", "2"))
    path = log.write()
    (file,) = path.glob("*.log")
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    filled(log_dir, "sound-0")
    document = audited_document(log_dir, now_ms=START_MS, config=COMPACT, scope=CONTENTS)
    found = the_finding(document, "contents-unread")
    assert str(file) in found["text"]
    assert the_contents(document, "sound")["distinctKeys"] == 10


def test_estimate_reads_only_what_is_or_would_be_compacted(log_dir: Path) -> None:
    filled(log_dir, "orders-0")
    keys = {"reads_keys": True}
    row = the_contents(audited_document(log_dir, now_ms=START_MS, scope=keys))
    assert row["distinctKeys"] is None
    scenarios = parse_scenarios(["cleanup.policy=compact,delete"])
    asked = {**keys, "scenarios": scenarios}
    row = the_contents(audited_document(log_dir, now_ms=START_MS, scope=asked))
    assert (row["distinctKeys"], row["distinctKeysError"]) == (10, 0)
    assert row["compactionGainBytes"] > 0


def test_a_record_that_a_coordinator_does_not_load_is_named(log_dir: Path) -> None:
    """All groups of the partition are without a coordinator, though every checksum is right."""
    bad = VARIANTS["__consumer_offsets: commit cut"]
    sound = VARIANTS["__consumer_offsets: commit"]
    log = LogBuilder(log_dir, "__consumer_offsets-0")
    log.batch((sound.key, sound.value), (bad.key, bad.value)).write()
    assert not findings_of(audited_document(log_dir, now_ms=START_MS), "coordinator-record")
    document = audited_document(log_dir, now_ms=START_MS, scope=dict(CONTENTS))
    found = the_finding(document, "coordinator-record")
    assert (found["offset"], found["partition"]) == (1, 0)
    assert found["text"].startswith("__consumer_offsets-0: offset 1: ")
