from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.format.constants import TimestampType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW, pack_batch, with_crc
from kafkalog.kernels import status
from kafkalog.kernels.assemble_batches import (
    ALL_DONE,
    BAD_RECORD,
    NEEDS_ENCODER,
    OUT_OF_SPACE,
    assemble_batches,
)
from kafkalog.kernels.decide_batches import COPY, DROP, EMPTY, NO_HORIZON, REBUILD, REENCODE
from kafkalog.kernels.encode_records import (
    FACTS,
    RECORD_GROWTH_BYTES,
    encode_records,
    fold_records,
)
from kafkalog.kernels.hash_keys import SUPERSEDED
from tests.batches.logs import rows_of
from tests.format.strategies import record_lists

APPEND_TIME = 4_000
OUT_POSITION = 1_000_000


@dataclass
class Assembled:
    stopped: int
    batch: int
    data: bytes
    rows: np.ndarray
    folds: np.ndarray
    status: int


def assemble(
    log: bytes,
    actions: list[int],
    gone: list[bool],
    horizons: list[int],
    *,
    room: int | None = None,
    first: int = 0,
) -> Assembled:
    rows = rows_of(log)
    counts = rows["records_count"].astype(np.int64)
    first_records = np.cumsum(counts) - counts
    flags = np.array([SUPERSEDED if g else 0 for g in gone], np.uint8)
    kept = [
        sum(not g for g in gone[f : f + n])
        for f, n in zip(first_records.tolist(), counts.tolist(), strict=True)
    ]
    size = len(log) + int(counts.sum()) * RECORD_GROWTH_BYTES if room is None else room
    out = np.full(size, 0xEE, np.uint8)
    rows_out, folds = np.zeros(rows.size, BATCH_ROW), np.zeros(rows.size, np.int64)
    with np.errstate(over="ignore"):
        stopped, b, end, done, code = assemble_batches(
            np.frombuffer(log, np.uint8),
            0,
            rows,
            first,
            np.array(actions, np.uint8),
            np.array(horizons, np.int64),
            flags,
            first_records,
            np.array(kept, np.int64),
            out,
            OUT_POSITION,
            rows_out,
            folds,
            np.empty(0, np.uint8),
            np.zeros(2 * rows.size, np.int64),
            np.zeros(FACTS * rows.size, np.int64),
        )
    assert (out[end:] == 0xEE).all() or stopped == BAD_RECORD
    return Assembled(stopped, b, out[:end].tobytes(), rows_out[:done], folds[:done], code)


def folds_of(records: list[list[Record]]) -> list[int]:
    flat = [record for batch in records for record in batch]
    folds = np.zeros(len(records), np.int64)
    with np.errstate(over="ignore"):
        fold_records(
            np.array([record.offset for record in flat], np.int64),
            np.array([record.timestamp for record in flat], np.int64),
            np.cumsum([len(batch) for batch in records]).astype(np.int64),
            folds,
        )
    return [int(fold) for fold in folds]


@given(
    record_lists(),
    st.data(),
    st.none() | st.integers(0, 2**41),
    st.none() | st.integers(0, 2**41),
    st.sampled_from(TimestampType),
    st.integers(0, 9),
)
@settings(max_examples=120)
def test_a_rebuilt_batch_is_the_one_packed_from_what_stays(
    records: list[Record],
    data: st.DataObject,
    old_horizon: int | None,
    new_horizon: int | None,
    timestamp_type: TimestampType,
    tail: int,
) -> None:
    gone = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    if all(gone):
        gone[-1] = False
    header: dict[str, Any] = {
        "base_offset": records[0].offset - min(2, records[0].offset),
        "last_offset": records[-1].offset + tail,
        "timestamp_type": timestamp_type,
        "partition_leader_epoch": 3,
        "producer_id": 9,
        "producer_epoch": 1,
        "base_sequence": 5,
    }
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        header["max_timestamp"] = APPEND_TIME
        seen = [Record(r.offset, APPEND_TIME, r.key, r.value, r.headers) for r in records]
    else:
        seen = records
    source = pack_batch(records, **header, delete_horizon_ms=old_horizon)
    horizon = old_horizon if new_horizon is None else new_horizon
    found = assemble(source, [REBUILD], gone, [NO_HORIZON if horizon is None else horizon])
    stays = [record for record, g in zip(seen, gone, strict=True) if not g]
    wanted = pack_batch(stays, **header, delete_horizon_ms=horizon)
    assert (found.stopped, found.status) == (ALL_DONE, status.OK)
    assert with_crc(found.data) == wanted
    (row,) = found.rows
    (wanted_row,) = rows_of(wanted, OUT_POSITION)
    assert row["crc"] == -1
    for name in set(BATCH_ROW.names or ()) - {"crc"}:
        assert row[name] == wanted_row[name], name
    assert [int(fold) for fold in found.folds] == folds_of([stays])


def test_batches_are_copied_emptied_dropped_and_rebuilt_in_order() -> None:
    batches = [
        [Record(10 * b + i, 100 + i, b"k%d" % i, b"v" * b) for i in range(3)] for b in range(5)
    ]
    packed = [
        pack_batch(batch, producer_id=4, producer_epoch=0, base_sequence=1) for batch in batches
    ]
    gone = [False] * 3 + [True] * 6 + [True, False, False] + [False] * 3
    actions = [COPY, DROP, EMPTY, REBUILD, COPY]
    found = assemble(b"".join(packed), actions, gone, [NO_HORIZON] * 5)
    emptied = pack_batch(
        [],
        base_offset=20,
        last_offset=22,
        max_timestamp=102,
        producer_id=4,
        producer_epoch=0,
        base_sequence=1,
    )
    rebuilt = pack_batch(
        batches[3][1:], base_offset=30, producer_id=4, producer_epoch=0, base_sequence=1
    )
    wanted = [packed[0], emptied, rebuilt, packed[4]]
    at = np.cumsum([0] + [len(batch) for batch in wanted]).tolist()
    pieces = [found.data[a:b] for a, b in itertools.pairwise(at)]
    assert pieces[0] == wanted[0]
    assert with_crc(pieces[1]) == wanted[1]
    assert with_crc(pieces[2]) == wanted[2]
    assert pieces[3] == wanted[3]
    assert len(found.data) == at[-1]
    assert found.rows["position"].tolist() == [OUT_POSITION + p for p in at[:-1]]
    assert [crc == -1 for crc in found.rows["crc"]] == [False, True, True, False]


def test_the_high_byte_of_the_attributes_is_lost_and_the_horizon_of_an_emptied_batch() -> None:
    records = [Record(0, 5, b"k", None), Record(1, 5, b"l", None)]
    source = bytearray(pack_batch(records, delete_horizon_ms=77))
    source[21] = 0x7F
    found = assemble(bytes(source), [REBUILD], [True, False], [77])
    assert found.data[21:23] == b"\x00\x40"
    found = assemble(bytes(source), [EMPTY], [True, True], [NO_HORIZON])
    assert found.data[21:23] == b"\x00\x00"
    assert len(found.data) == 61


def test_it_stops_where_there_is_no_room_and_goes_on_from_there() -> None:
    packed = [pack_batch([Record(i, 0, b"k", b"v" * 50)]) for i in range(4)]
    log, actions, horizons = b"".join(packed), [COPY] * 4, [NO_HORIZON] * 4
    room = 2 * (len(packed[0]) + RECORD_GROWTH_BYTES)
    first = assemble(log, actions, [False] * 4, horizons, room=room)
    assert (first.stopped, first.batch, first.data) == (OUT_OF_SPACE, 2, packed[0] + packed[1])
    rest = assemble(log, actions, [False] * 4, horizons, first=2)
    assert (rest.stopped, rest.data) == (ALL_DONE, packed[2] + packed[3])


@pytest.mark.parametrize(("codec", "action"), [(4, REBUILD), (0, REENCODE)])
def test_compressed_and_foreign_batches_are_left_to_the_encoder(codec: int, action: int) -> None:
    packed = pack_batch([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")], codec=codec)
    found = assemble(packed + packed, [COPY, action], [False] * 4, [NO_HORIZON] * 2)
    assert (found.stopped, found.batch, found.data) == (NEEDS_ENCODER, 1, packed)
    emptied = assemble(packed, [EMPTY], [True] * 2, [NO_HORIZON])
    assert emptied.rows["attributes"].tolist() == [0]


@pytest.mark.parametrize("cut", [1, 2, 9])
def test_records_that_are_not_what_was_mapped_are_a_status(cut: int) -> None:
    records = [Record(0, 0, b"k", b"v" * 20), Record(1, 3, b"k", b"v" * 20)]
    packed = bytearray(pack_batch(records))
    packed[61] += 2 * cut  # the first record claims more bytes than it has
    found = assemble(bytes(packed), [REBUILD], [False, False], [NO_HORIZON])
    assert found.stopped == BAD_RECORD
    assert status.is_corrupt(found.status)
    with np.errstate(over="ignore"):
        done, code = encode_records(
            np.frombuffer(bytes(packed), np.uint8),
            np.array([61]),
            np.array([len(packed)]),
            rows_of(bytes(packed)),
            np.zeros(2, np.uint8),
            np.zeros(1, np.int64),
            np.array([NO_HORIZON]),
            np.zeros(200, np.uint8),
            np.zeros(1, np.int64),
            np.zeros(FACTS, np.int64),
        )
    assert done == 0
    assert status.is_corrupt(code)


def test_the_fold_tells_records_their_order_and_their_times_apart() -> None:
    a, b = Record(1, 10, None, None), Record(2, 20, None, None)
    later = Record(2, 21, None, None)
    folds = folds_of([[a, b], [b, a], [a], [a, later], []])
    assert len(set(folds)) == 5
