"""What a wrong unit of time does to a log, and segments that the time of records rolls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.record import Record
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, Disk
from tests.auditing.documents import findings_of
from tests.support.log_builder import LogBuilder

WEEK = {"cleanup_policy": "delete", "retention_ms": 7 * DAY_MS}
NOW_S = NOW_MS // 1000
# What is said of ages where the unit is right; "or `kafkalog retain --apply`" would lose the data.
OF_AGE = ("retention-overdue", "retention-due", "age-beyond-promise", "readable-beyond-policy")


def seconds_disk(tmp_path: Path, **settings: object) -> Disk:
    disk = Disk(tmp_path, **(settings or WEEK))
    for hours in (3, 2, 1):
        disk.segment(NOW_MS - (NOW_S - hours * 3600))
    return disk


def test_a_producer_of_seconds_is_named_and_retention_not_advised(tmp_path: Path) -> None:
    disk = seconds_disk(tmp_path).write()
    found = disk.finding("second-timestamps")
    assert found["severity"] == "error"
    assert (
        f"3 of 3 segments (357 B) have timestamps in seconds, as {NOW_S - 3 * 3600}"
        in (found["text"])
    )
    assert "in s it is 2024-02-" in found["text"]
    assert "read as ms 1970-01-" in found["text"]
    assert (found["offset"], found["segmentBaseOffset"], found["position"]) == (0, 0, 0)
    document = disk.audit()
    assert not [kind for kind in OF_AGE if findings_of(document, kind)]


@pytest.mark.parametrize(
    "settings", [{"cleanup_policy": "delete", "retention_ms": -1}, {"cleanup_policy": "compact"}]
)
def test_seconds_hurt_nobody_where_time_deletes_nothing(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    document = seconds_disk(tmp_path, **settings).write().audit()
    assert not findings_of(document, "second-timestamps")


def test_old_records_are_no_seconds(tmp_path: Path) -> None:
    """The first days of 1970 and the year 2001 are what somebody meant."""
    disk = Disk(tmp_path, **WEEK).segment(NOW_MS - 1).segment(NOW_MS - 10**12).segment(0).write()
    assert not findings_of(disk.audit(), "second-timestamps")
    assert findings_of(disk.audit(), "age-beyond-promise")


def test_retention_that_has_done_its_work_leaves_a_trace(tmp_path: Path) -> None:
    """The log is empty; a last batch and a segment that waits for its removal tell."""
    disk = Disk(tmp_path, **WEEK)
    disk.segment(NOW_MS - NOW_S, producer_id=5).segment()
    disk.log.log_start_offset(1)
    disk.write()
    for path in disk.log.path.glob(f"{0:020d}.*"):
        path.rename(f"{path}.deleted")
    text = disk.finding("second-timestamps")["text"]
    assert f"the log is empty up to offset 1, and {0:020d}.log.deleted has a timestamp" in text
    for path in disk.log.path.glob("*.deleted"):
        path.unlink()
    text = disk.finding("second-timestamps")["text"]
    assert f"the last batch of producer 5 has a timestamp in seconds, {NOW_S} (in s" in text


def many(disk: Disk, count: int, apart_ms: int, size: int = 10) -> Disk:
    for number in range(count):
        disk.log.segment(modified_ms=NOW_MS)
        time = NOW_MS - (count - number) * apart_ms
        disk.log.batch(("k", "v" * size), timestamp=time)
    return disk.write()


def test_segments_rolled_by_the_time_of_records_are_named(tmp_path: Path) -> None:
    """A year of records, written in a minute, with segment.ms of an hour."""
    settings = {"cleanup_policy": "delete", "retention_ms": -1, "segment_ms": HOUR_MS}
    found = many(Disk(tmp_path, **settings), 700, HOUR_MS + 1).finding("many-small-segments")
    assert (
        "700 segments, of 79 B on average: 700 open files of a broker and up to 1400 maps"
        in (found["text"])
    )
    assert "segment.ms 1 h (3600000) rolls them by the time of records" in found["text"]
    assert found["fix"].startswith(f"set segment.ms to 14 h ({14 * HOUR_MS})")


@pytest.mark.parametrize(
    ("settings", "said", "fix"),
    [
        ({"segment_bytes": 1048576}, "neither segment.ms nor segment.bytes", "raise segment.ms"),
        (
            {"internal_segment_bytes": 100},
            "segment.bytes 100 rolls them",
            "set segment.bytes to 1200",
        ),
        (
            {"segment_index_bytes": 24},
            "segment.index.bytes 24 is full",
            f"set segment.index.bytes to {24 * 12}",
        ),
    ],
)
def test_another_setting_that_rolls_them_is_named(
    tmp_path: Path, settings: dict[str, Any], said: str, fix: str
) -> None:
    disk = Disk(tmp_path, cleanup_policy="delete", retention_ms=-1, **settings)
    found = many(disk, 600, 1000).finding("many-small-segments")
    assert said in found["text"]
    assert found["fix"].startswith(fix)


def test_few_or_large_segments_are_nobodys_trouble(tmp_path: Path) -> None:
    settings = {"cleanup_policy": "delete", "retention_ms": -1, "segment_ms": HOUR_MS}
    few = many(Disk(tmp_path / "few", **settings), 400, HOUR_MS + 1)
    assert not findings_of(few.audit(), "many-small-segments")


def test_the_cleaner_and_negative_timestamps(tmp_path: Path) -> None:
    """What `tests/oracle/test_negative_timestamps.py` holds against Kafka's cleaner, in short."""
    disk = Disk(tmp_path, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    disk.log.segment(modified_ms=NOW_MS)
    disk.log.batch(Record(0, NOW_MS, b"a", b"1"), Record(1, -62_135_596_800_000, b"b", b"1"))
    disk.segment(0).write()
    found = disk.finding("cleaner-would-fail")
    assert "offsets 0 to 1 has negative timestamps (-62135596800000 at offset 1)" in found["text"]
    assert not findings_of(disk.audit(), "compaction-due")


def test_a_header_tells_of_a_negative_timestamp_however_many_single_records_come_before(
    tmp_path: Path,
) -> None:
    disk = Disk(tmp_path, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    disk.log.segment(modified_ms=NOW_MS)
    for number in range(100):  # each is alone in its batch: none is ever written anew
        disk.log.batch((f"k{number}", "v"), timestamp=-5)
    assert not findings_of(disk.segment(0).write().audit(), "cleaner-would-fail")
    other = Disk(tmp_path / "other", cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    other.log.segment(modified_ms=NOW_MS)
    for number in range(100):
        other.log.batch((f"k{number}", "v"), timestamp=-5)
    other.log.batch(("a", "1"), ("b", "1"), timestamp=-5)
    found = other.segment(0).write().finding("cleaner-would-fail")
    assert "offsets 100 to 101 has negative timestamps (-5 at offset 100)" in found["text"]


def test_what_nobody_says_is_no_change_of_policy(tmp_path: Path) -> None:
    """Of a copy without its cluster's metadata nobody tells a policy, and the checkpoint tells of
    compaction.
    """
    for name in ("__consumer_offsets-0", "orders-0"):
        log = LogBuilder(tmp_path, name).segment().batch(("k", "v")).segment().batch(("k", "v"))
        log.cleaner_offset(1).write()
    disk = Disk(tmp_path)
    assert not findings_of(disk.audit(), "policy-not-compact")
