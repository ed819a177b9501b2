"""What users met when retention deleted nothing, or too much: a disk each, and the finding that
names it. A number is that of the list of pains in the issue tracker's words.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from kafkalog.format.time_index import pack_time_index
from kafkalog.zookeeper.settings import read_zookeeper_settings
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, ORDERS_ID, Disk, segments_of
from tests.auditing.documents import audited_document, findings_of, validate
from tests.support.log_builder import LogBuilder
from tests.support.metadata_builder import NO_TAGS, OTHER_ID, frame, text, uuid
from tests.zookeeper.live import cluster_id

WEEK = {"cleanup_policy": "delete", "retention_ms": 7 * DAY_MS}


def test_a_producer_of_microseconds_is_named(tmp_path: Path) -> None:
    """1: the segment lies in the year 50000 and more, and holds what is due."""
    disk = Disk(tmp_path, **WEEK)
    micros = (NOW_MS - 20 * DAY_MS) * 1000
    disk.segment(20 * DAY_MS, NOW_MS - micros, modified_age_ms=20 * DAY_MS)
    disk.segment(10 * DAY_MS).segment(0).write()
    found = disk.finding("microsecond-timestamps")
    assert found["offset"] == 1
    assert "in µs it is 2024-02-" in found["text"] or "in µs it is 2024-01-" in found["text"]
    document = disk.audit()
    assert [s["blockedBy"] for s in segments_of(document)][:2] == ["microsecond-timestamps"] * 2
    (partition,) = [p for p in document["partitions"] if p["topic"] == "orders"]
    assert partition["retention"]["blockedBy"] == "microsecond-timestamps"
    assert partition["retention"]["blockedBytes"] == sum(
        s["bytes"] for s in segments_of(document)[:2]
    )


def test_one_future_timestamp_names_segment_record_and_what_it_holds(tmp_path: Path) -> None:
    """2: what lies behind it is due, and stays."""
    disk = Disk(tmp_path, **WEEK)
    disk.segment(20 * DAY_MS, -365 * DAY_MS, 20 * DAY_MS, modified_age_ms=20 * DAY_MS)
    disk.segment(10 * DAY_MS).segment(9 * DAY_MS).segment(0).write()
    found = disk.finding("future-timestamp")
    assert (found["offset"], found["segmentBaseOffset"]) == (1, 0)
    behind = segments_of(disk.audit())[1:3]
    assert f"{sum(s['bytes'] for s in behind)} B of them due" in found["text"]
    assert [s["blockedBy"] for s in behind] == ["future-timestamp"] * 2


def test_a_broker_that_lives_and_does_not_delete_is_named(tmp_path: Path) -> None:
    """4: by the files alone: due for days while checkpoints went on being written."""
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(0).write(alive_age_ms=HOUR_MS)
    found = disk.finding("retention-overdue")
    assert "1 segment from 0 on" in found["text"]
    (partition,) = [p for p in disk.audit()["partitions"] if p["topic"] == "orders"]
    assert partition["retention"]["status"] == "due"
    assert partition["retention"]["dueSegments"] == 1


def test_what_a_stopped_broker_would_delete_is_no_fault(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS, modified_age_ms=12 * DAY_MS)
    disk.segment(6 * DAY_MS, modified_age_ms=6 * DAY_MS).write(alive_age_ms=6 * DAY_MS)
    assert disk.finding("retention-due")["severity"] == "info"


def test_every_segment_has_the_date_on_which_it_goes(tmp_path: Path) -> None:
    """5: 7 days of retention, 11 days of files: one segment goes with its youngest record."""
    disk = Disk(tmp_path, **WEEK)
    disk.segment(11 * DAY_MS, 5 * DAY_MS).segment(4 * DAY_MS).segment(DAY_MS).write()
    document = disk.audit()
    assert [s["dueMs"] - NOW_MS for s in segments_of(document)] == [
        2 * DAY_MS + 1, 3 * DAY_MS + 1, 6 * DAY_MS + 1,
    ]  # fmt: skip
    assert [day["segments"] for day in document["timeline"] if day["topic"] == "orders"] == [1] * 3
    (orders,) = [t for t in document["topics"] if t["topic"] == "orders"]
    assert orders["oldestTimestampMs"] == NOW_MS - 11 * DAY_MS


def test_an_override_that_never_arrived_is_drift(tmp_path: Path) -> None:
    """7: the file declares three days, the topic has seven."""
    disk = Disk(tmp_path, **WEEK).segment(5 * DAY_MS).segment(0).write()
    declared = tmp_path / "declared.toml"
    declared.write_text('[orders]\n"retention.ms" = 259200000\n')
    found = disk.finding("policy-drift", config_file=str(declared))
    assert (
        "retention.ms is 604800000 (from topic), not 259200000 (from config-file)" in found["text"]
    )
    assert "--add-config retention.ms=259200000" in found["fix"]
    # what happens goes by what is in force
    assert not findings_of(disk.audit(config_file=str(declared)), "retention-due")
    forced = disk.audit(config_file=str(declared), force=["config-differs"])
    assert findings_of(forced, "retention-overdue") or findings_of(forced, "retention-due")


def test_what_is_declared_and_never_set_is_drift_too(tmp_path: Path) -> None:
    """The cluster has no such setting, so Kafka's default of seven days is in force."""
    disk = Disk(tmp_path, cleanup_policy="delete").segment(5 * DAY_MS).segment(0).write()
    declared = tmp_path / "declared.toml"
    declared.write_text('[orders]\n"retention.ms" = 259200000\n')
    found = disk.finding("policy-drift", config_file=str(declared))
    said = "retention.ms is 604800000 (from default), not 259200000 (from config-file)"
    assert said in found["text"]
    document = disk.audit(config_file=str(declared))
    assert not findings_of(document, "retention-due")
    assert not findings_of(document, "retention-overdue")
    assert document["totals"]["dueBytes"] == 0
    # an option says what nobody else can know, as a broker's own file that is not there
    assert disk.audit(config=["retention.ms=259200000"])["totals"]["dueBytes"]


def test_an_active_segment_that_never_rolls_is_named_with_its_cure(tmp_path: Path) -> None:
    """9: one record a day, a segment of a week or a GiB."""
    disk = Disk(tmp_path, **WEEK).segment(*(n * DAY_MS for n in range(12, 0, -1))).write()
    found = disk.finding("active-never-rolls")
    assert f"set segment.ms to at most 84 h ({7 * DAY_MS // 2})" in found["fix"]
    assert f"segment.ms is 7 d ({7 * DAY_MS})" in found["text"]
    rolled = Disk(tmp_path / "rolled", **WEEK).segment(6 * DAY_MS, DAY_MS).write()
    assert not findings_of(rolled.audit(), "active-never-rolls")


def test_a_padded_time_index_is_named_with_the_records_own_time(tmp_path: Path) -> None:
    """10 and 52: a broker reads the zeros as an entry of 1970, or finds no room when it rolls."""
    disk = Disk(tmp_path, **WEEK).segment(DAY_MS).segment(0).write()
    index = disk.log.path / f"{0:020d}.timeindex"
    os.truncate(index, index.stat().st_size + 1200)
    found = disk.finding("time-index-padded")
    assert found["path"] == str(index)
    assert found["severity"] == "error"
    assert "1.2 KiB of zeros" in found["text"]
    active = disk.log.path / f"{disk.log.segments[-1].base_offset:020d}.timeindex"
    os.truncate(active, 10 * 1024 * 1024 // 12 * 12)
    paths = [f["path"] for f in findings_of(disk.audit(), "time-index-padded")]
    assert paths == [str(index), str(active)]


def test_preallocated_indexes_after_a_crash_are_rebuilt_and_no_finding(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(DAY_MS).segment(0).write(clean_shutdown=False)
    assert not findings_of(disk.audit(), "time-index-padded")


def test_a_time_index_older_than_its_records_is_named(tmp_path: Path) -> None:
    """10: retention goes by the index; here it would delete what is six days young."""
    disk = Disk(tmp_path, **WEEK).segment(30 * DAY_MS, DAY_MS).segment(0).write()
    index = disk.log.path / f"{0:020d}.timeindex"
    index.write_bytes(pack_time_index([NOW_MS - 30 * DAY_MS], [0], 0))
    assert "it goes too early" in disk.finding("time-index-short")["text"]
    assert segments_of(disk.audit())[0]["dueMs"] < NOW_MS


def test_compacted_segments_below_the_log_start_are_named(tmp_path: Path) -> None:
    """11."""
    disk = Disk(tmp_path, cleanup_policy="compact").segment(9 * DAY_MS).segment(DAY_MS).segment(0)
    disk.log.log_start_offset(disk.log.segments[1].base_offset)
    found = disk.write().finding("below-log-start")
    assert "1 segment from 0 on" in found["text"]
    assert segments_of(disk.audit())[0]["rule"] == "log-start-offset"


def test_deletion_that_waits_for_the_high_watermark_is_named(tmp_path: Path) -> None:
    """12."""
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(11 * DAY_MS).segment(0)
    disk.log.high_watermark(1)
    found = disk.write().finding("awaits-high-watermark")
    assert "the high watermark is 1, the log ends at 3" in found["text"]
    assert [s["blockedBy"] for s in segments_of(disk.audit())] == ["", "awaits-high-watermark", ""]


def test_files_that_are_gone_and_still_open_are_named(tmp_path: Path) -> None:
    """18: no audit promises their space; it says who holds it."""
    disk = Disk(tmp_path, **WEEK).segment(0).write()
    path = disk.log.path / f"{7:020d}.log.deleted"
    path.write_bytes(bytes(4096))
    with path.open("rb"):
        path.unlink()
        (found,) = findings_of(disk.audit(), "deleted-still-open")
    assert f"process {os.getpid()} holds 1 deleted files of 4.0 KiB" in found["text"]
    assert not findings_of(disk.audit(), "deleted-still-open")


@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "recovery-point-offset-checkpoint"]
)
def test_a_missing_checkpoint_leaves_the_rest_complete(tmp_path: Path, name: str) -> None:
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(0).write()
    whole = disk.audit()
    (tmp_path / name).unlink()
    document = disk.audit()
    assert len(document["segments"]) == len(whole["segments"])
    assert segments_of(document)[0]["dueMs"] == segments_of(whole)[0]["dueMs"]
    unknown = findings_of(document, "high-watermark-unknown")
    assert bool(unknown) == (name == "replication-offset-checkpoint")


def test_a_broken_checkpoint_and_a_foreign_directory_are_findings(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(0).write()
    whole = disk.audit()
    (tmp_path / "log-start-offset-checkpoint").write_bytes(b"0\n2\norders 0")
    (tmp_path / "lost+found").mkdir()
    document = disk.audit()
    assert [s["dueMs"] for s in segments_of(document)] == [s["dueMs"] for s in segments_of(whole)]
    assert findings_of(document, "foreign-directory")
    (found,) = findings_of(document, "unreadable")  # once, not for each partition
    assert found["path"] == str(tmp_path / "log-start-offset-checkpoint")
    assert not findings_of(document, "audit-incomplete")


def test_a_segment_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **WEEK).segment(3 * DAY_MS).segment(2 * DAY_MS).segment(0).write()
    log = disk.log.path / f"{1:020d}.log"
    content = bytearray(log.read_bytes())
    content[8:12] = (1).to_bytes(4, "big")  # a batch length that leads nowhere
    log.write_bytes(content)
    document = disk.audit()
    assert len(segments_of(document)) == 3
    assert segments_of(document)[2]["records"] == 1


def test_a_directory_that_cannot_be_listed_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(0).write()
    other = LogBuilder(tmp_path, "orders-1", topic_id=ORDERS_ID)
    other.segment().batch(("k", "v"), timestamp=NOW_MS)
    other.write()
    scandir = os.scandir

    def refuse(path: Any = ".") -> Any:
        if str(path).endswith("orders-1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("kafkalog.log.listing.os.scandir", refuse)
    document = disk.audit()
    (found,) = findings_of(document, "unreadable")
    assert found["path"] == str(other.path)
    assert len(segments_of(document)) == 2


def test_a_log_dir_that_cannot_be_listed_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "a", **WEEK).segment(12 * DAY_MS).segment(0).write()
    (tmp_path / "b").mkdir()
    scandir = os.scandir

    def refuse(path: Path | str) -> Any:
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    document = audited_document(tmp_path / "a", tmp_path / "b", now_ms=NOW_MS)
    (found,) = findings_of(document, "unreadable")
    assert (found["path"], found["text"]) == (
        str(tmp_path / "b"),
        "cannot be listed: Permission denied",
    )
    assert len(segments_of(document)) == len(segments_of(disk.audit())) == 2


def test_a_half_written_metadata_log_is_a_finding_and_the_rest_is_there(tmp_path: Path) -> None:
    """Settings are then Kafka's defaults, but for the policy: nothing is known to go."""
    disk = Disk(tmp_path, **WEEK).segment(12 * DAY_MS).segment(0).write()
    log = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[70:90] = bytes(20)
    log.write_bytes(content)
    document = disk.audit()
    (found,) = findings_of(document, "settings-unknown")
    assert "orders: the cluster metadata cannot be relied on" in found["text"]
    assert len(segments_of(document)) == 2
    assert [segment["dueMs"] for segment in segments_of(document)] == [-1, -1]


def test_of_a_zookeeper_era_disk_settings_are_those_of_its_zookeeper() -> None:
    zookeeper = SAMPLES / "zookeeper"
    log_dir = zookeeper / "broker-1"
    document = audited_document(log_dir, zookeeper_dir=[str(zookeeper / "ensemble")])
    own = read_zookeeper_settings([str(zookeeper / "ensemble")])[cluster_id("")]
    topics = {row["topic"]: row for row in document["topics"]}
    known = {topic: settings.config for topic, settings in own.topics.items()}
    checked = 0
    for topic, row in topics.items():
        if "retention.ms" in known.get(topic, {}):
            assert row["retentionMs"] == int(known[topic]["retention.ms"])
            assert row["configSources"]["retention.ms"] == "topic"
            checked += 1
    assert checked
    plain = [t for t, row in topics.items() if "broker 1" in str(row["configSources"])]
    assert plain, "dynamic settings of the broker come from there as well"
    assert not findings_of(document, "settings-unknown")
    drift = audited_document(
        log_dir, zookeeper_dir=[str(zookeeper / "ensemble")], config=["retention.ms=1"]
    )
    assert findings_of(drift, "policy-drift")
    assert findings_of(audited_document(log_dir), "settings-unknown")


TIERED = {
    "cleanup_policy": "delete",
    "remote_storage_enable": "true",
    "retention_ms": 100 * DAY_MS,
    "local_retention_ms": 7 * DAY_MS,
}


def test_local_segments_that_are_not_uploaded_are_named(tmp_path: Path) -> None:
    """14: local.retention against what remote metadata says is there."""
    disk = Disk(tmp_path, **TIERED).segment(12 * DAY_MS).segment(11 * DAY_MS).segment(0).write()
    found = disk.finding("awaits-upload")
    assert "2 segments from 0 on" in found["text"]
    assert "no __remote_log_metadata is there" in found["text"]
    uploads(tmp_path, finished=(0, 0), started=(1, 1))
    found = disk.finding("awaits-upload")
    assert "1 segment from 1 on" in found["text"]
    assert "remote storage has offsets up to 0" in found["text"]
    due = segments_of(disk.audit())[0]
    assert due["dueMs"] == NOW_MS - 5 * DAY_MS + 1


def test_a_future_timestamp_holds_the_local_copy_of_what_is_uploaded(tmp_path: Path) -> None:
    """3: Kafka 4.1 to 4.4, all whose rules are known, go by the largest timestamp here as well."""
    disk = Disk(tmp_path, **TIERED).segment(-365 * DAY_MS, modified_age_ms=20 * DAY_MS)
    disk.segment(11 * DAY_MS).segment(0).write()
    uploads(tmp_path, finished=(0, 1), started=(2, 2))
    for version in ("4.1", "4.4"):
        assert disk.finding("future-timestamp", kafka_version=version)["offset"] == 0
        held = segments_of(disk.audit(kafka_version=version))
        assert [s["blockedBy"] for s in held][:2] == ["future-timestamp"] * 2


def uploads(log_dir: Path, *, finished: tuple[int, int], started: tuple[int, int]) -> None:
    """`__remote_log_metadata` with a segment that is copied and one whose copy has only begun."""
    metadata = LogBuilder(log_dir, "__remote_log_metadata-0", topic_id=OTHER_ID)
    metadata.segment()
    for number, ((first, last), states) in enumerate(((finished, (0, 1)), (started, (0,)))):
        for state in states:
            metadata.batch((None, _remote_record(number, first, last, state)))
    metadata.write()


def _remote_record(number: int, first: int, last: int, state: int) -> bytes:
    place = text("orders") + uuid(ORDERS_ID) + (0).to_bytes(4, "big") + NO_TAGS
    segment = place + bytes([number]) * 16 + NO_TAGS
    broker, time = (1).to_bytes(4, "big"), NOW_MS.to_bytes(8, "big")
    if state == 1:
        return frame(1, 0, segment + broker + time + text(None) + bytes([state]) + NO_TAGS)
    offsets = first.to_bytes(8, "big") + last.to_bytes(8, "big")
    epochs = bytes([2]) + (0).to_bytes(4, "big") + first.to_bytes(8, "big") + NO_TAGS
    size = (100).to_bytes(4, "big")
    facts = offsets + broker + time + time + epochs + size + text(None) + bytes([state]) + NO_TAGS
    return frame(0, 0, segment + facts)


def test_deleting_before_a_date_is_a_plan_of_offsets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """13: for one topic, what no setting of a topic does."""
    disk = Disk(tmp_path, cleanup_policy="delete", retention_ms=-1)
    disk.segment(12 * DAY_MS, 11 * DAY_MS).segment(9 * DAY_MS, 5 * DAY_MS).segment(0).write()
    words = ["audit", "--log-dir", str(tmp_path), "--topic", "orders", "--json"]
    words += ["--now", str(NOW_MS), "--run-dir", str(tmp_path.parent / "runs")]
    main([*words, "--before", str(NOW_MS - 7 * DAY_MS)])
    document = json.loads(capsys.readouterr().out)
    validate(document)
    (plan,) = document["deleteBefore"]
    assert (plan["topic"], plan["partition"], plan["offset"]) == ("orders", 0, 3)
    assert plan["bytes"] == segments_of(document)[0]["bytes"]
    main([*words, "--before", str(NOW_MS + DAY_MS)])
    (everything,) = json.loads(capsys.readouterr().out)["deleteBefore"]
    assert everything["offset"] == 5
    main(words)
    assert json.loads(capsys.readouterr().out)["deleteBefore"] == []
