"""Control batches that a broker cannot go on with: named by whoever looks at a log.

The table is `tests.support.control_variants`; Kafka itself is asked in `tests/oracle`.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kafkalog.cleaning.transactions import CleanedTransactionMetadata
from kafkalog.errors import KafkaLogError
from kafkalog.format.control_record import ControlRecordType, parse_control_type
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.kernels.control_types import EMPTY, control_types
from kafkalog.log.control_batches import ControlProblem, judge_chunk
from kafkalog.log.segment_file import Chunk, read_chunks
from kafkalog.log.segment_headers import scan_headers
from kafkalog.log.storage import HEADER_READ_BYTES
from tests.checking.running import findings
from tests.support.control_variants import PRODUCER, VARIANTS
from tests.support.log_builder import START_MS, LogBuilder

WRONG = {name: each for name, each in VARIANTS.items() if not (each.loads and each.cleans)}


def chunk_of(path: Path) -> Chunk:
    (chunk,) = read_chunks(str(path))
    return Chunk(chunk.buf.copy(), chunk.position, chunk.rows)


def control_of(chunk: Chunk) -> np.ndarray:
    which: np.ndarray = np.flatnonzero(chunk.rows["attributes"] & 0x20)
    return which


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("size", [1, 40_000], ids=["read", "hopped"])
def test_a_control_batch_is_judged_as_kafka_does(tmp_path: Path, name: str, size: int) -> None:
    """By its bytes, and by a walk over headers: read whole, or hopped over where data is large."""
    variant = VARIANTS[name]
    data = b"".join(pack_batch([Record(n, 5, b"k", bytes(size))]) for n in range(12))
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(data + variant.batch(30, 8) + VARIANTS["commit"].batch(40, 9))

    chunk = chunk_of(path)
    judged = judge_chunk(chunk, control_of(chunk), str(path))
    scanned = scan_headers(str(path), judges_control=True).control_problem

    assert judged.types[1] == ControlRecordType.COMMIT
    assert scan_headers(str(path)).control_problem is None
    if name not in WRONG:
        assert judged.problems == ()
        assert scanned is None
        return
    (problem,) = judged.problems
    for each in (problem, scanned):
        assert isinstance(each, ControlProblem)
        assert each.stops_cleaner is not variant.cleans
        error = each.error
        assert (error.path, error.position, error.offset) == (str(path), len(data), 30)
    with pytest.raises(KafkaLogError, match=re.escape(str(path))):
        CleanedTransactionMetadata().discardable(chunk, str(path))


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_the_type_of_a_marker_is_read_whatever_its_codec(tmp_path: Path, codec: int) -> None:
    record = Record(7, 0, b"\0\0\0\1", b"\0\0\0\0\0\3")
    header = {"is_control": True, "is_transactional": True, "producer_id": 1}
    empty = pack_batch([], base_offset=8, **header)  # type: ignore[arg-type]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(pack_batch([record], codec=codec, **header) + empty)  # type: ignore[arg-type]
    chunk = chunk_of(path)
    judged = judge_chunk(chunk, control_of(chunk), "x")
    assert judged.types.tolist() == [ControlRecordType.COMMIT, EMPTY]
    assert judged.problems == ()


def test_a_marker_stamped_with_a_delete_horizon_is_read_without_a_second_look(
    tmp_path: Path,
) -> None:
    record = Record(7, START_MS, b"\0\0\0\0", b"\0\0\0\0\0\3")
    batch = pack_batch(
        [record], is_control=True, is_transactional=True, producer_id=1, delete_horizon_ms=2**62
    )
    assert len(batch) == 61 + 17 + 8
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch)
    chunk = chunk_of(path)
    types = np.empty(1, np.int64)
    ends = np.array([len(batch)])
    assert control_types(chunk.buf, np.zeros(1, np.int64), ends, chunk.rows, types) == 0
    assert types.tolist() == [ControlRecordType.ABORT]
    assert HEADER_READ_BYTES >= len(batch) + 1


@pytest.mark.parametrize("number", range(-3, 10))
def test_every_type_has_the_same_number_in_the_kernel(tmp_path: Path, number: int) -> None:
    key = number.to_bytes(4, "big", signed=True)[2:]
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(pack_batch([Record(0, 0, b"\0\0" + key, b"\0\0\0\0\0\0")], is_control=True))
    chunk = chunk_of(path)
    assert judge_chunk(chunk, control_of(chunk), "x").types.tolist() == [
        parse_control_type(b"\0\0" + key)
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_verify_names_what_a_broker_cannot_go_on_with(tmp_path: Path, name: str) -> None:
    log = LogBuilder(tmp_path, "orders-0").segment().batch(("a", "1"), producer_id=PRODUCER)
    position = len(log.segments[0].log)
    log.raw(VARIANTS[name].batch(1, START_MS + 1))
    log.next_offset = 2
    log.segment(2).batch(("c", "1")).write()
    found = [f for f in findings(tmp_path) if f.kind == "control-record"]
    places = [(f.severity.is_failure, f.offset, f.position) for f in found]
    assert places == ([(True, 1, position)] if name in WRONG else [])
