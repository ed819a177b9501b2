"""The one reading path against the plain-Python codec, and what each mode makes of damage."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafkalog
from kafkalog.columns.schemas import RECORDS
from kafkalog.errors import (
    CorruptRecordError,
    InvalidConfigError,
    KafkaLogError,
    LogChangedError,
    UnsupportedCompressionTypeError,
    UnsupportedMagicError,
)
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import HEADER, field_position, with_crc
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.segment_reader import read_record_splits
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.views import select_columns
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.packing import pack_legacy_entries
from tests.support.reference.batches import parse_batches

ALL_COLUMNS = [column.name for column in RECORDS]
CODECS = list(CompressionType)


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    table = kafkalog.read_records(path, **options).read_all()
    table.validate(full=True)
    result: list[dict[str, Any]] = table.to_pylist()
    return result


def offsets(path: Path, **options: Any) -> list[int]:
    return [row["offset"] for row in rows(path, columns=["offset"], **options)]


def reference(path: Path) -> list[tuple[Any, ...]]:
    """(offset, timestamp, key, value, headers) of all data records, read by the plain codec."""
    found = []
    for log in sorted(path.glob("*.log")):
        for _, header, records in parse_batches(log.read_bytes()):
            if not header.is_control:
                found += [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]
    return found


def as_reference(row: dict[str, Any]) -> tuple[Any, ...]:
    headers = tuple((h["key"].encode(), h["value"]) for h in row["headers"] or ())
    return row["offset"], row["timestampMs"], row["key"], row["value"], headers


def damage(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(bytes(content))


texts = st.none() | st.binary(max_size=30)
headers = st.lists(st.tuples(st.text(max_size=4).map(str.encode), texts), max_size=3).map(tuple)
batches = st.lists(
    st.tuples(
        st.lists(st.tuples(texts, texts, headers), max_size=6),
        st.sampled_from(CODECS),
        st.sampled_from([TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME]),
    ),
    max_size=6,
)


@settings(max_examples=60)
@given(batches=batches, segments=st.integers(1, 2))
def test_records_equal_the_plain_codecs(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Any], segments: int
) -> None:
    log = LogBuilder(tmp_path_factory.mktemp("log"))
    for _ in range(segments):
        log.segment()
        for records, codec, timestamp_type in batches:
            log.batch(*records, codec=codec, timestamp_type=timestamp_type)
    path = log.write()
    found = rows(path, columns=["offset", "timestampMs", "key", "value", "headers"])
    assert [as_reference(row) for row in found] == reference(path)


def test_every_column_of_a_record(log_dir: Path) -> None:
    path = (
        LogBuilder(log_dir, "orders-3")
        .epoch(4)
        .batch(("a", "1"), ("b", None), producer_id=7, base_sequence=2**31 - 1)
        .batch(("c", ""), codec=CompressionType.ZSTD, delete_horizon_ms=START_MS + 9)
        .write()
    )
    first, second, third = rows(path, columns=ALL_COLUMNS)
    log_path = str(path / f"{0:020}.log")
    size = HEADER.itemsize + 9 + 8
    assert {name: first[name] for name in ALL_COLUMNS if name != "timestamp"} == {
        "key": b"a",
        "value": b"1",
        "topic": "orders",
        "partition": 3,
        "offset": 0,
        "timestampType": 0,
        "headers": None,
        "timestampMs": START_MS,
        "leaderEpoch": 4,
        "producerId": 7,
        "producerEpoch": 0,
        "sequence": 2**31 - 1,
        "isTransactional": False,
        "isControl": False,
        "controlType": None,
        "transactionState": None,
        "codec": "none",
        "magic": 2,
        "deleteHorizon": None,
        "batchBaseOffset": 0,
        "segmentBaseOffset": 0,
        "position": 0,
        "keySize": 1,
        "valueSize": 1,
        "path": log_path,
    }
    assert first["timestamp"].timestamp() * 1000 == START_MS
    assert (second["value"], second["valueSize"], second["sequence"]) == (None, None, 0)
    assert (third["value"], third["valueSize"], third["codec"]) == (b"", 0, "zstd")
    assert (third["producerId"], third["producerEpoch"], third["sequence"]) == (None, None, None)
    assert third["deleteHorizon"].timestamp() * 1000 == START_MS + 9
    assert third["timestampMs"] == START_MS + 2
    assert (third["batchBaseOffset"], third["position"]) == (2, size)


def test_control_records_come_only_on_request(log_dir: Path) -> None:
    path = (
        LogBuilder(log_dir)
        .batch(("a", "1"), producer_id=7, is_transactional=True)
        .marker(ControlRecordType.COMMIT, 7)
        .batch(("b", "2"))
        .write()
    )
    assert offsets(path) == [0, 2]
    found = rows(path, columns=["isControl", "controlType"], include_control=True)
    assert [row["controlType"] for row in found] == [None, "COMMIT", None]
    assert [row["isControl"] for row in found] == [False, True, False]


@pytest.mark.parametrize("torn", [0, 1, 17, 18, 60, 61, 100])
def test_torn_tail_is_the_end_of_the_log(log_dir: Path, torn: int) -> None:
    path = LogBuilder(log_dir).batch(("a", "1")).torn(torn).write(clean_shutdown=False)
    assert offsets(path) == [0]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
def test_flipped_bit_does_what_the_mode_says(log_dir: Path, codec: int, mode: str) -> None:
    log = LogBuilder(log_dir)
    for i in range(5):
        log.batch((f"k{i}", "v" * 50), (f"l{i}", None), codec=codec)
    path = log.write()
    file = path / f"{0:020}.log"
    position = log.segments[0].batches[2][0]
    damage(file, position + HEADER.itemsize + 3, b"\xee")
    if mode == "FAILFAST":
        with pytest.raises(CorruptRecordError) as caught:
            offsets(path)
        assert (caught.value.path, caught.value.position) == (str(file), position)
        assert caught.value.offset == 4
    elif mode == "DROPMALFORMED":
        assert offsets(path, mode=mode) == [0, 1, 2, 3, 6, 7, 8, 9]
    else:
        names = ["offset", "key", "batchBaseOffset", "position", "topic", "error"]
        found = rows(path, columns=names, mode=mode)
        assert [row["offset"] for row in found] == [0, 1, 2, 3, None, 6, 7, 8, 9]
        bad = found[4]
        assert "checksum" in bad.pop("error")
        assert bad == {
            "offset": None,
            "key": None,
            "batchBaseOffset": 4,
            "position": position,
            "topic": "orders",
        }


def test_many_bad_batches_are_passed_in_order(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for i in range(300):
        log.batch((f"k{i}", "v"))
    path = log.write()
    file = path / f"{0:020}.log"
    bad = [i for i in range(300) if i % 7 == 3 or 100 <= i < 180]
    for i in bad:
        damage(file, log.segments[0].batches[i][0] + field_position("crc"), b"\0\0\0\0")
    found = rows(path, columns=["offset", "batchBaseOffset"], mode="PERMISSIVE")
    assert [row["batchBaseOffset"] for row in found] == list(range(300))
    assert [row["batchBaseOffset"] for row in found if row["error"]] == bad
    good = [i for i in range(300) if i not in bad]
    assert offsets(path, mode="DROPMALFORMED") == good


# By how much a length is wrong, or what it is instead: inside the file, past its end, none at all.
WRONG_LENGTHS = ["+60", "-20", "-1", "+1", "both", -5, 0, 3, 2**24, 2**31 - 1]


def with_wrong_length(log: LogBuilder, path: Path, number: int, length: str | int) -> int:
    """Set the length of a batch of the first segment; the batch's size."""
    batches = log.segments[0].batches
    start, header = batches[number]
    if length == "both":  # exactly over the next batch
        length = f"+{batches[number + 1][1].size_in_bytes}"
    if isinstance(length, str):
        length = header.size_in_bytes - 12 + int(length)
    damage(path / f"{0:020}.log", start + 8, struct.pack(">i", length))
    return header.size_in_bytes


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("length", WRONG_LENGTHS)
def test_a_wrong_length_costs_its_own_batch_and_no_more(
    log_dir: Path, length: str | int, is_closed: bool
) -> None:
    log = LogBuilder(log_dir)
    for i in range(6):
        log.batch((f"k{i}", "v" * 30))
    if is_closed:
        log.segment().batch(("k6", "v"))
    path = log.write()
    start = log.segments[0].batches[2][0]
    size = with_wrong_length(log, path, 2, length)
    file = path / f"{0:020}.log"
    left = [n for n in range(log.next_offset) if n != 2]
    with pytest.raises(CorruptRecordError) as caught:
        offsets(path)
    assert (caught.value.path, caught.value.position, caught.value.offset) == (str(file), start, 2)
    assert offsets(path, mode="DROPMALFORMED") == left
    names = ["offset", "position", "error", "errorBytes", "errorLength"]
    found = rows(path, columns=names, mode="PERMISSIVE")
    assert [row["offset"] for row in found] == [0, 1, None, *left[2:]]
    bad = found[2]
    assert (bad["position"], bad["errorLength"]) == (start, size)
    assert bad["errorBytes"] == file.read_bytes()[start : start + size]
    # without checksums what the length claims is decoded; nothing else is lost
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        loose = rows(path, columns=["offset"], mode=mode, verify_checksums=False)
        kept = [row["offset"] for row in loose if row["offset"] is not None]
        assert [n for n in kept if n != 2] == (left if length != "both" else [0, 1, *left[3:]])
    headers = kafkalog.read_batches(path, mode="PERMISSIVE", columns=["baseOffset", "position"])
    behind = left if length != "both" else [0, 1, *left[3:]]
    assert {*behind} <= {*headers["baseOffset"].to_pylist()}


@pytest.mark.parametrize("kept", [1, 17, 18, 60, 61, 80])
def test_a_cut_in_a_closed_segment_is_damage(log_dir: Path, kept: int) -> None:
    """In the active one it is how a log ends."""
    log = LogBuilder(log_dir)
    for i in range(3):
        log.batch((f"k{i}", "v" * 30))
    start = log.segments[0].batches[2][0]
    path = log.segment().batch(("last", "v")).write()
    with (path / f"{0:020}.log").open("r+b") as file:
        file.truncate(start + kept)
    with pytest.raises(CorruptRecordError, match="segment") as caught:
        offsets(path)
    assert (caught.value.position, caught.value.offset) == (start, 2)
    found = rows(path, columns=["offset", "position", "error", "errorLength"], mode="PERMISSIVE")
    assert [row["offset"] for row in found] == [0, 1, None, 3]
    assert (found[2]["position"], found[2]["errorLength"]) == (start, kept)
    assert offsets(path, mode="DROPMALFORMED") == [0, 1, 3]
    # read alone it is still a closed segment
    with pytest.raises(CorruptRecordError, match="segment"):
        offsets(path / f"{0:020}.log")
    assert offsets(path / f"{3:020}.log") == [3]


@pytest.mark.parametrize("zeros", [1, 17, 61, 5000])
@pytest.mark.parametrize("what", ["active", "closed", "closed and nothing lost", "hole"])
def test_zeros_are_preallocation_only_where_nothing_is_lost(
    log_dir: Path, what: str, zeros: int
) -> None:
    log = LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2")).raw(bytes(zeros))
    if what == "hole":
        log.batch(("c", "3"))
    elif what != "active":
        log.segment(5 if what == "closed" else None).batch(("c", "3"))
    path = log.write(clean_shutdown=what != "active")
    good = [0, 1] if what == "active" else [0, 1, 5 if what == "closed" else 2]
    is_damage = what in ("closed", "hole")
    if is_damage:
        with pytest.raises(CorruptRecordError):
            offsets(path)
    else:
        assert offsets(path) == good
    found = rows(path, columns=["offset"], mode="PERMISSIVE")
    assert [row["offset"] for row in found] == ([*good[:2], None, good[2]] if is_damage else good)
    assert offsets(path, mode="DROPMALFORMED") == good


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("length", [60, -3, 2**24, 0, -1])
def test_a_wrong_length_of_a_legacy_entry(
    log_dir: Path, magic: int, codec: int, length: int
) -> None:
    entries = [
        pack_legacy_entries([Record(n, 5, b"key", b"value" * 9)], magic=magic, codec=codec)
        for n in range(5)
    ]
    path = log_dir / "orders-0"
    path.mkdir()
    starts = [sum(map(len, entries[:n])) for n in range(5)]
    data = bytearray(b"".join(entries))
    claimed = length if length in (2**24, 0) else len(entries[1]) - 12 + length
    struct.pack_into(">i", data, starts[1] + 8, claimed)
    (path / f"{0:020}.log").write_bytes(data)
    with pytest.raises(CorruptRecordError) as caught:
        offsets(path)
    assert caught.value.position == starts[1]
    assert offsets(path, mode="DROPMALFORMED") == [0, 2, 3, 4]


def test_the_bytes_of_a_bad_batch_can_be_put_aside(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2")).batch(("c", "3"))
    path = log.write()
    file = path / f"{0:020}.log"
    start, header = log.segments[0].batches[1]
    damage(file, start + field_position("crc"), b"\0\0\0\0")
    found = rows(path, columns=["offset", "errorLength", "errorBytes"], mode="PERMISSIVE")
    assert [row["offset"] for row in found] == [0, None, 2]
    assert found[1]["errorBytes"] == file.read_bytes()[start : start + header.size_in_bytes]
    assert found[1]["errorLength"] == header.size_in_bytes
    assert (found[0]["errorBytes"], found[0]["errorLength"]) == (None, None)
    with pytest.raises(InvalidConfigError, match="errorBytes"):
        rows(path, columns=["offset", "errorBytes"])


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_bad_record_without_checksums_loses_its_batch_only(log_dir: Path, mode: str) -> None:
    log = LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2")).batch(("c", "3"))
    path = log.write()
    # the record's length says more than there is
    damage(path / f"{0:020}.log", log.segments[0].batches[1][0] + HEADER.itemsize, b"\x7e")
    found = rows(path, columns=["offset"], mode=mode, verify_checksums=False)
    kept = [row["offset"] for row in found if row["offset"] is not None]
    assert kept == [0, 2]
    assert len(found) == (3 if mode == "PERMISSIVE" else 2)


@pytest.mark.parametrize("base_offset", [-1, 0, 1, 5, 1000, 2**40])
def test_batch_whose_base_offset_was_damaged_is_not_passed_over(
    log_dir: Path, base_offset: int
) -> None:
    log = LogBuilder(log_dir)
    for i in range(4):
        log.batch((f"k{i}", "v"), ("l", "w"))
    path = log.write()
    file = path / f"{0:020}.log"
    positions = [position for position, _ in log.segments[0].batches]
    damage(file, positions[1], struct.pack(">q", base_offset))
    # one that is too high, and that the segment may have, shows at the batch behind it
    shown = 2 if base_offset in (5, 1000) else 1
    with pytest.raises(CorruptRecordError, match="does not lie behind") as caught:
        offsets(path)
    assert (caught.value.path, caught.value.position) == (str(file), positions[shown])
    found = rows(path, columns=["offset", "position"], mode="PERMISSIVE")
    assert [row["position"] for row in found if row["error"]] == [positions[1]]
    assert [row["offset"] for row in found] == [0, 1, None, 4, 5, 6, 7]
    assert offsets(path, mode="DROPMALFORMED") == [0, 1, 4, 5, 6, 7]


def test_swapped_batches_are_all_read_where_the_read_goes_on(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for i in range(5):
        log.batch((f"k{i}", "v" * i), ("l", "w"))
    path = log.write()
    file = path / f"{0:020}.log"
    content = file.read_bytes()
    edges = [position for position, _ in log.segments[0].batches] + [len(content)]
    parts = [content[start:end] for start, end in pairwise(edges)]
    file.write_bytes(b"".join(parts[n] for n in (0, 2, 1, 3, 4)))
    with pytest.raises(CorruptRecordError, match="does not lie behind"):
        offsets(path)
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        assert offsets(path, mode=mode) == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("length", WRONG_LENGTHS)
@pytest.mark.parametrize("split_bytes", [300, 700])
def test_splits_lose_nothing_behind_damage_and_read_nothing_twice(
    log_dir: Path, length: str | int, split_bytes: int
) -> None:
    """Cut by the index, by headers, or not at all: whichever batch is damaged."""
    for number in range(0, 22, 3):
        log = LogBuilder(log_dir, f"orders-{number}", index_interval_bytes=100)
        for i in range(24):
            log.batch((f"k{i}", "v" * 30))
        path = log.segment().batch(("last", "v")).write()
        with_wrong_length(log, path, number, length)
        for index in (path / f"{0:020}.index", None):
            (partition,) = kafkalog.open_log_dir(path)
            splits = plan_splits([partition], PartitionSelection(), split_bytes=split_bytes)
            for mode in ("PERMISSIVE", "DROPMALFORMED"):
                names = ["offset", "error"] if mode == "PERMISSIVE" else ["offset"]
                request = ReadRequest.of(
                    select_columns("records", names, with_error=mode == "PERMISSIVE"),
                    mode=ReadMode(mode),
                )
                found = pa.Table.from_batches(read_record_splits(splits, request))
                kept = found["offset"].drop_null().to_pylist()
                assert kept == [n for n in range(25) if n != number]
                assert len(found) - len(kept) == (mode == "PERMISSIVE")
            request = ReadRequest.of(select_columns("records", ["offset"]))
            with pytest.raises(CorruptRecordError):
                list(read_record_splits(splits, request))
            if index is not None:
                index.unlink()


def test_unassigned_codec_and_unknown_magic_are_named(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2"))
    path = log.write()
    file = path / f"{0:020}.log"
    whole = file.read_bytes()
    second = log.segments[0].batches[1][0]
    forged = bytearray(whole[second:])
    struct.pack_into(">h", forged, field_position("attributes"), 5)
    file.write_bytes(whole[:second] + with_crc(forged))
    with pytest.raises(UnsupportedCompressionTypeError, match="5"):
        offsets(path)
    forged[field_position("magic")] = 3
    file.write_bytes(whole[:second] + bytes(forged))
    with pytest.raises(UnsupportedMagicError, match="magic 3"):
        offsets(path)
    assert offsets(path, mode="DROPMALFORMED") == [0]
    last = rows(path, columns=["offset", "position"], mode="PERMISSIVE")[-1]
    assert (last["offset"], last["position"]) == (None, second)
    assert "magic 3" in last["error"]


@settings(max_examples=60)
@given(data=st.data())
def test_any_damage_is_read_or_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(CODECS))
    log = LogBuilder(tmp_path_factory.mktemp("log"))
    for i in range(4):
        log.batch((f"k{i}", "v" * 20, ((b"h", b"x"),)), (None, None), codec=codec)
    path = log.write()
    file = path / f"{0:020}.log"
    size = len(log.segments[0].log)
    position = data.draw(st.integers(0, size - 1))
    damage(file, position, data.draw(st.binary(min_size=1, max_size=min(4, size - position))))
    for mode in ("FAILFAST", "PERMISSIVE", "DROPMALFORMED"):
        verify = data.draw(st.booleans())
        outcome = outcome_of(path, mode, verify_checksums=verify)
        if isinstance(outcome, KafkaLogError):
            assert mode == "FAILFAST"
            assert (outcome.path, outcome.position is None) == (str(file), False)
        else:
            assert len(outcome) <= 8 + 1


def outcome_of(path: Path, mode: str, **options: Any) -> list[dict[str, Any]] | KafkaLogError:
    try:
        return rows(path, columns=["offset", "headers"], mode=mode, **options)
    except KafkaLogError as error:
        return error


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (0, 12), (3, 4), (5, 5), (4, 9), (11, 40), (-2, -1)]
)
def test_offsets_are_taken_from_the_middle_of_batches(
    log_dir: Path, start: int | None, end: int | None
) -> None:
    log = LogBuilder(log_dir)
    for i in range(3):
        log.segment()
        log.batch(*[(f"k{i}", "v")] * 3, codec=i)
        log.batch(("x", "y"))
    path = log.write()
    inventory = kafkalog.open_log_dir(path)
    tp = inventory.partitions[0].topic_partition
    options: dict[str, Any] = {}
    if start is not None and end is not None:
        options = {"starting_offsets": {tp: start}, "ending_offsets": {tp: end}}
    first = 0 if start in (None, -2) else start
    last = 12 if end in (None, -1) else end
    assert offsets(path, **options) == list(range(12))[first:last]


def test_records_begin_at_the_log_start_offset_unless_a_number_says_otherwise(
    log_dir: Path,
) -> None:
    log = LogBuilder(log_dir).batch(*[("k", "v")] * 5).log_start_offset(3)
    path = log.write()
    assert offsets(path) == [3, 4]
    tp = kafkalog.open_log_dir(path).partitions[0].topic_partition
    assert offsets(path, starting_offsets={tp: 0}) == [0, 1, 2, 3, 4]
    assert kafkalog.read_batches(path)["recordsCount"].to_pylist() == [5]


def test_only_asked_columns_are_built(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafkalog.columns import records

    path = LogBuilder(log_dir).batch(("k", "v", ((b"h", b"x"),))).write()

    def refuse(*_: object) -> None:
        raise AssertionError("gathered")

    monkeypatch.setattr(records, "binary_array", refuse)
    monkeypatch.setattr(records, "decode_header_spans", refuse)
    names = [n for n in ALL_COLUMNS if n not in ("key", "value", "headers")]
    assert len(rows(path, columns=names)) == 1
    with pytest.raises(AssertionError, match="gathered"):
        rows(path, columns=["key"])


def test_batches_do_not_change_when_the_next_one_is_read(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    for i in range(40):
        log.segment()
        log.batch((f"key-{i}", "v" * i), codec=i % 5)
    path = log.write()
    reader = kafkalog.read_records(path, columns=["key", "value", "offset"])
    kept = list(reader)
    assert pa.Table.from_batches(kept)["key"].to_pylist() == [
        f"key-{i}".encode() for i in range(40)
    ]


def test_file_that_was_replaced_is_not_read(log_dir: Path) -> None:
    path = LogBuilder(log_dir).segment().batch(("a", "1")).segment().batch(("b", "2")).write()
    reader = kafkalog.read_records(path, columns=["offset"])
    file = path / f"{0:020}.log"
    other = path / "other"
    other.write_bytes(file.read_bytes())
    other.replace(file)
    with pytest.raises(LogChangedError, match="changed"):
        reader.read_all()


def test_checksums_of_batches_are_a_fact_not_an_error(log_dir: Path) -> None:
    log = LogBuilder(log_dir).batch(("a", "1")).batch(("b", "2"))
    path = log.write()
    damage(path / f"{0:020}.log", log.segments[0].batches[1][0] + field_position("crc"), b"\0\0")
    unchecked = kafkalog.read_batches(path)
    assert unchecked["isValid"].to_pylist() == [None, None]
    checked = kafkalog.read_batches(path, verify_checksums=True)
    assert checked["isValid"].to_pylist() == [True, False]
    assert checked["error"].to_pylist()[0] is None
    assert "checksum" in checked["error"].to_pylist()[1]
    names = ["baseOffset", "error", "errorLength", "errorBytes"]
    aside = kafkalog.read_batches(path, columns=names, verify_checksums=True, mode="PERMISSIVE")
    start, header = log.segments[0].batches[1]
    stored = (path / f"{0:020}.log").read_bytes()[start : start + header.size_in_bytes]
    assert aside["errorBytes"].to_pylist() == [None, stored]
    assert aside["errorLength"].to_pylist() == [None, len(stored)]
    dropped = kafkalog.read_batches(path, verify_checksums=True, mode="DROPMALFORMED")
    assert dropped["baseOffset"].to_pylist() == [0]
