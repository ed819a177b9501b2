"""The one reading path against the plain-Python codec, and what each mode makes of damage."""

from __future__ import annotations

import struct
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
from kafkalog.format.record_batch import HEADER, field_position, parse_batches, with_crc
from tests.support.log_builder import START_MS, LogBuilder

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


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("length", [-5, 3, 2**31 - 1])
def test_reading_goes_on_behind_a_batch_whose_length_is_wrong(log_dir: Path, length: int) -> None:
    log = LogBuilder(log_dir)
    for i in range(6):
        log.batch((f"k{i}", "v" * 30))
    path = log.write()
    file = path / f"{0:020}.log"
    start, header = log.segments[0].batches[2]
    damage(file, start + 8, struct.pack(">i", length))
    if length < 2**30:  # a batch past the file's end is a torn tail to whoever only walks
        with pytest.raises(CorruptRecordError):
            offsets(path)
        assert offsets(path, mode="DROPMALFORMED") == [0, 1, 3, 4, 5]
        names = ["offset", "position", "error", "errorBytes", "errorLength"]
        found = rows(path, columns=names, mode="PERMISSIVE")
        assert [row["offset"] for row in found] == [0, 1, None, 3, 4, 5]
        bad = found[2]
        assert (bad["position"], bad["errorLength"]) == (start, header.size_in_bytes)
        assert bad["errorBytes"] == file.read_bytes()[start : start + header.size_in_bytes]
    else:
        assert offsets(path) == [0, 1]


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


@pytest.mark.parametrize("base_offset", [-1, 0, 1, 2**40])
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
    # a base offset that is too high shows at the batch behind it
    bad = 1 if base_offset < 2 else 2
    with pytest.raises(CorruptRecordError, match="does not lie behind") as caught:
        offsets(path)
    assert (caught.value.path, caught.value.position) == (str(file), positions[bad])
    found = rows(path, columns=["offset", "position"], mode="PERMISSIVE")
    assert [row["position"] for row in found if row["error"]] == [positions[bad]]
    kept = [row["offset"] for row in found if row["offset"] is not None]
    assert [n for n in kept if n < 8] == [0, 1, *([4, 5] if bad == 1 else []), 6, 7]
    assert offsets(path, mode="DROPMALFORMED") == kept


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


@settings(max_examples=150, deadline=None)
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
