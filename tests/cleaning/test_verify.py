"""What was written is read back: any byte that is not as written stops the swap."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kafkalog.cleaning.output_segment import OutputFile
from kafkalog.cleaning.rebuilt_batches import RebuiltBatches
from kafkalog.cleaning.verify import verify_segment
from kafkalog.errors import CorruptRecordError
from kafkalog.format.constants import CompressionType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import BATCH_ROW, pack_batch
from kafkalog.kernels.encode_records import fold_records
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.operations.clean_run import CleanRun
from kafkalog.operations.compact import plan_run
from kafkalog.operations.compact_partition import clean_partition
from kafkalog.requests.run_request import CompactionRequest
from kafkalog.resources.spilled_array import SpilledArray
from kafkalog.swap.local_files import LocalFiles
from tests.cleaning.test_laws import CONFIG, compact
from tests.operations.faults.logs import contents
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.topics import topics_of

NOW_MS = START_MS + 10_000_000
KINDS = (".log", ".index", ".timeindex")


class AlteringFiles(LocalFiles):
    """Alters an output after it is written and synced, as a disk that lies would."""

    def __init__(self, kind: str, alter: Callable[[bytes], bytes | None]) -> None:
        self._kind = kind
        self._alter = alter
        self.altered = 0

    def sync_file(self, fd: int) -> None:
        super().sync_file(fd)
        file = Path(f"/proc/self/fd/{fd}").readlink()
        if file.name.endswith(self._kind + ".tmp"):
            data = self._alter(file.read_bytes())
            if data is not None:
                file.write_bytes(data)
                self.altered += 1


def write_log(log_dir: Path) -> Path:
    """Its new segment has a copied, a rebuilt, a compressed and an empty batch."""
    log = LogBuilder(log_dir, index_interval_bytes=100)
    log.segment(modified_ms=START_MS).batch(("copied", "1"), ("also", "1"))
    log.batch(("x", "1"), ("rebuilt", "v" * 20)).batch(("x", "2"), ("zipped", "v" * 30), codec=4)
    log.batch(("x", "3"), producer_id=5)
    log.segment(modified_ms=START_MS).batch(("x", "4"))
    log.segment().batch(("x", "5"))
    return log.write()


def size_of(log_dir: Path, kind: str) -> int:
    """Bytes of the output of a run that nothing disturbs."""
    sizes = list[int]()
    write_log(log_dir / "tried")
    run_with(log_dir / "tried", AlteringFiles(kind, lambda data: sizes.append(len(data))))
    return sizes[0]


def run_with(log_dir: Path, files: LocalFiles) -> str:
    (plan,) = plan_run(
        CompactionRequest((str(log_dir),), NOW_MS, CONFIG, topics=topics_of(log_dir))
    ).plans
    result = clean_partition(plan, CleanRun("20250101T000000abcdef", os.getpid()), files)
    return f"{result.status}: {result.reason}"


@pytest.mark.parametrize("kind", KINDS)
def test_any_byte_that_is_not_as_written_stops_the_swap(log_dir: Path, kind: str) -> None:
    size = size_of(log_dir, kind)
    assert size >= (300 if kind == ".log" else 8)
    write_log(log_dir / "log")
    before = contents(log_dir / "log")
    for at in range(size):

        def flip(data: bytes, at: int = at) -> bytes:
            return data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]

        files = AlteringFiles(kind, flip)
        said = run_with(log_dir / "log", files)
        assert said.startswith("failed: "), at
        assert files.altered == 1
        assert contents(log_dir / "log") == before, at


ALTERATIONS: dict[str, Callable[[bytes], bytes]] = {
    "last byte missing": lambda data: data[:-1],
    "last batch missing": lambda data: data[:-70],
    "nothing there": lambda _: b"",
    "zeros behind": lambda data: data + bytes(100),
    "first batch twice": lambda data: data[:80] + data,
    "a byte more": lambda data: data + b"x",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_more_or_less_than_was_written_stops_the_swap(
    log_dir: Path, kind: str, alter: Callable[[bytes], bytes]
) -> None:
    write_log(log_dir)
    before = contents(log_dir)
    assert run_with(log_dir, AlteringFiles(kind, alter)).startswith("failed: ")
    assert contents(log_dir) == before


def test_an_unaltered_output_is_swapped_in(log_dir: Path) -> None:
    path = write_log(log_dir)
    (result,) = compact(log_dir).results
    assert result.status == "compacted"
    stats = result.stats
    assert (stats.batches_read, stats.batches_retained, stats.batches_copied) == (5, 5, 2)
    assert stats.bytes_after == (path / f"{0:020d}.log").stat().st_size


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("wrong", range(-1, 3))
def test_records_that_are_not_those_that_were_to_stay_are_found(
    tmp_path: Path, codec: CompressionType, wrong: int
) -> None:
    """The bytes are as they were written, with right checksums: only the records differ."""
    path = tmp_path / "0.log"
    batches = [pack_batch([Record(5 + 2 * n, 7, b"k", b"v")], codec=codec) for n in range(3)]
    path.write_bytes(b"".join(batches))
    (chunk,) = read_chunks(str(path))
    folds = np.empty(3, np.int64)
    fold_records(np.array([5, 7, 9]), np.array([7, 7, 7]), np.array([1, 2, 3]), folds)
    if wrong >= 0:
        folds[wrong] += 1
    rows, rebuilt = SpilledArray(BATCH_ROW, 1 << 20), RebuiltBatches(1 << 20)
    rows.append(chunk.rows)
    rebuilt.add(chunk.rows["position"].copy(), folds)
    log = OutputFile(str(path), path.name, path.stat().st_size, 0)
    if wrong < 0:
        verify_segment(log, rows, rebuilt, ChunkBuffers())
        return
    with pytest.raises(CorruptRecordError, match="records differ") as error:
        verify_segment(log, rows, rebuilt, ChunkBuffers())
    assert error.value.offset == 5 + 2 * wrong
