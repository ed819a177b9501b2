from __future__ import annotations

import random

import numpy as np
import pytest

from kafkalog.batches.arena import Arena
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.errors import CorruptRecordError, KafkaLogError
from kafkalog.format.constants import TimestampType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.batches.logs import BATCHES, EMPTY_BATCH, LOG, RECORDS, rows_of
from tests.support.reference.batches import parse_batches


def decode(
    data: bytes, reuse: RecordSpans | None = None, path: str | None = None
) -> tuple[bytes, RecordSpans]:
    rows = rows_of(data)
    areas = open_record_areas(np.frombuffer(data, np.uint8), 0, rows, Arena(), path=path)
    return areas.buf.tobytes(), decode_spans(areas, rows, path, reuse)


def values_of(data: bytes, spans: RecordSpans) -> list[tuple[int, int, bytes | None]]:
    return [
        (int(offset), int(timestamp), None if length < 0 else data[start : start + length])
        for offset, timestamp, start, length in zip(
            spans.offsets, spans.timestamps, spans.value_starts, spans.value_lengths, strict=True
        )
    ]


def test_spans_of_every_codec_are_the_records() -> None:
    data, spans = decode(LOG)
    expected = [(r.offset, r.timestamp, r.value) for _, _, rs in parse_batches(LOG) for r in rs]
    assert values_of(data, spans) == expected
    assert spans.n == len(expected) == 61
    assert spans.batch_indexes.tolist() == [b for b in (0, 2, 3, 4, 5) for _ in RECORDS] + [6]


def test_delete_horizon_and_log_append_time_give_the_timestamps_they_should() -> None:
    horizon = pack_batch(RECORDS, delete_horizon_ms=2**41)
    appended = pack_batch(
        RECORDS, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=123_456
    )
    _, spans = decode(horizon + appended)
    assert spans.timestamps.tolist() == [r.timestamp for r in RECORDS] + [123_456] * len(RECORDS)


def test_reused_arrays_hold_the_new_records_and_grow_when_too_small() -> None:
    _, large = decode(LOG)
    data, small = decode(BATCHES[0], reuse=large)
    assert np.shares_memory(small.offsets, large.offsets)
    assert values_of(data, small) == [(r.offset, r.timestamp, r.value) for r in RECORDS]
    data, again = decode(LOG, reuse=small)
    assert np.shares_memory(again.offsets, large.offsets)
    assert again.n == 61
    _, grown = decode(LOG + LOG, reuse=again)
    assert grown.n == 122


def test_no_batches_have_no_records() -> None:
    assert decode(b"")[1].n == 0
    assert decode(EMPTY_BATCH)[1].n == 0


def test_an_error_names_file_batch_and_record() -> None:
    good = pack_batch([Record(7, 0, b"k", b"v"), Record(9, 0, b"k", b"v")])
    bad = bytearray(good)
    bad[61 + 9] = 0x01  # the second record's length: -1
    with pytest.raises(CorruptRecordError) as error:
        decode(EMPTY_BATCH + good + bytes(bad), path="t-0/0.log")
    assert str(error.value) == (
        f"t-0/0.log @ {61 + len(good)} (offset 7): "
        "record 1 of 2, byte 9 of the records: negative record or header key length"
    )


def test_damaged_logs_give_records_or_the_named_errors() -> None:
    rng = random.Random(11)
    for _ in range(300):
        data = bytearray(LOG)
        for _ in range(rng.randint(1, 3)):
            b = rng.randrange(len(BATCHES))
            start = sum(map(len, BATCHES[:b]))
            if len(BATCHES[b]) > 61:
                data[start + rng.randrange(61, len(BATCHES[b]))] = rng.randrange(256)
        error = error_of(bytes(data))
        if error is not None:
            assert error.path == "0.log"
            assert error.position in rows_of(LOG)["position"].tolist()
            assert error.offset is not None


def error_of(data: bytes) -> KafkaLogError | None:
    try:
        _, spans = decode(data, path="0.log")
    except KafkaLogError as error:
        return error
    assert spans.n == 61
    return None
