"""The builder is the ground of other tests: what it writes is held to a broker's own files here."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest

from kafkalog.format import checkpoints
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.meta_properties import parse_meta_properties
from kafkalog.format.offset_index import parse_offset_index
from kafkalog.format.partition_metadata import parse_partition_metadata
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.format.time_index import parse_time_index
from tests.support.log_builder import META, START_MS, TOPIC_ID, BuiltSegment, LogBuilder
from tests.support.producer_states import ProducerStates
from tests.support.reference.batches import parse_batches

SAMPLES = Path(__file__).parents[2] / "data" / "samples"


def name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def test_small_log_has_the_files_a_broker_leaves(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0")
    log.segment().batch(("k1", "v1"), ("k2", None)).batch(("k1", "v3"), codec=4)
    log.segment().batch((None, b""))
    path = log.write()
    assert path == tmp_path / "orders-0"
    assert sorted(p.name for p in path.iterdir()) == [
        name(0, ".index"),
        name(0, ".log"),
        name(0, ".timeindex"),
        name(3, ".index"),
        name(3, ".log"),
        name(3, ".snapshot"),
        name(3, ".timeindex"),
        name(4, ".snapshot"),
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert parse_partition_metadata((path / "partition.metadata").read_bytes()) == TOPIC_ID
    assert (path / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n0 0\n"
    written = [
        record
        for base_offset in (0, 3)
        for _, _, records in parse_batches((path / name(base_offset, ".log")).read_bytes())
        for record in records
    ]
    assert written == log.records
    assert written == [
        Record(0, START_MS, b"k1", b"v1"),
        Record(1, START_MS + 1, b"k2", None),
        Record(2, START_MS + 2, b"k1", b"v3"),
        Record(3, START_MS + 3, None, b""),
    ]


def test_log_dir_files_name_every_partition(tmp_path: Path) -> None:
    LogBuilder(tmp_path, "a-0").batch(("k", "v")).high_watermark(0).cleaner_offset(7).write()
    LogBuilder(tmp_path, "b-c-12").segment(5).batch(("k", "v")).log_start_offset(6).write()

    def entries(file_name: str) -> dict[tuple[str, int], int]:
        return checkpoints.parse_offset_checkpoint((tmp_path / file_name).read_bytes())

    assert entries(checkpoints.HIGH_WATERMARK_FILE) == {("a", 0): 0, ("b-c", 12): 6}
    assert entries(checkpoints.RECOVERY_POINT_FILE) == {("a", 0): 1, ("b-c", 12): 6}
    assert entries(checkpoints.CLEANER_OFFSET_FILE) == {("a", 0): 7}
    assert entries(checkpoints.LOG_START_OFFSET_FILE) == {("b-c", 12): 6}
    assert parse_meta_properties((tmp_path / "meta.properties").read_bytes()) == META
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_unclean_stop_leaves_preallocated_indexes_and_no_last_snapshot(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, index_interval_bytes=0)
    log.segment().batch(("a", "1")).batch(("b", "1")).segment().batch(("a", "2")).torn(30)
    path = log.write(clean_shutdown=False)
    assert (path / name(2, ".index")).stat().st_size == 10485760
    assert (path / name(2, ".timeindex")).stat().st_size == 10485756
    assert (path / name(0, ".timeindex")).stat().st_size == 12
    assert sorted(p.name for p in path.glob("*.snapshot")) == [name(2, ".snapshot")]
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / checkpoints.RECOVERY_POINT_FILE).read_bytes() == b"0\n1\norders 0 2\n"
    data = (path / name(2, ".log")).read_bytes()
    assert len(list(parse_batches(data))) == 1
    assert len(data) == 70 + 30


def test_index_entries_follow_kafkas_rule(tmp_path: Path) -> None:
    # 70-byte batches, an entry whenever more than 139 bytes lie behind the last one.
    log = LogBuilder(tmp_path, index_interval_bytes=139).segment(100)
    for i in range(7):
        log.batch(("k", "v"), timestamp=50 - i if i < 3 else i * 100)
    path = log.write()
    index = parse_offset_index((path / name(100, ".index")).read_bytes(), 100)
    assert list(zip(index.offsets, index.positions, strict=True)) == [
        (102, 140),
        (104, 280),
        (106, 420),
    ]
    times = parse_time_index((path / name(100, ".timeindex")).read_bytes(), 100)
    assert list(zip(times.timestamps, times.offsets, strict=True)) == [
        (50, 100),
        (400, 104),
        (600, 106),
    ]


def test_producer_state_and_aborted_transactions_are_written(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    log.segment().batch(("a", "1"), ("b", "1"), producer_id=7).batch(("a", "2"), producer_id=7)
    log.batch(("x", "1"), producer_id=9, is_transactional=True)
    log.batch(("y", "1"), producer_id=10, is_transactional=True, producer_epoch=4)
    log.segment().marker(ControlRecordType.ABORT, 9, coordinator_epoch=2)
    log.marker(ControlRecordType.COMMIT, 10)
    path = log.write()
    rolled = parse_producer_snapshot((path / name(5, ".snapshot")).read_bytes())
    assert rolled == [
        ProducerEntry(7, 0, 2, 2, 0, START_MS + 2, -1, -1),
        ProducerEntry(9, 0, 0, 3, 0, START_MS + 3, -1, 3),
        ProducerEntry(10, 4, 0, 4, 0, START_MS + 4, -1, 4),
    ]
    closed = parse_producer_snapshot((path / name(7, ".snapshot")).read_bytes())
    assert closed == [
        ProducerEntry(7, 0, 2, 2, 0, START_MS + 2, -1, -1),
        ProducerEntry(9, 0, 0, 3, 0, START_MS + 5, 2, -1),
        ProducerEntry(10, 4, 0, 4, 0, START_MS + 6, 0, -1),
    ]
    # version 0, producer 9, offsets 3 to 5; producer 10's transaction from 4 on is still open.
    assert (path / name(5, ".txnindex")).read_bytes().hex() == (
        "0000" + "0000000000000009" + "0000000000000003" + "0000000000000005" + "0000000000000004"
    )
    assert not (path / name(0, ".txnindex")).exists()


def test_gaps_holes_epochs_and_modification_times(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).segment(10, modified_ms=START_MS)
    log.batch(Record(12, 5, b"k", b"v"), base_offset=11, last_offset=15).epoch(3)
    log.batch(last_offset=20).segment(30).batch(("k", "v"))
    assert log.leader_epochs == [(0, 11), (3, 16)]
    path = log.write()
    assert (path / name(10, ".log")).stat().st_mtime_ns == START_MS * 1_000_000
    headers = [h for _, h, _ in parse_batches((path / name(10, ".log")).read_bytes())]
    assert [(h.base_offset, h.last_offset, h.records_count) for h in headers] == [
        (11, 15, 1),
        (16, 20, 0),
    ]


def test_offsets_that_go_back_are_refused(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path).segment().batch(("k", "v"), ("l", "w"))
    with pytest.raises(ValueError, match="segment 1 is below the next offset 2"):
        log.segment(1)
    with pytest.raises(ValueError, match="batch 1 is below 2"):
        log.append(pack_batch([Record(1, 0)]))
    assert log.next_offset == 2


# -- against a broker's files --------------------------------------------------------------------


def rolled_sample_segments() -> list[Path]:
    """Segments a broker wrote and rolled without a restart between."""
    logs = sorted((SAMPLES / "broker").rglob("*.log"))
    return [a for a, b in itertools.pairwise(logs) if a.parent == b.parent]


def test_indexes_equal_those_of_a_broker() -> None:
    # The interval is a topic's setting, not on disk: one of the three that the samples' maker uses.
    with_entries = 0
    for log in rolled_sample_segments():
        segment = BuiltSegment(int(log.stem))
        segment.batches = [(at, header) for at, header, _ in parse_batches(log.read_bytes())]
        found = log.with_suffix(".index").read_bytes(), log.with_suffix(".timeindex").read_bytes()
        assert found in [segment.packed_indexes(interval) for interval in (4096, 1024, 512)], log
        with_entries += len(found[0]) > 0
    assert with_entries > 15


@pytest.mark.parametrize("topic_partition", ["idempotent-0", "transactions-0"])
def test_producer_state_equals_that_of_a_broker(topic_partition: str) -> None:
    path = SAMPLES / "broker" / topic_partition
    snapshots = path.glob("*.snapshot")
    expected = {int(p.stem): parse_producer_snapshot(p.read_bytes()) for p in snapshots}
    assert len(expected) > 1
    states = ProducerStates()
    next_offset = 0
    for log in sorted(path.glob("*.log")):
        if next_offset > 0:
            assert by_producer(states.entries()) == by_producer(expected.pop(int(log.stem))), log
        data = log.read_bytes()
        aborted = b""
        for at, header, _ in parse_batches(data):
            entry = states.update(header, data[at : at + header.size_in_bytes])
            aborted += b"" if entry is None else struct.pack(">hqqqq", 0, *entry)
            next_offset = header.next_offset
        index = log.with_suffix(".txnindex")
        assert aborted == (index.read_bytes() if index.exists() else b"")
    assert by_producer(states.entries()) == by_producer(expected.pop(next_offset))
    assert expected == {}


def by_producer(entries: list[ProducerEntry]) -> dict[int, ProducerEntry]:
    return {entry.producer_id: entry for entry in entries}
