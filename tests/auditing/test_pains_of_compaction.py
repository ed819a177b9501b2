"""What users met when compaction did not run: a disk each, and the finding that names it. A number
is that of the list of pains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkalog.format.control_record import ControlRecordType
from tests.auditing.disks import DAY_MS, HOUR_MS, NOW_MS, Disk
from tests.auditing.documents import findings_of
from tests.support.control_variants import VARIANTS
from tests.support.log_builder import LogBuilder

COMPACT = {"cleanup_policy": "compact"}


def verdict_of(document: dict[str, Any]) -> dict[str, Any]:
    (partition,) = [p for p in document["partitions"] if p["topic"] == "orders"]
    verdict: dict[str, Any] = partition["compaction"]
    return verdict


def test_a_log_of_thousands_of_segments_that_nobody_cleans_is_named(tmp_path: Path) -> None:
    """28: no error anywhere; the files say since when."""
    disk = Disk(tmp_path, **COMPACT)
    for number in range(300):
        disk.segment((400 - number) * DAY_MS // 10)
    found = disk.write(alive_age_ms=HOUR_MS).finding("compaction-overdue")
    assert "dirty since offset 0" in found["text"]
    assert "it was cleaned never" in found["text"]


def test_a_dead_cleaner_is_told_by_its_checkpoint(tmp_path: Path) -> None:
    """31: newest cleaned offset against the log's end, and the days since."""
    disk = Disk(tmp_path, **COMPACT).segment(40 * DAY_MS).segment(30 * DAY_MS).segment(20 * DAY_MS)
    disk.segment(0).log.cleaner_offset(1)
    found = disk.write(alive_age_ms=0).finding("compaction-overdue")
    assert "it was cleaned up to offset 1" in found["text"]
    assert "alive 30 days after the first dirty segment" in found["text"]
    verdict = verdict_of(disk.audit())
    assert verdict["status"] == "clean"
    assert verdict["cleanedUpToMs"] == NOW_MS - 40 * DAY_MS
    assert verdict["dirtySinceMs"] == NOW_MS - 30 * DAY_MS


def test_a_stopped_brokers_log_is_due_without_fault(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS, modified_age_ms=9 * DAY_MS)
    disk.segment(8 * DAY_MS, modified_age_ms=8 * DAY_MS).write(alive_age_ms=8 * DAY_MS + HOUR_MS)
    assert disk.finding("compaction-due")["severity"] == "info"


def test_a_topic_believed_compacted_that_deletes_is_named_with_its_source(tmp_path: Path) -> None:
    """32: it was compacted once; now somebody's `delete` is in force."""
    disk = Disk(tmp_path, cleanup_policy="delete", retention_ms=-1).segment(9 * DAY_MS)
    disk.segment(0).log.cleaner_offset(1)
    found = disk.write().finding("policy-not-compact")
    assert "cleanup.policy is delete (from topic)" in found["text"]
    drift = disk.finding("policy-drift", config=["cleanup.policy=compact"])
    assert "cleanup.policy is delete (from topic), not compact (from option)" in drift["text"]


def test_growth_that_cleaning_cannot_reach_is_told_apart(tmp_path: Path) -> None:
    """34: the cleaner works, most bytes lie where it may not: behind min.compaction.lag.ms."""
    disk = Disk(tmp_path, **COMPACT, min_compaction_lag_ms=5 * DAY_MS).segment(9 * DAY_MS)
    for _ in range(6):
        disk.segment(DAY_MS, DAY_MS, DAY_MS)
    disk.segment(0).log.cleaner_offset(1)
    found = disk.write().finding("compaction-lag")
    verdict = verdict_of(disk.audit())
    assert verdict["cleanBytes"] < verdict["dirtyBytes"]
    assert "dirty" in found["text"]
    assert "clean," in found["text"]
    assert verdict["cleanableAtMs"] == NOW_MS + 4 * DAY_MS


def test_a_dirty_ratio_that_is_never_reached_is_named_with_the_way_out(tmp_path: Path) -> None:
    """33, one of the reasons: much is clean, little is dirty."""
    disk = Disk(tmp_path, **COMPACT)
    for _ in range(5):
        disk.segment(9 * DAY_MS)
    disk.segment(8 * DAY_MS).segment(0).log.cleaner_offset(5)
    found = disk.write().finding("below-dirty-ratio")
    assert "is not above min.cleanable.dirty.ratio 0.5" in found["text"]
    assert "never, if nothing is appended" in found["text"]
    later = Disk(tmp_path / "lag", **COMPACT, max_compaction_lag_ms=20 * DAY_MS)
    for _ in range(5):
        later.segment(9 * DAY_MS)
    later.segment(8 * DAY_MS).segment(0).log.cleaner_offset(5)
    document = later.write().audit()
    assert verdict_of(document)["cleanableAtMs"] == NOW_MS + 12 * DAY_MS + 1


def test_a_moving_replica_and_the_current_one_are_named(tmp_path: Path) -> None:
    """40: while it moves nothing is cleaned."""
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS).segment(0).write()
    future = LogBuilder(tmp_path, "orders-0.805de23a2f0e47fcbbd73e14e4c98aed-future")
    future.segment().batch(("k", "v"), timestamp=NOW_MS)
    future.path.mkdir(parents=True)
    (future.path / f"{0:020d}.log").write_bytes(bytes(future.segments[0].log))
    found = disk.finding("replica-moving")
    assert str(disk.log.path) in found["text"]
    assert "up to offset 1" in found["text"]


def test_an_open_transaction_is_named_with_its_producer_and_the_command(tmp_path: Path) -> None:
    """46: nothing from its first record on is cleaned."""
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS)
    disk.log.batch(("k", "v"), timestamp=NOW_MS - 9 * DAY_MS, producer_id=7, is_transactional=True)
    disk.segment(8 * DAY_MS).segment(0).write()
    found = disk.finding("open-transaction")
    assert found["offset"] == 1
    assert "producer 7, epoch 0, has a transaction open since offset 1" in found["text"]
    assert "find-hanging --topic orders --partition 0`; if it lists this one, `" in found["fix"]
    assert found["fix"].endswith("abort --topic orders --partition 0 --start-offset 1`")
    assert verdict_of(disk.audit())["uncleanableReason"] == "transaction open since offset 1"


def test_markers_that_outweigh_records_are_told(tmp_path: Path) -> None:
    """46: markers are kept as long as anybody may need them."""
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS)
    for _ in range(20):
        disk.log.marker(ControlRecordType.COMMIT, 7, timestamp=NOW_MS - 9 * DAY_MS)
    found = disk.segment(0).write().finding("many-markers")
    assert "are transaction markers" in found["text"]


@pytest.mark.parametrize(
    ("name", "kind"), [("no key", "cleaner-would-fail"), ("no value", "control-record")]
)
def test_a_marker_with_which_a_broker_cannot_go_on_is_named(
    tmp_path: Path, name: str, kind: str
) -> None:
    """The cleaner reads only its key; the loader, after a crash, its value too."""
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS)
    disk.log.raw(VARIANTS[name].batch(1, NOW_MS - 9 * DAY_MS))
    disk.log.next_offset = 2
    disk.segment(0).write()
    found = disk.finding(kind)
    assert "segment 0 @ " in found["text"]
    document = disk.audit()
    assert verdict_of(document)["status"] == "refused"
    assert not findings_of(document, "compaction-due")


def test_a_batch_at_which_the_cleaner_fails_is_named(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **COMPACT).segment(9 * DAY_MS, 9 * DAY_MS).segment(0).write()
    log = disk.log.path / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[8:12] = (2).to_bytes(4, "big")
    log.write_bytes(content)
    found = disk.finding("cleaner-would-fail")
    assert (found["segmentBaseOffset"], found["position"]) == (0, 0)


def test_a_map_too_small_for_a_segments_keys_is_named(tmp_path: Path) -> None:
    disk = Disk(tmp_path, **COMPACT).segment(*[9 * DAY_MS] * 60).segment(0).write()
    properties = tmp_path / "server.properties"
    properties.write_text("log.cleaner.dedupe.buffer.size=1200\n")
    found = disk.finding("map-too-small", server_properties=str(properties))
    assert "has 60 records, the offset map has room for 45 keys" in found["text"]
    assert not findings_of(disk.audit(), "map-too-small")


def test_a_directory_the_cluster_does_not_know_is_a_stray(tmp_path: Path) -> None:
    """56: both topic ids, its bytes, and what may be done."""
    disk = Disk(tmp_path, **COMPACT).segment(0).write()
    other = LogBuilder(tmp_path, "gone-3", topic_id="5L6g3nShT-eMCtK--X86sw")
    other.segment().batch(("k", "v"))
    other.write()
    (found,) = findings_of(disk.audit(), "stray-replica")
    assert (found["topic"], found["partition"]) == ("gone", 3)
    assert (
        "topic id in partition.metadata 5L6g3nShT-eMCtK--X86sw, in the cluster none"
        in found["text"]
    )
    assert "no other directory here has its offsets 0 to 0" in found["fix"]
    anew = LogBuilder(tmp_path, "orders-1", topic_id="5L6g3nShT-eMCtK--X86sw")
    anew.segment().batch(("k", "v"))
    anew.write()
    texts = [f["text"] for f in findings_of(disk.audit(), "stray-replica")]
    assert any("orders-1" in text and "in the cluster 4L6g3nShT-eMCtK" in text for text in texts)
