"""Magic 0 and 1 through every view, alone and between magic 2 batches."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import kafkalog
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.segment_facts import scan_segment_facts
from kafkalog.log.topic_partition import TopicPartition
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries

MAGIC_0 = [Record(o, -1, b"k%d" % o, b"v" * o) for o in (0, 1, 3)]
MAGIC_1 = [Record(o, START_MS + o, b"k", None if o == 6 else b"") for o in (4, 6, 7)]
APPENDED = [Record(o, START_MS, None, b"x") for o in (9, 10)]
MAGIC_2 = [Record(o, START_MS + o, b"k", b"v", ((b"h", b"1"),)) for o in (11, 12)]
CODECS = list(CompressionType)[:4]


def write(log_dir: Path, codec: CompressionType) -> Path:
    log = LogBuilder(log_dir)
    log.raw(pack_legacy_entries(MAGIC_0, 0, codec=codec))
    log.raw(pack_legacy_entries(MAGIC_1, 1, codec=codec))
    append_time = TimestampType.LOG_APPEND_TIME
    log.raw(pack_legacy_entries(APPENDED, 1, codec=codec, timestamp_type=append_time))
    log.next_offset = 11
    log.batch(*MAGIC_2, codec=codec)
    log.raw(pack_legacy_entries([Record(13, -1, b"last", b"1")], 0, codec=codec))
    return log.write()


def rows(path: Path, *columns: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        kafkalog.read_records(path, columns=list(columns), **options).read_all().to_pylist()
    )
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_records_have_the_offsets_and_times_of_their_magic(
    log_dir: Path, codec: CompressionType
) -> None:
    columns = ("offset", "timestampMs", "key", "value", "timestampType", "magic", "codec")
    found = rows(write(log_dir, codec), *columns, "leaderEpoch", "producerId", "batchBaseOffset")
    records = [*MAGIC_0, *MAGIC_1, *APPENDED, *MAGIC_2, Record(13, -1, b"last", b"1")]
    assert [(x["offset"], x["timestampMs"], x["key"], x["value"]) for x in found] == [
        (x.offset, x.timestamp, x.key, x.value) for x in records
    ]
    assert [x["timestampType"] for x in found] == [-1] * 3 + [0] * 3 + [1] * 2 + [0] * 2 + [-1]
    assert [x["magic"] for x in found] == [0] * 3 + [1] * 5 + [2] * 2 + [0]
    assert {x["codec"] for x in found} == {codec.name.lower()}
    assert {x["producerId"] for x in found} == {None}
    bases = {0, 4, 9, 11, 13} if codec else {0, 1, 3, 4, 6, 7, 9, 10, 11, 13}
    assert {x["batchBaseOffset"] for x in found} == bases


@pytest.mark.parametrize("codec", CODECS)
def test_any_range_of_offsets_can_be_read(log_dir: Path, codec: CompressionType) -> None:
    path = write(log_dir, codec)
    tp = TopicPartition("orders", 0)
    every = [x["offset"] for x in rows(path, "offset")]
    for start in range(15):
        for end in range(start + 1, 15):
            found = rows(path, "offset", starting_offsets={tp: start}, ending_offsets={tp: end})
            assert [x["offset"] for x in found] == [o for o in every if start <= o < end]


def test_a_wrapper_is_one_row_that_tells_its_last_offset(log_dir: Path) -> None:
    path = write(log_dir, CompressionType.GZIP)
    found = kafkalog.read_batches(path, verify_checksums=True).to_pylist()
    assert [x["magic"] for x in found] == [0, 1, 1, 2, 0]
    assert [(x["baseOffset"], x["lastOffset"]) for x in found[:3]] == [(3, 3), (7, 7), (10, 10)]
    assert [x["recordsCount"] for x in found] == [-1, -1, -1, 2, -1]
    assert [x["maxTimestampMs"] for x in found[:3]] == [-1, START_MS + 7, START_MS]
    assert all(x["isValid"] for x in found)


def test_the_facts_of_a_segment_name_its_magics(log_dir: Path) -> None:
    write(log_dir, CompressionType.NONE)
    (partition,) = open_log_dir(log_dir).partitions
    facts = scan_segment_facts(partition.segments[0])
    assert (facts.magics, facts.records_count, facts.last_offset) == ((0, 1, 2), 11, 13)
    assert (facts.min_timestamp_ms, facts.max_timestamp_ms) == (START_MS, START_MS + 12)
    assert (facts.corrupt, partition.log_end_offset) == (None, 14)


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrong_crc_leaves_out_that_entry_alone(log_dir: Path, codec: CompressionType) -> None:
    path = write(log_dir, codec)
    file = path / f"{0:020}.log"
    data = bytearray(file.read_bytes())
    data[15] ^= 1  # the CRC of the first entry
    file.write_bytes(bytes(data))
    with pytest.raises(CorruptRecordError, match="checksum"):
        rows(path, "offset")
    dropped = [x["offset"] for x in rows(path, "offset", mode="DROPMALFORMED")]
    gone = len(MAGIC_0) if codec else 1
    every = [x.offset for x in (*MAGIC_0, *MAGIC_1, *APPENDED, *MAGIC_2)]
    assert dropped == [*every[gone:], 13]
    assert len(rows(path, "offset", verify_checksums=False)) == 11


def test_a_wrapper_that_cannot_be_opened_is_a_row_with_its_place(log_dir: Path) -> None:
    log = LogBuilder(log_dir).raw(pack_legacy_entries(MAGIC_0, 0))
    position = len(log.segments[0].log)
    log.raw(pack_legacy_message(Record(4, 5, None, None), 1, codec=CompressionType.GZIP))
    log.next_offset = 5
    path = log.batch(("a", "1")).write()
    found = rows(path, "offset", "position", mode="PERMISSIVE")
    assert [x["offset"] for x in found] == [0, 1, 3, None, 5]
    assert (found[3]["position"], "null value" in found[3]["error"]) == (position, True)


def test_many_entries_of_all_kinds_are_read_in_order(log_dir: Path) -> None:
    rnd = random.Random(5)
    log, expected = LogBuilder(log_dir), list[tuple[int, bytes | None]]()
    for _ in range(3000):
        records = [
            Record(log.next_offset + i, START_MS, b"k", rnd.randbytes(rnd.randint(0, 40)))
            for i in range(rnd.randint(1, 4))
        ]
        expected += [(record.offset, record.value) for record in records]
        codec = rnd.choice(CODECS)
        if rnd.random() < 0.3:
            log.batch(*records, codec=codec)
        else:
            log.raw(pack_legacy_entries(records, rnd.choice((0, 1)), codec=codec))
            log.next_offset += len(records)
    found = rows(log.write(), "offset", "value")
    assert [(x["offset"], x["value"]) for x in found] == expected
