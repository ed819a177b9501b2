"""Rounds of compaction over logs of LogBuilder, and what is on the disk afterwards.

The reading here is `tests.support.reference.batches`, plain Python: what the cleaner wrote is not
read with what it was written with.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from kafkalog.cleaning.cleaner_stats import CleanerStats
from kafkalog.format.checkpoints import CLEANER_OFFSET_FILE, parse_offset_checkpoint
from kafkalog.format.record import Record
from kafkalog.format.record_batch import RecordBatchHeader
from kafkalog.format.transaction_index import AbortedTxn, parse_transaction_index
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.clean_result import COMPACTED
from kafkalog.operations.compact import CompactionRun, apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.reference.batches import parse_batches
from tests.support.topics import topics_of

# Long after every record, and a whole day (delete.retention.ms) between two rounds.
NOW_MS = START_MS + 10_000_000
DAY_MS = 86_400_000

Batch = tuple[RecordBatchHeader, list[Record]]


def compact(
    log_dir: Path,
    *settings: str,
    now_ms: int = NOW_MS,
    kafka_version: str = "4.3",
    high_watermark: int | None = None,
    partitions: Sequence[TopicPartition] = (),
    dedupe_buffer_size: int | None = None,
) -> CompactionRun:
    """One `compact --apply` over all topics; any dirty byte is enough, keyless records may go."""
    config = ["cleanup.policy=compact", "min.cleanable.dirty.ratio=0", *settings]
    request = CompactionRequest(
        log_dirs=(str(log_dir),),
        now_ms=now_ms,
        config=LogConfig.from_overrides(config),
        topics=topics_of(log_dir),
        topic_partitions=tuple(partitions),
        kafka_version=kafka_version,
        high_watermark=high_watermark,
        force=frozenset({"null-keys"}),
        dedupe_buffer_size=dedupe_buffer_size,
        keeps_undo=False,
    )
    return apply_run(request, clean_pack)


def compacted(log_dir: Path, *settings: str, **options: int) -> CleanerStats:
    """The same for a single partition that must be cleaned; what it counted."""
    run = compact(log_dir, *settings, **options)  # type: ignore[arg-type]
    (result,) = run.results
    assert result.status == COMPACTED, result.reason
    return result.stats


def continued(path: Path) -> LogBuilder:
    """The partition as a builder to append to; its directory is taken away until `write`."""
    checkpoint = cleaner_offset(path)
    log = LogBuilder(path.parent, path.name)
    for file in sorted(path.glob("*.log")):
        log.segment(int(file.stem), modified_ms=file.stat().st_mtime_ns // 1_000_000)
        data = file.read_bytes()
        for position, header, records in parse_batches(data):
            log.append(data[position : position + header.size_in_bytes])
            log.records += records
        index = file.with_suffix(".txnindex")
        log.segments[-1].aborted = bytearray(index.read_bytes() if index.exists() else b"")
    if checkpoint is not None:
        log.cleaner_offset(checkpoint)
    shutil.rmtree(path)
    return log


def aborted(path: Path) -> list[AbortedTxn]:
    """The entries of all transaction indexes of the partition, in order."""
    return [
        entry
        for file in sorted(path.glob("*.txnindex"))
        for entry in parse_transaction_index(file.read_bytes(), int(file.stem), str(file))
    ]


def bases(path: Path) -> list[int]:
    """Base offsets of the live segments."""
    return sorted(int(file.stem) for file in path.glob("*.log"))


def batches(path: Path) -> list[Batch]:
    """Every batch of the partition in order, the active segment's too."""
    found: list[Batch] = []
    for file in sorted(path.glob("*.log")):
        data = file.read_bytes()
        parsed = list(parse_batches(data, path=str(file)))
        assert sum(header.size_in_bytes for _, header, _ in parsed) == len(data)
        found += [(header, records) for _, header, records in parsed]
    return found


def records(path: Path) -> list[Record]:
    return [record for _, part in batches(path) for record in part]


def offsets(path: Path) -> list[int]:
    return [record.offset for record in records(path)]


def keys(path: Path) -> list[str]:
    return [(record.key or b"").decode() for record in records(path)]


def last_offsets(path: Path) -> list[int]:
    return [header.last_offset for header, _ in batches(path)]


def cleaner_offset(path: Path) -> int | None:
    """The partition's line in the cleaner checkpoint."""
    file = path.parent / CLEANER_OFFSET_FILE
    if not file.exists():
        return None
    topic, _, partition = path.name.rpartition("-")
    return parse_offset_checkpoint(file.read_bytes()).get((topic, int(partition)))


def directory_bytes(path: Path) -> dict[str, tuple[bytes, int]]:
    """Content and modification time of every file of a partition directory, by name."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(path.iterdir())
    }
