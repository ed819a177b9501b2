from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import pytest

from kafkalog.errors import (
    CorruptRecordError,
    KafkaLogError,
    LogChangedError,
    UnsupportedMagicError,
)
from kafkalog.format.record import Record
from kafkalog.format.record_batch import HEADER, field_position, pack_batch
from kafkalog.kernels.status import CORRUPT_LENGTH, NEED_MORE, OK, ZERO_TAIL
from kafkalog.log.segment_file import Chunk, ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import scan_headers
from tests.support.reference.batches import parse_batches

# Small batches, batches larger than any window of the tests, and large ones in a row: the walk
# reads windows for the first and hops over the last.
SIZES = [10] * 30 + [90_000, 5, 40_000, 5] + [30_000] * 12 + [10] * 5
BATCHES = [
    pack_batch([Record(10 * i, 1000 + i, b"k", random.Random(i).randbytes(size))])
    for i, size in enumerate(SIZES)
]
LOG = b"".join(BATCHES)
EDGES = [sum(map(len, BATCHES[:i])) for i in range(len(BATCHES) + 1)]
BASE_OFFSETS = [header.base_offset for _, header, _ in parse_batches(LOG)]


def write(log_dir: Path, data: bytes) -> str:
    path = log_dir / "00000000000000000000.log"
    path.write_bytes(data)
    return str(path)


def chunks_of(path: str, **options: int) -> tuple[list[int], list[int], object]:
    """(positions, base offsets, reader); each chunk's bytes are compared with the file's."""
    data = Path(path).read_bytes()
    reader = read_chunks(path, **options)  # type: ignore[arg-type]
    positions: list[int] = []
    offsets: list[int] = []
    for chunk in reader:
        check_chunk(chunk, data)
        positions += chunk.rows["position"].tolist()
        offsets += chunk.rows["base_offset"].tolist()
    return positions, offsets, reader


def check_chunk(chunk: Chunk, data: bytes) -> None:
    assert chunk.buf.tobytes() == data[chunk.position : chunk.position + chunk.buf.size]
    assert chunk.rows["position"][0] == chunk.position
    assert chunk.rows["size_in_bytes"].sum() == chunk.buf.size


@pytest.mark.parametrize("window_bytes", [1, 61, 100, 4096, 50_000, 1 << 20])
def test_headers_are_found_whatever_the_window(log_dir: Path, window_bytes: int) -> None:
    scan = scan_headers(write(log_dir, LOG), window_bytes=window_bytes)
    assert scan.rows["position"].tolist() == EDGES[:-1]
    assert scan.rows["base_offset"].tolist() == BASE_OFFSETS
    assert (scan.status, scan.valid_bytes, scan.trailing_bytes) == (OK, len(LOG), 0)
    assert scan.file_size == len(LOG)
    scan.raise_if_corrupt()


def test_headers_hopped_to_are_those_of_the_walk(log_dir: Path) -> None:
    path = write(log_dir, LOG)
    # A window of the whole file never hops; one of 61 bytes hops from the first batch on.
    whole = scan_headers(path, window_bytes=len(LOG)).rows
    assert scan_headers(path, start=EDGES[33], window_bytes=61).rows.tolist() == (
        whole[33:].tolist()
    )


@pytest.mark.parametrize("chunk_bytes", [1, 100, 5000, 200_000, 1 << 22])
def test_chunks_hold_every_batch_once(log_dir: Path, chunk_bytes: int) -> None:
    positions, offsets, reader = chunks_of(write(log_dir, LOG), chunk_bytes=chunk_bytes)
    assert positions == EDGES[:-1]
    assert offsets == BASE_OFFSETS
    assert (reader.status, reader.trailing_bytes) == (OK, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 5), (3, 40), (31, 33), (50, 51)])
def test_a_range_holds_its_batches_only(log_dir: Path, first: int, last: int) -> None:
    path = write(log_dir, LOG)
    start, end = EDGES[first], EDGES[last]
    assert scan_headers(path, start, end).rows["position"].tolist() == EDGES[first:last]
    assert chunks_of(path, start=start, end=end)[0] == EDGES[first:last]


def test_buffers_are_used_again(log_dir: Path) -> None:
    path, buffers = write(log_dir, LOG), ChunkBuffers()
    first = [chunk.rows.tolist() for chunk in read_chunks(path, buffers=buffers)]
    data = buffers.data
    assert [chunk.rows.tolist() for chunk in read_chunks(path, buffers=buffers)] == first
    assert buffers.data is data


def test_more_batches_than_rows_at_first(log_dir: Path) -> None:
    path = write(log_dir, BATCHES[0] * 5000)
    assert len(scan_headers(path).rows) == 5000
    assert len(chunks_of(path)[0]) == 5000


def test_an_empty_file_has_no_batches(log_dir: Path) -> None:
    path = write(log_dir, b"")
    assert scan_headers(path).rows.size == 0
    assert chunks_of(path)[0] == []


def test_every_cut_is_a_torn_tail_and_no_error(log_dir: Path) -> None:
    cuts = [e + d for e in EDGES[:-1] for d in (1, 17, 18, 60, 61, 62, 75)] + [len(LOG) - 1]
    for size in cuts:
        path = write(log_dir, LOG[:size])
        whole = max(edge for edge in EDGES if edge <= size)
        scan = scan_headers(path, window_bytes=4096)
        assert (scan.valid_bytes, scan.trailing_bytes) == (whole, size - whole)
        assert scan.status == (NEED_MORE if whole < size else OK)
        assert scan.error is None
        positions, _, reader = chunks_of(path, chunk_bytes=4096)
        assert positions == EDGES[: EDGES.index(whole)]
        assert reader.valid_bytes == whole  # type: ignore[attr-defined]
        assert reader.trailing_bytes == size - whole  # type: ignore[attr-defined]


@pytest.mark.parametrize("zeros", [18, 5000, 300_000])
def test_a_preallocated_tail_is_an_end_and_what_follows_it_corruption(
    log_dir: Path, zeros: int
) -> None:
    path = write(log_dir, LOG + bytes(zeros))
    scan = scan_headers(path, window_bytes=4096)
    assert (scan.status, scan.valid_bytes, scan.trailing_bytes) == (ZERO_TAIL, len(LOG), zeros)
    _, offsets, reader = chunks_of(path, chunk_bytes=4096)
    assert offsets == BASE_OFFSETS
    assert reader.status == ZERO_TAIL  # type: ignore[attr-defined]

    path = write(log_dir, LOG + bytes(zeros) + b"\x01")
    scan = scan_headers(path, window_bytes=4096)
    assert (scan.status, scan.valid_bytes) == (CORRUPT_LENGTH, len(LOG))
    with pytest.raises(CorruptRecordError):
        chunks_of(path, chunk_bytes=4096)


def forged(b: int, name: str, value: int) -> bytes:
    data = bytearray(LOG)
    at, width = EDGES[b] + field_position(name), HEADER[name].itemsize
    data[at : at + width] = value.to_bytes(width, "big", signed=True)
    return bytes(data)


@pytest.mark.parametrize("b", [0, 7, 30, 40, len(BATCHES) - 1])
@pytest.mark.parametrize(
    ("name", "value", "kind", "text"),
    [
        ("batch_length", -5, CorruptRecordError, "batch length -5"),
        ("batch_length", 48, CorruptRecordError, "batch length 48"),
        ("magic", 3, UnsupportedMagicError, "magic 3, this version reads 0, 1 and 2"),
        ("magic", 9, UnsupportedMagicError, "magic 9"),
        ("records_count", -3, CorruptRecordError, "records count -3"),
    ],
)
def test_a_forged_header_is_an_error_with_its_place(
    log_dir: Path, b: int, name: str, value: int, kind: type[KafkaLogError], text: str
) -> None:
    path = write(log_dir, forged(b, name, value))
    scan = scan_headers(path, window_bytes=4096)
    assert scan.rows["position"].tolist() == EDGES[:b]
    assert scan.valid_bytes == EDGES[b]
    with pytest.raises(kind, match=text) as error:
        scan.raise_if_corrupt()
    found = error.value
    assert (found.path, found.position, found.offset) == (path, EDGES[b], BASE_OFFSETS[b])

    rows, raised = read_all(path, 4096)
    assert rows == scan.rows.tolist(), "what is in front of the damage is handed out"
    assert repr(raised) == repr(found)
    assert raised is not None
    assert raised.position == EDGES[b]


@pytest.mark.parametrize("chunk_bytes", [61, 100, 4096])
def test_legacy_entries_are_rows_wherever_a_window_ends(log_dir: Path, chunk_bytes: int) -> None:
    """Entries are shorter than a magic 2 header, the last one of the file too."""
    entry = struct.pack(">qiibb", 0, 14, 0, 0, 0) + struct.pack(">ii", -1, -1)
    entries = [struct.pack(">q", offset) + entry[8:] for offset in range(20)]
    path = write(log_dir, b"".join(entries) + LOG[: EDGES[1]] + entries[-1])
    scan = scan_headers(path, window_bytes=chunk_bytes)
    assert (scan.status, scan.trailing_bytes) == (OK, 0)
    assert scan.rows["magic"].tolist() == [0] * 20 + [2, 0]
    assert scan.rows["records_count"].tolist()[:20] == [1] * 20
    rows, raised = read_all(path, chunk_bytes)
    assert (rows, raised) == (scan.rows.tolist(), None)


def test_a_damaged_body_is_walked_over(log_dir: Path) -> None:
    data = bytearray(LOG)
    data[EDGES[3] + 65] ^= 0xFF
    assert chunks_of(write(log_dir, bytes(data)))[0] == EDGES[:-1]


@pytest.mark.parametrize("tail", [0, 70_000_000])
def test_a_forged_length_past_the_cap_allocates_nothing(log_dir: Path, tail: int) -> None:
    data = bytearray(forged(5, "batch_length", 66 * 1024 * 1024))
    path = write(log_dir, bytes(data))
    with open(path, "r+b") as file:  # noqa: PTH123  # a hole, not bytes
        file.truncate(len(data) + tail)
    tracemalloc.start()
    reader = read_chunks(path, chunk_bytes=4096)
    if tail:
        with pytest.raises(CorruptRecordError, match="the checksum over it is wrong") as error:
            list(reader)
        assert error.value.position == EDGES[5]
    else:
        assert sum(chunk.rows.size for chunk in reader) == 5
        assert reader.status == NEED_MORE
    assert scan_headers(path).rows.size == (6 if tail else 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_a_file_that_shrinks_while_it_is_read_is_an_error(log_dir: Path) -> None:
    path = write(log_dir, LOG)
    chunks = iter(read_chunks(path, chunk_bytes=4096))
    next(chunks)
    write(log_dir, LOG[:5000])
    with pytest.raises(LogChangedError) as error:
        list(chunks)
    assert error.value.path == path


def test_mutated_files_give_the_named_errors_only(log_dir: Path) -> None:
    rng = random.Random(5)
    log = b"".join(BATCHES[:12])
    for _ in range(400):
        data = bytearray(log)
        for _ in range(rng.randint(1, 4)):
            b = rng.randrange(12)
            data[EDGES[b] + rng.randrange(61)] = rng.choice((0, 0x7F, 0xFF, rng.randrange(256)))
        path = write(log_dir, bytes(data))
        scan = scan_headers(path, window_bytes=rng.choice((61, 300, 10_000)))
        assert scan.rows["size_in_bytes"].sum() == scan.valid_bytes
        assert scan.valid_bytes + scan.trailing_bytes == len(log)
        rows, error = read_all(path, rng.choice((61, 300, 10_000)))
        assert rows == scan.rows.tolist()
        assert type(error) is type(scan.error)


def read_all(path: str, chunk_bytes: int) -> tuple[list[object], KafkaLogError | None]:
    rows: list[object] = []
    try:
        for chunk in read_chunks(path, chunk_bytes=chunk_bytes):
            rows += chunk.rows.tolist()
    except KafkaLogError as error:
        return rows, error
    return rows, None
