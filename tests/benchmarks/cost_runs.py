"""The runs that the cost model is fitted to and held against: what each is, and what it took."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.format.constants import MAX_BATCH_BYTES, CompressionType
from kafkalog.log.log_dir import open_log_dir
from kafkalog.planning.compaction_work import CompactionWork, Workers
from kafkalog.planning.cost_model import Cost, Rates, compaction_cost
from kafkalog.resources.memory import DEFAULT_MEMORY_BYTES, page_cache_bytes, usual_budget
from tests.benchmarks import bench_audit, bench_many_partitions
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.generated_batches import records_per_batch
from tests.benchmarks.side_by_side import forget
from tests.support.process_costs import ProcessCosts, run_counted

_SMALL_SEGMENT_RECORDS = 32
# As `log.segment_headers` has it.
_SKIP_FROM_BYTES = 12 * 1024
NO_RATES = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (0, 0, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
_BUDGET = usual_budget(DEFAULT_MEMORY_BYTES, MAX_BATCH_BYTES, on_spark=False)
ONE_WORKER = Workers(1, _BUDGET.pool_bytes, _BUDGET.finished_bytes, _BUDGET.window_records)


@dataclass(frozen=True, slots=True)
class Log:
    """A partition of the generator; `partitions` counts small ones of a MiB instead, `segments`
    those of one partition, of 4 KiB. `is_cold`: not in the page cache when a run begins.
    """

    name: str
    records: int = 0
    keys: int = 0
    value_bytes: int = 100
    codec: CompressionType = CompressionType.NONE
    is_distinct: bool = False
    options: tuple[str, ...] = ()
    partitions: int = 0
    segments: int = 0
    is_cold: bool = False

    def write(self, log_dir: Path) -> None:
        """Write it."""
        if self.partitions:
            bench_many_partitions.generate(log_dir, self.partitions)
            return
        write_log(log_dir, "bench", self.spec())

    def batches(self) -> int:
        """In all."""
        if self.partitions:
            each = bench_many_partitions.RECORDS
            return self.partitions * -(-each // records_per_batch(LogSpec(each, 1)))
        return -(-self.spec().records // records_per_batch(self.spec()))

    def spec(self) -> LogSpec:
        """Of one partition that is not small."""
        if self.segments:
            each = _SMALL_SEGMENT_RECORDS
            return LogSpec(each * self.segments, each, batch_bytes=1000, segment_bytes=4096)
        return LogSpec(
            self.records, self.keys, value_bytes=self.value_bytes, codec=self.codec,
            distinct=self.is_distinct,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compared:
    """A run, what the model makes of its work, and what it took. `page_cache_bytes`: what there was
    of it for files.
    """

    name: str
    works: tuple[CompactionWork, ...]
    took: ProcessCosts
    other_bytes_written: int
    page_cache_bytes: float = math.inf

    def cost(self, rates: Rates) -> Cost:
        """By the model."""
        who = replace(ONE_WORKER, page_cache_bytes=self.page_cache_bytes)
        return compaction_cost(self.works, who, rates)


M = 1_000_000
# Of one record of a hundred something stays: of what such a log takes across tasks beyond itself
# most is that its bytes are read again.
_FEW_OF_1_KB = Log("1-kb-few-keys", 800_000, 8_000, 1000)
_ACROSS = ("--strategy", "across-tasks")
# As small as shows what each is for: some seconds of CPU, two that spill, sizes apart by four and
# more. The first one is the start.
TO_FIT = (
    Log("start", 2_000, 500),
    Log("small", partitions=100),
    Log("small-segments", segments=3_000),
    Log("quarter", 2 * M, M // 2),
    Log("half-gib", 4 * M, 1 * M),
    Log("few-keys", 3 * M, 60_000),
    Log("distinct", 2 * M, 2 * M, is_distinct=True),
    Log("1-kb", 500_000, 125_000, 1000),
    Log("1-kb-distinct", 400_000, 400_000, 1000, is_distinct=True),
    Log("no-values", 6 * M, 3 * M // 2, 0),
    Log("no-values-distinct", 10 * M, 10 * M, 0, is_distinct=True),
    Log("gzip", 1 * M, M // 4, codec=CompressionType.GZIP),
    Log("snappy", 2 * M, M // 2, codec=CompressionType.SNAPPY),
    Log("lz4", 2 * M, M // 2, codec=CompressionType.LZ4),
    Log("zstd", 2 * M, M // 2, codec=CompressionType.ZSTD),
    Log("compared", 1 * M, M // 4, options=("--verify", "deep")),
    _FEW_OF_1_KB,
    replace(_FEW_OF_1_KB, name="1-kb-few-keys-across", options=_ACROSS),
    Log("half-gib-cold", 4 * M, 1 * M, is_cold=True),
    replace(_FEW_OF_1_KB, name="1-kb-few-keys-cold", is_cold=True),
)
# Bytes of a record as the generator writes it, batch headers shared out.
_RECORD_BYTES = 127


def of_size(gib: float) -> Log:
    """127-byte records over a quarter as many keys."""
    records = int(gib * 2**30 / _RECORD_BYTES)
    return Log(f"{gib:g}-gib", records, records // 4)


def compact(log: Log, source: Path) -> Compared:
    """Compact what was written at `source` and is to stay there. The log that is cleaned has the
    same files under second names: a run renames and deletes, it writes into none.
    """
    if log.is_cold:
        forget(source)
    page_cache = page_cache_bytes()
    log_dir = source.with_name("data")
    shutil.copytree(source, log_dir, copy_function=os.link)
    sources = sum(path.stat().st_size for path in log_dir.rglob("*.log"))
    segments = len(list(log_dir.rglob("*.log")))
    topic = open_log_dir(str(log_dir)).partitions[0].topic_partition.topic
    document, took = run_counted(
        "compact", "--log-dir", str(log_dir), "--topic", topic, "--apply", "--json", "--no-undo",
        "--workers", "1", "--config", "cleanup.policy=compact",
        "--run-dir", str(log_dir.parent / "runs"), *log.options,
    )  # fmt: skip
    partitions = document["partitions"]
    indexes = sum(path.stat().st_size for path in log_dir.rglob("*index"))
    shutil.rmtree(log_dir)
    work = CompactionWork(
        source_bytes=sources,
        records=sum(each["recordsRead"] for each in partitions),
        dirty_records=sum(each["recordsRead"] for each in partitions),
        # Of distinct ones the formula of keys drawn evenly would take some for the same.
        keys=2**62 if log.is_distinct else log.keys,
        kept_bytes=sum(each["bytesAfter"] for each in partitions),
        segments=segments,
        groups=sum(len(each["groups"]) for each in partitions),
        codec=int(log.codec),
        is_compared="deep" in log.options,
        across_tasks=log.options == _ACROSS,
        is_scanned_whole=sources < _SKIP_FROM_BYTES * log.batches(),
        is_cold=log.is_cold,
    )
    works = tuple(_shares(work, len(partitions)))
    return Compared(log.name, works, took, indexes, page_cache)


def _shares(work: CompactionWork, count: int) -> Iterator[CompactionWork]:
    for _ in range(count):
        yield replace(
            work,
            source_bytes=work.source_bytes // count,
            records=work.records // count,
            dirty_records=work.dirty_records // count,
            kept_bytes=work.kept_bytes // count,
            segments=work.segments // count,
            groups=work.groups // count,
        )


# Topics of ten partitions, segments of each, batches of each segment.
AUDITS = ((1, 1, 16), (50, 2, 16), (20, 20, 16), (1, 10, 3000))
LARGER_AUDIT = (60, 15, 48)


def audits(
    log_dir: Path, rounds: int, topics: int, segments: int, batches: int
) -> list[ProcessCosts]:
    """First audits of sparse logs."""
    bench_audit.generate(log_dir, topics, 10, segments, batches)
    found = []
    for _ in range(rounds):
        _, took = run_counted(
            "audit", "--log-dir", str(log_dir), "--json", "--workers", "1",
            "--config", "cleanup.policy=delete", "--run-dir", str(log_dir.parent / "runs"),
        )  # fmt: skip
        found.append(took)
        shutil.rmtree(log_dir.parent / "runs", ignore_errors=True)
    shutil.rmtree(log_dir)
    return found
