"""Findings about batches and records, each built for it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import lz4.frame
import pytest

from kafkalog.checking.finding import Finding
from kafkalog.format.checksum import crc32c
from kafkalog.format.compression import compress
from kafkalog.format.constants import MAGIC_VALUE_V0, MAGIC_VALUE_V1, CompressionType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record, pack_records
from kafkalog.format.record_batch import CRC_START, pack_batch
from tests.checking.running import failures, findings
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

ATTRIBUTES, COUNT, MAX_TIMESTAMP, BODY = 21, 57, 35, 61


def with_crc(batch: bytes) -> bytes:
    return batch[:17] + struct.pack(">I", crc32c(batch[CRC_START:])) + batch[CRC_START:]


def patched(batch: bytes, at: int, data: bytes) -> bytes:
    """The batch with other bytes at a place, under a right checksum."""
    return with_crc(batch[:at] + data + batch[at + len(data) :])


def log_with(log_dir: Path, *batches: bytes, topic: str = "orders-0") -> Path:
    """A log of a sound batch, these, and an empty active segment."""
    log = LogBuilder(log_dir, topic).segment().batch(("a", "1"))
    for batch in batches:
        log.raw(batch)
    log.next_offset = 10
    log.segment(10).write(clean_shutdown=False)
    return log.path / "00000000000000000000.log"


def batch_of(*records: Record, **header: Any) -> bytes:
    return pack_batch(records or [Record(1, START_MS, b"k", b"v")], base_offset=1, **header)


def of_log(log: Path) -> list[Finding]:
    """What is said of the `.log` itself; the log builder's indexes know nothing of raw bytes, and
    the settings of the topic nobody knows.
    """
    found = findings(log.parent)
    return [
        f for f in found if f.path == str(log) and f.kind not in ("offset-gap", "segment-overlap")
    ]


RECORDS = tuple(Record(1 + n, START_MS + n, b"k", b"v" * 40) for n in range(4))
SOUND = batch_of(*RECORDS)


@pytest.mark.parametrize("codec", list(CompressionType))
def test_records_are_checked_behind_every_codec(log_dir: Path, codec: CompressionType) -> None:
    """A length that its fields do not use up; the checksum is right."""
    body = bytearray(pack_records(RECORDS, 1, START_MS))
    body[4] += 2  # the length of a key
    header = bytearray(batch_of(*RECORDS, codec=codec)[:BODY])
    payload = compress(codec, bytes(body))
    header[8:12] = struct.pack(">i", BODY - 12 + len(payload))
    log = log_with(log_dir, with_crc(bytes(header) + payload))
    (found,) = of_log(log)
    assert (found.kind, found.offset) == ("records-unreadable", 1)
    assert found.position is not None
    assert "record 0 of 4" in found.text


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        (SOUND[:-1] + b"\x55", "crc-mismatch"),
        (patched(SOUND, COUNT, struct.pack(">i", 3)), "records-unreadable"),
        (patched(SOUND, COUNT, struct.pack(">i", 9)), "records-unreadable"),
        (patched(SOUND, ATTRIBUTES, b"\0\x05"), "records-unreadable"),
        (patched(SOUND, ATTRIBUTES, b"\0\x04"), "records-unreadable"),
        (patched(SOUND, MAX_TIMESTAMP, struct.pack(">q", START_MS)), "max-timestamp"),
        (patched(SOUND, MAX_TIMESTAMP, struct.pack(">q", START_MS + 9)), "max-timestamp"),
        (patched(SOUND, 23, struct.pack(">i", 2)), "record-offset-order"),
        (patched(SOUND, ATTRIBUTES, b"\0\x10"), "producer-fields"),
        (batch_of(producer_id=7, producer_epoch=-1), "producer-fields"),
        (SOUND[:8] + struct.pack(">i", 3) + SOUND[12:], "batch-unreadable"),
        (SOUND[:16] + b"\x03" + SOUND[17:], "batch-unreadable"),
        (SOUND[:3] + b"\x01" + SOUND[4:], "offset-overflow"),
        (bytes(8) + SOUND[8:], "offset-order"),
        (SOUND + SOUND, "offset-order"),
        (SOUND[:-9], "torn-tail"),
        (bytes(100), "zero-tail"),
    ],
)
def test_a_bad_batch_is_found(log_dir: Path, batch: bytes, kind: str) -> None:
    log = log_with(log_dir, batch)
    found = of_log(log)
    assert {f.kind for f in found} == {kind}
    assert all(f.severity.is_failure and f.position is not None for f in found)


@pytest.mark.parametrize(
    "batch",
    [
        SOUND,
        batch_of(*RECORDS, codec=CompressionType.LZ4),
        batch_of(*RECORDS[1:3], last_offset=8),
        batch_of(last_offset=4),
        batch_of(*(Record(1 + n, -1, None, None) for n in range(3))),
        # what a broker makes of negative times
        patched(batch_of(Record(1, -2000, b"k", b"v")), MAX_TIMESTAMP, struct.pack(">q", -1)),
        batch_of(Record(1, -2000, b"k", b"v")),
    ],
)
def test_a_sound_batch_is_none(log_dir: Path, batch: bytes) -> None:
    assert of_log(log_with(log_dir, batch)) == []


def test_unknown_attributes_are_information(log_dir: Path) -> None:
    log_with(log_dir, patched(SOUND, ATTRIBUTES, b"\x01\0"))
    found = [f for f in findings(log_dir) if f.kind == "unknown-attributes"]
    assert [f.severity.is_failure for f in found] == [False]


def test_the_walk_goes_on_behind_a_bad_batch(log_dir: Path) -> None:
    """Two batches that cannot be decoded, one with a wrong checksum, sound ones between them."""
    batches, offset = [], 1
    for damage in ("codec", None, "crc", None, "count"):
        batch = pack_batch([Record(offset, START_MS, b"k", b"v")], base_offset=offset)
        if damage == "codec":
            batch = patched(batch, ATTRIBUTES, b"\0\x04")
        elif damage == "crc":
            batch = batch[:-1] + b"\x33"
        elif damage == "count":
            batch = patched(batch, COUNT, struct.pack(">i", 1000))
        batches.append(batch)
        offset += 1
    log = log_with(log_dir, *batches)
    found = [(f.kind, f.offset) for f in of_log(log)]
    assert sorted(found, key=lambda each: each[1] or 0) == [
        ("records-unreadable", 1),
        ("crc-mismatch", 3),
        ("records-unreadable", 5),
    ]


def test_much_of_one_kind_is_counted_not_listed(log_dir: Path) -> None:
    bad = [
        pack_batch([Record(n, START_MS, b"k", b"v")], base_offset=n)[:-1] + b"\x33"
        for n in range(1, 101)
    ]
    log = LogBuilder(log_dir).segment().batch(("a", "1"))
    for batch in bad:
        log.raw(batch)
    log.next_offset = 101
    log.write()
    found = [f for f in findings(log_dir) if f.kind == "crc-mismatch"]
    assert len(found) == 16
    assert sum(f.more for f in found) == 84


@pytest.mark.parametrize("magic", [MAGIC_VALUE_V0, MAGIC_VALUE_V1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP, CompressionType.LZ4])
def test_sound_legacy_batches_give_nothing(
    log_dir: Path, magic: int, codec: CompressionType
) -> None:
    assert of_log(log_with(log_dir, pack_legacy_entries(RECORDS, magic, codec=codec))) == []


def test_a_wrong_crc_of_a_message_in_a_wrapper_is_found(log_dir: Path) -> None:
    inner = pack_legacy_entries(RECORDS, MAGIC_VALUE_V1)
    wrong = inner[:12] + b"\1\2\3\4" + inner[16:]
    value = compress(CompressionType.GZIP, wrong, magic=MAGIC_VALUE_V1)
    wrapper = pack_legacy_message(
        Record(4, START_MS + 3, None, value), MAGIC_VALUE_V1, codec=CompressionType.GZIP
    )
    log = log_with(log_dir, wrapper)
    (found,) = of_log(log)
    assert (found.kind, found.text) == ("inner-crc", "1 of the messages inside")


@pytest.mark.parametrize("codec", list(CompressionType))
def test_what_is_wrong_among_sound_batches_is_said_of_each_alone(
    log_dir: Path, codec: CompressionType
) -> None:
    """All of one codec: a record that its fields do not use up, a cut payload, another time."""
    log = LogBuilder(log_dir, "orders-0").segment()
    for n in range(6):
        record = Record(10 * n, START_MS, b"k", b"v" * 40)
        batch = pack_batch([record], codec=codec)
        if n in (1, 3):
            body = bytearray(pack_records([record], 10 * n, START_MS))
            body[4] += 2  # the length of the key
            payload = compress(codec, bytes(body)) if n == 1 else batch[BODY:-9]
            size = struct.pack(">i", BODY - 12 + len(payload))
            batch = with_crc(batch[:8] + size + batch[12:BODY] + payload)
        if n == 4:
            batch = patched(batch, MAX_TIMESTAMP, struct.pack(">q", START_MS + 1))
        log.raw(batch)
    log.next_offset = 60
    log.segment(60).write(clean_shutdown=False)
    found = of_log(log.path / "00000000000000000000.log")
    assert [(f.kind, f.offset) for f in found] == [
        ("records-unreadable", 10), ("records-unreadable", 30), ("max-timestamp", 40),
    ]  # fmt: skip


@pytest.mark.parametrize("is_right", [True, False])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_content_checksum_of_an_lz4_frame_is_checked(
    log_dir: Path, magic: int, is_right: bool
) -> None:
    plain = pack_records(RECORDS, 1, START_MS)
    if magic < 2:
        moved = [Record(r.offset - magic, r.timestamp, r.key, r.value) for r in RECORDS]
        plain = pack_legacy_entries(moved, magic)
    frame = lz4.frame.compress(
        plain, block_linked=False, content_checksum=True, store_size=False,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
    )  # fmt: skip
    if not is_right:
        frame = frame[:-2] + bytes((frame[-2] ^ 1, frame[-1]))
    if magic < 2:
        batch = pack_legacy_message(
            Record(4, START_MS + 3, None, frame), magic, codec=CompressionType.LZ4
        )
    else:
        header = bytearray(batch_of(*RECORDS, codec=CompressionType.LZ4)[:BODY])
        header[8:12] = struct.pack(">i", BODY - 12 + len(frame))
        batch = with_crc(bytes(header) + frame)
    log = log_with(log_dir, batch)
    assert {f.kind for f in of_log(log)} == (set() if is_right else {"lz4-content-checksum"})


# -- producers -------------------------------------------------------------------------------------


def test_a_sequence_that_comes_again_is_found_in_and_between_segments(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "1"), ("b", "2"), producer_id=7).batch(("a", "3"), producer_id=7)
    log.batch(("a", "3"), producer_id=7, base_sequence=2)
    log.segment().batch(("a", "3"), producer_id=7, base_sequence=1).write()
    found = [f for f in findings(log_dir) if f.severity.is_failure]
    assert [(f.kind, f.offset) for f in found] == [("sequence-order", 3), ("sequence-order", 4)]


def test_sequences_may_jump_wrap_and_begin_again(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    log.batch(("a", "1"), producer_id=7).batch(("a", "1"), producer_id=7, base_sequence=5)
    for sequence in (2**29, 2**30, 2**30 + 2**29):
        log.batch(("a", "1"), producer_id=7, base_sequence=sequence)
    log.batch(("a", "1"), producer_id=7, base_sequence=2**31 - 1)
    log.batch(("a", "1"), producer_id=7, base_sequence=0)
    log.batch(("a", "1"), producer_id=7, base_sequence=0)
    log.batch(("a", "1"), producer_id=7, producer_epoch=1, base_sequence=0).write()
    assert failures(log_dir) == set()


def test_an_epoch_that_falls_is_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=7, producer_epoch=3)
    log.batch(("a", "1"), producer_id=7, producer_epoch=2, base_sequence=9).write()
    assert "producer-epoch-order" in failures(log_dir)


def test_a_control_batch_without_a_control_record_is_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=7, is_transactional=True)
    log.marker(ControlRecordType.COMMIT, 7)
    batch = pack_batch(
        [Record(2, START_MS, b"k", b"v")], base_offset=2, producer_id=7, producer_epoch=0,
        is_transactional=True, is_control=True,
    )  # fmt: skip
    log.raw(batch)
    log.next_offset = 3
    log.write()
    assert failures(log_dir) == {"control-record"}


def test_a_transaction_over_segments_needs_its_entry_where_its_marker_is(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), producer_id=7, is_transactional=True)
    log.batch(("a", "1"), producer_id=8, is_transactional=True)
    log.segment().batch(("b", "1"), producer_id=7, is_transactional=True)
    log.marker(ControlRecordType.COMMIT, 8)
    log.segment().marker(ControlRecordType.ABORT, 7).write()
    assert failures(log_dir) == set()
    (index,) = log.path.glob("*.txnindex")
    index.unlink()
    (found,) = findings(log_dir)
    assert (found.kind, found.offset) == ("transaction-index-missing", 0)
    assert found.path == str(index)


def test_a_transaction_whose_records_lie_in_a_middle_segment_needs_its_entry(log_dir: Path) -> None:
    """Compaction left its first batch empty, and the marker's segment has no batch of it."""
    log = LogBuilder(log_dir).segment().batch(producer_id=7, is_transactional=True)
    log.segment().batch(("b", "1"), producer_id=7, is_transactional=True)
    log.segment().marker(ControlRecordType.ABORT, 7).write()
    (index,) = log.path.glob("*.txnindex")
    index.unlink()
    assert ("transaction-index-missing", 0) in {(f.kind, f.offset) for f in findings(log_dir)}


# -- logs ------------------------------------------------------------------------------------------


def test_a_segment_of_more_than_two_gigabytes_is_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"))
    log.segment().batch(("b", "1")).write()
    path = log.path / "00000000000000000000.log"
    os.truncate(path, 2**31 + 5)  # sparse
    assert failures(log_dir) == {"segment-too-large", "zero-tail"}


def test_a_long_stretch_without_index_entries_is_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir, index_interval_bytes=2**30).segment()
    for _ in range(9):
        log.batch((None, b"v" * 2**21))
    log.segment().write()
    assert failures(log_dir) == {"offset-index-short"}


def test_leader_epochs_that_fall_are_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir).epoch(5).segment().batch(("a", "1")).epoch(4).batch(("a", "1"))
    log.epoch(6).segment().batch(("a", "1")).epoch(3).segment().batch(("a", "1")).write()
    kinds = [f.kind for f in findings(log_dir)]
    assert kinds.count("leader-epoch-order") == 2


def test_an_overlapping_segment_is_found(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment().batch(("a", "1"), ("b", "1"), ("c", "1"))
    log.segment().batch(("a", "1")).write()
    for path in log.path.glob(f"{3:020d}.*"):
        if path.suffix != ".snapshot":
            path.rename(path.with_name(f"{1:020d}{path.suffix}"))
    assert "segment-overlap" in failures(log_dir)


@pytest.mark.parametrize("entry", [0, 1, 2])
@pytest.mark.parametrize("change", [(0, -2), (4, 1), (4, -1), (0, 1 << 20), (4, 1 << 20)])
def test_one_bad_index_entry_is_one_finding(
    log_dir: Path, entry: int, change: tuple[int, int]
) -> None:
    """Whichever rules it breaks: its offset or its position is too low or too high."""
    log = LogBuilder(log_dir, "orders-0", index_interval_bytes=10).segment()
    for _ in range(4):
        log.batch(("k", "v" * 50), ("k", "v" * 50))
    log.write()
    at, by = change
    index = log.path / f"{0:020d}.index"
    content = bytearray(index.read_bytes())
    start = 8 * entry + at
    (value,) = struct.unpack(">i", content[start : start + 4])
    content[start : start + 4] = struct.pack(">i", value + by)
    index.write_bytes(content)
    assert [f.kind for f in findings(log_dir)] == ["offset-index-disagrees"]


@pytest.mark.parametrize("segments", [1, 2])
def test_a_producer_that_leaves_its_transaction_without_an_end_is_found(
    tmp_path: Path, segments: int
) -> None:
    """Kafka's loader refuses the batch when it replays the log."""
    log = LogBuilder(tmp_path, "orders-0").segment()
    log.batch(("a", "1"), producer_id=7, is_transactional=True)
    log.batch(("a", "1"), producer_id=8, is_transactional=True)
    log.marker(ControlRecordType.COMMIT, 8)
    if segments == 2:
        log.segment()
    log.batch(("a", "2"), producer_id=8).batch(("a", "2"), producer_id=7).write()
    found = [(f.offset, f.text) for f in findings(tmp_path) if f.kind == "transaction-left"]
    said = "producer 7 wrote outside of the transaction that it has open since offset 0"
    assert found == [(4, said)]
