"""Rebuilt batches that come from Python: compressed ones, and records of foreign encodings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import codecs
from kafkalog.batches.encoder import BatchEncoder, BatchSource, EncodedBatch, assemble, reencode
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.cleaning.compressed_bodies import CompressedBodies
from kafkalog.format.constants import CompressionType, TimestampType
from kafkalog.format.record import Record, pack_record, parse_records
from kafkalog.format.record_batch import BATCH_ROW, pack_batch
from kafkalog.kernels.decide_batches import NO_HORIZON
from kafkalog.kernels.hash_keys import SUPERSEDED
from tests.batches.logs import rows_of
from tests.format.strategies import record_lists
from tests.kernels.raw_batches import raw_batch, raw_record
from tests.kernels.test_encode_records import folds_of

HEADER = {"partition_leader_epoch": 3, "producer_id": 9, "producer_epoch": 1, "base_sequence": 5}


def source_of(batch: bytes, gone: list[bool], horizon: int | None) -> BatchSource:
    rows = rows_of(batch)
    areas = open_record_areas(np.frombuffer(batch, np.uint8), 0, rows, Arena())
    return BatchSource(
        row=rows[0],
        records=areas.buf[int(areas.starts[0]) : int(areas.ends[0])],
        flags=np.array([SUPERSEDED if g else 0 for g in gone], np.uint8),
        horizon=NO_HORIZON if horizon is None else horizon,
        retained=sum(not g for g in gone),
    )


def rebuilt(
    encoder: BatchEncoder, batch: bytes, gone: list[bool], horizon: int | None
) -> EncodedBatch:
    """One batch by the way of many."""
    source = source_of(batch, gone, horizon)
    areas = open_record_areas(np.frombuffer(batch, np.uint8), 0, rows_of(batch), Arena())
    made = encoder.rebuild(
        areas, source.flags, np.zeros(1, np.int64), np.array([source.horizon]), path="x"
    )
    bodies = CompressedBodies(1, Arena())
    bodies.add(np.zeros(1, np.int64), codecs(areas.rows).astype(np.int64), *made)
    start, end = bodies.ends.tolist()
    body = bodies.large.get(0) or bodies.data[start:end].tobytes()
    return assemble(
        source.row, body, bodies.facts.tolist(), horizon=source.horizon, retained=source.retained
    )


def joined(found: EncodedBatch) -> bytes:
    return b"".join(found.parts)


def check(found: EncodedBatch, wanted: bytes, stays: list[Record]) -> None:
    assert joined(found) == wanted
    (row,) = rows_of(wanted)
    for name in set(BATCH_ROW.names or ()) - {"position"}:
        assert found.row[name] == row[name], name
    assert found.fold == folds_of([stays])[0]


@given(
    st.lists(st.tuples(record_lists(), st.integers(0, 2**12 - 1)), min_size=1, max_size=3),
    st.sampled_from(CompressionType),
    st.none() | st.integers(0, 2**41),
    st.none() | st.integers(0, 2**41),
    st.sampled_from(TimestampType),
)
@settings(max_examples=60)
def test_rebuilt_batches_are_those_packed_from_what_stays(
    batches: list[tuple[list[Record], int]],
    codec: int,
    old_horizon: int | None,
    new_horizon: int | None,
    timestamp_type: TimestampType,
) -> None:
    encoder = BatchEncoder()
    for records, bits in batches:
        gone = [bool(bits >> i & 1) for i in range(len(records))]
        gone[0] = gone[0] and not all(gone)
        header: dict[str, Any] = HEADER | {
            "codec": codec,
            "timestamp_type": timestamp_type,
            "base_offset": records[0].offset,
            "last_offset": records[-1].offset + 3,
        }
        seen = records
        if timestamp_type == TimestampType.LOG_APPEND_TIME:
            header["max_timestamp"] = 4000
            seen = [Record(r.offset, 4000, r.key, r.value, r.headers) for r in records]
        batch = pack_batch(records, **header, delete_horizon_ms=old_horizon)
        horizon = old_horizon if new_horizon is None else new_horizon
        stays = [record for record, g in zip(seen, gone, strict=True) if not g]
        wanted = pack_batch(stays, **header, delete_horizon_ms=horizon)
        source = source_of(batch, gone, horizon)
        check(rebuilt(encoder, batch, gone, horizon), wanted, stays)
        if all(key.isascii() for record in stays for key, _ in record.headers):
            check(reencode(source, path="x"), wanted, stays)


PLAIN = Record(6, 50, b"k", b"v", ((b"h", b"x"), (b"n", None)))
NULLS = Record(6, 50, None, None, ((b"h", None),))
FOREIGN = {
    "attributes byte": (raw_record(PLAIN, attributes=0x55), PLAIN),
    "null lengths below -1": (raw_record(NULLS, null_length=-9), NULLS),
    "malformed header key": (
        raw_record(Record(6, 50, b"k", b"v", ((b"a\xffb\xc3", b"\xff"),))),
        Record(6, 50, b"k", b"v", (("a\ufffdb\ufffd".encode(), b"\xff"),)),
    ),
} | {
    f"over-long {name}": (raw_record(PLAIN, pad=name), PLAIN)
    for name in ("length", "timestamp", "offset", "key", "value", "headers", "header key")
}


@pytest.mark.parametrize(("raw", "meant"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_records_are_encoded_as_kafka_encodes_them(raw: bytes, meant: Record) -> None:
    other = Record(5, 40, b"o", b"v")
    batch = raw_batch([raw_record(other), raw], base_offset=5, last_offset=9)
    found = reencode(source_of(batch, [True, False], None), path="x")
    wanted = pack_batch([meant], base_offset=5, last_offset=9, partition_leader_epoch=0)
    check(found, wanted, [meant])
    # The plain codec reads both alike, but for what Java does to a malformed header key.
    (parsed,) = parse_records(raw, 1, base_offset=5, base_timestamp=0)
    assert (parsed.key, parsed.value, parsed.timestamp) == (meant.key, meant.value, 50)
    assert joined(found)[61:] == pack_record(meant, 5, 50)


def test_the_codec_of_the_batch_stays_whatever_its_level() -> None:
    records = [Record(i, 5, b"k%d" % i, b"abc" * 90) for i in range(6)]
    for codec in CompressionType:
        batch = pack_batch(records, codec=codec)
        found = rebuilt(BatchEncoder(), batch, [True] + [False] * 5, None)
        assert int(found.row["attributes"]) & 7 == codec
        wanted = pack_batch(records[1:], codec=codec, base_offset=0)
        assert joined(found) == wanted
