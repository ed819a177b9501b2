"""How fast are batches and records found and copied out, on one core, without Spark?

    python -m tests.benchmarks.bench_decode [--records 4000000] [--value-bytes 100] [--rounds 3]

Prints one JSON line: CPU seconds (so a busy machine changes little), the median of the rounds, over
files in the page cache:

 scan_headers    batch headers of the whole log, bodies skipped
 read            chunks of whole batches into a reused buffer
 checksums       CRC-32C of every batch
 spans           where the parts of each record are
 gather          keys and values into Arrow's layout
 into_arrow      the same by `read_records`: key, value, offset, timestamp as Arrow batches
 kafka_python    its record classes over a part of the same bytes, for comparison
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kafkalog
from kafkalog.batches.arena import Arena
from kafkalog.batches.batch_table import verify_checksums
from kafkalog.batches.gathering import gather_spans, measure_spans
from kafkalog.batches.record_areas import open_record_areas
from kafkalog.batches.spans import RecordSpans, decode_spans
from kafkalog.log.segment_file import ChunkBuffers, read_chunks
from kafkalog.log.segment_headers import scan_headers
from tests.benchmarks.generate import LogSpec, write_log
from tests.benchmarks.side_by_side import fast_directory
from tests.support.kafka_python import MemoryRecords

KAFKA_PYTHON_BYTES = 20_000_000


class Gathered:
    """Reused outputs of `gather`."""

    def __init__(self) -> None:
        self.values = np.empty(0, np.uint8)
        self.offsets = np.empty(0, np.int32)
        self.validity = np.empty(0, np.uint8)

    def take(self, buf: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> int:  # type: ignore[type-arg]
        n, (total, _) = lengths.size, measure_spans(lengths)
        if self.values.size < total:
            self.values = np.empty(total * 2, np.uint8)
        if self.offsets.size <= n:
            self.offsets, self.validity = np.empty(2 * n + 1, np.int32), np.empty(n, np.uint8)
        gather_spans(buf, starts, lengths, self.values, self.offsets[: n + 1], self.validity)
        return total


def timed(
    seconds: dict[str, float], name: str, call: Callable[..., object], *args: object
) -> object:
    start = time.process_time()
    result = call(*args)
    seconds[name] += time.process_time() - start
    return result


def one_round(paths: list[str], memory: tuple[ChunkBuffers, Arena, Gathered]) -> dict[str, float]:
    """Seconds of each step over all files."""
    seconds: dict[str, float] = defaultdict(float)
    buffers, arena, gathered = memory
    spans: RecordSpans | None = None
    for path in paths:
        timed(seconds, "scan_headers", scan_headers, path)
        chunks = iter(read_chunks(path, buffers=buffers))
        while (chunk := timed(seconds, "read", next, chunks, None)) is not None:
            place = chunk.buf, chunk.position, chunk.rows  # type: ignore[attr-defined]
            good = timed(seconds, "checksums", verify_checksums, *place)
            assert good.all()  # type: ignore[attr-defined]
            areas = timed(seconds, "areas", open_record_areas, *place, arena)
            spans = timed(seconds, "spans", decode_spans, areas, place[2], path, spans)  # type: ignore[assignment]
            assert spans is not None
            buf = areas.buf  # type: ignore[attr-defined]
            for starts, lengths in (
                (spans.key_starts, spans.key_lengths),
                (spans.value_starts, spans.value_lengths),
            ):
                timed(seconds, "gather", gathered.take, buf, starts, lengths)
    return seconds


def kafka_python_records_per_second(path: str) -> float:
    with Path(path).open("rb") as file:
        data = file.read(KAFKA_PYTHON_BYTES)
    start, n = time.process_time(), 0
    records = MemoryRecords(data)
    while records.has_next():
        n += sum(1 for _ in records.next_batch())
    return n / (time.process_time() - start)


def arrow_records_per_second(log_dir: Path) -> float:
    """The reader people call, over the whole log."""
    start = time.process_time()
    batches = kafkalog.read_records(log_dir, columns=["key", "value", "offset", "timestamp"])
    records = sum(batch.num_rows for batch in batches)
    return records / (time.process_time() - start)


def main() -> None:
    """Write a log, measure, print the JSON line."""
    parser = argparse.ArgumentParser(description="Decode speed on one core.")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--codec", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: memory)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir or fast_directory()) as folder:
        spec = LogSpec(
            records=arguments.records,
            keys=max(1, arguments.records // 4),
            value_bytes=arguments.value_bytes,
            codec=arguments.codec,
        )
        logs = sorted(write_log(Path(folder), "bench", spec).glob("*.log"))
        paths = [str(path) for path in logs if path.stat().st_size]
        log_bytes = sum(path.stat().st_size for path in logs)
        memory = ChunkBuffers(), Arena(), Gathered()
        one_round(paths, memory)
        rounds = [one_round(paths, memory) for _ in range(arguments.rounds)]
        into_arrow = statistics.median(
            arrow_records_per_second(Path(folder)) for _ in range(arguments.rounds)
        )
        seconds = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
        peer = kafka_python_records_per_second(paths[0])
    decode = sum(seconds.values()) - seconds["scan_headers"]
    print(
        json.dumps(
            {
                "benchmark": "decode",
                "records": spec.records,
                "log_bytes": log_bytes,
                "seconds": {name: round(value, 4) for name, value in seconds.items()},
                "scan_headers_seconds_per_gib": round(
                    seconds["scan_headers"] * 2**30 / log_bytes, 4
                ),
                "records_per_second": {
                    name: round(spec.records / seconds[name]) for name in ("spans", "gather")
                }
                | {
                    "read_to_columns": round(spec.records / decode),
                    "into_arrow": round(into_arrow),
                    "kafka_python": round(peer),
                },
                "bytes_per_second": round(log_bytes / decode),
                "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "machine": platform.machine(),
            }
        )
    )


if __name__ == "__main__":
    main()
