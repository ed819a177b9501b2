"""convert_legacy against the plain codec of format.legacy_record."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import complete_rows, open_record_areas
from kafkalog.errors import KafkaLogError
from kafkalog.format.constants import CompressionType
from kafkalog.format.legacy_record import parse_legacy_entry
from kafkalog.format.record import Record, parse_records
from kafkalog.format.record_batch import BATCH_ROW
from kafkalog.kernels import status
from kafkalog.kernels.legacy_records import convert_legacy
from kafkalog.kernels.scan_batches import scan_batches
from tests.format.test_legacy_record import BROKEN, legacy_records
from tests.kernels.arrays import read_only
from tests.support.packing import pack_legacy_entries


def read(data: bytes) -> list[Record]:
    """All records of legacy entries the way the package reads them."""
    buf = read_only(data)
    rows = np.empty(len(data) // 26 + 1, BATCH_ROW)
    count, found, end = scan_batches(buf, 0, buf.size, buf.size, 0, rows)
    assert (found, end) == (status.OK, len(data))
    areas = open_record_areas(buf, 0, rows[:count], Arena())
    assert complete_rows(buf, 0, rows[:count], Arena()).tolist() == areas.rows.tolist()
    return [
        record
        for row, start, end in zip(areas.rows, areas.starts, areas.ends, strict=True)
        for record in parse_records(
            areas.buf[start:end],
            int(row["records_count"]),
            int(row["base_offset"]),
            int(row["base_timestamp"]),
        )
    ]


@settings(max_examples=150)
@given(data=st.data())
def test_entries_become_the_records_the_plain_codec_reads(data: st.DataObject) -> None:
    packed, expected = b"", list[Record]()
    for _ in range(data.draw(st.integers(1, 4))):
        magic = data.draw(st.sampled_from([0, 1]))
        records = data.draw(legacy_records(magic))
        packed += pack_legacy_entries(records, magic, codec=data.draw(st.sampled_from(range(4))))
        expected += records
    assert read(packed) == expected


def test_broken_wrappers_are_errors_here_as_well() -> None:
    for entry, _ in BROKEN.values():
        try:
            found: object = read(entry)
        except KafkaLogError as error:
            found = (error.position, error.offset)
        assert found == (0, 4)


def _converted(data: bytes, magic: int, codec: int) -> tuple[int, bytes, int]:
    row = np.zeros(1, BATCH_ROW)
    row["magic"], row["attributes"], row["last_offset"] = magic, codec, 1000
    out = np.full(len(data) * 2 + 100, 0xEE, np.uint8)
    ends, rows_out = np.zeros(1, np.int64), np.zeros(1, BATCH_ROW)
    edges = np.array([0, len(data)])
    with np.errstate(over="ignore"):
        _, found, _ = convert_legacy(
            read_only(data), row, edges[:1].copy(), edges[1:].copy(), out, rows_out, ends
        )
    room = len(data) + (len(data) // 26 + 1) * 6
    assert (out[room:] == 0xEE).all(), "no byte past the promised room"
    return found, bytes(out[: ends[0]]), int(rows_out["records_count"][0])


def test_any_damage_ends_with_a_status_or_with_records() -> None:
    rnd = random.Random(7)
    records = [Record(o, o, rnd.randbytes(o), rnd.randbytes(30 - o)) for o in range(1, 12)]
    for _ in range(2000):
        magic = rnd.choice((0, 1))
        data = bytearray(pack_legacy_entries(records, magic))
        for _ in range(rnd.randint(0, 4)):
            data[rnd.randrange(len(data))] = rnd.choice((0, 1, 0x7F, 0x80, 0xFF))
        cut = rnd.choice((len(data), rnd.randrange(len(data))))
        found, area, count = _converted(bytes(data[:cut]), magic, CompressionType.GZIP)
        assert found in status.STATUS_TEXT
        if found == status.OK:
            assert len(parse_records(area, count, 0, 0)) == count


def test_a_plain_message_is_its_own_entry() -> None:
    entry = pack_legacy_entries([Record(5, 9, None, b"")], 1)
    assert read(entry) == parse_legacy_entry(entry)[1]
