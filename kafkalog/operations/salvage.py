"""Salvage of many partitions: copies, one after the other, and the manifest; the same as the JSON
document of `--json` and as a table.

Log dirs are only read: there is no lock, no journal and nothing to undo, so of the frame of the
verbs that change logs (`frame.apply`) only the shape of a run is here: partitions, a result each,
faults apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.clock import now_ms
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import select_partitions
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.operations.run_frame import Run
from kafkalog.operations.run_steps import Problems, Tell
from kafkalog.planning.statuses import FAILED
from kafkalog.repair.salvage import MANIFEST_FILE, SalvagedPartition, salvage_partition
from kafkalog.runs.durable import make_directories
from kafkalog.runs.run_dir import new_run_id
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.output_dir import check_output
from kafkalog.texts import format_count

SalvageRun = Run[PartitionInventory, SalvagedPartition]

# The status of a partition of which something was left out or is missing; it stands in no document.
_INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class SalvageRequest:
    """Which partitions to copy (topics: names or globs, both empty for all), into which new or
    empty directory, and from which size on a batch is copied without a look at its records.
    """

    log_dirs: Sequence[str]
    output: str
    max_batch_bytes: int
    topics: Sequence[str] = ()
    topic_partitions: Sequence[TopicPartition] = ()


def salvage_run(
    request: SalvageRequest, tell: Tell = lambda _: None, files: LocalFiles | None = None
) -> SalvageRun:
    """Write the copies and the manifest. What cannot be done of one partition is in its result.

    Raises InvalidConfigError for paths and partitions that are not there, and for an output that is
    not new or empty, or lies inside a log dir.
    """
    found = open_log_dir(*request.log_dirs, reads_buckets=False)
    partitions = select_partitions(found, request.topics, request.topic_partitions)
    output = Path(request.output)
    check_output(output, [each.path for each in partitions], [each.log_dir for each in partitions])
    make_directories(output, exist_ok=True)
    files, run_id, salvaged_ms = files or LocalFiles(), new_run_id(), now_ms()
    results = []
    for partition in partitions:
        result = salvage_partition(
            partition,
            output,
            now_ms=salvaged_ms,
            files=files,
            run_id=run_id,
            max_batch_bytes=request.max_batch_bytes,
        )
        results.append(result)
        if not result.is_whole:
            tell(_describe(result))
    problems = Problems()
    problems.add_faults((f"{r.topic}-{r.partition}", r.fault) for r in results)
    run = SalvageRun(
        run_id,
        applied=False,
        plans=tuple(partitions),
        results=tuple(results),
        faults=tuple(problems.faults),
        keeps_undo=False,
        output=request.output,
    )
    data = json.dumps(salvage_document(run), ensure_ascii=False, indent=2).encode() + b"\n"
    path = output / MANIFEST_FILE
    files.replace_contents(str(path), data, f"{path}.tmp")
    return run


def salvage_statuses(run: SalvageRun) -> list[str]:
    """One status per partition: `salvaged` only where all of it was there."""
    return [
        result.status if result.is_whole or result.status == FAILED else _INCOMPLETE
        for result in run.results
    ]


def salvage_document(run: SalvageRun) -> dict[str, Any]:
    """The manifest, which is the document of `--json` as well."""
    return {"partitions": [_document(result) for result in run.results]}


def salvage_table(run: SalvageRun) -> list[dict[str, Any]]:
    """A row for each partition."""
    return [_row(result) for result in run.results]


def _row(result: SalvagedPartition) -> dict[str, Any]:
    gaps = [gap for segment in result.segments for gap in segment.left_out]
    return {
        "topic": result.topic,
        "partition": result.partition,
        "status": result.status,
        "segments": len(result.segments),
        "batches": sum(segment.batches_count for segment in result.segments),
        "bytes": sum(segment.bytes_after for segment in result.segments),
        "leftOut": len(gaps),
        "leftOutBytes": sum(gap.length for gap in gaps),
        "missing": len(result.lost),
        "output": result.output,
    }


def _describe(result: SalvagedPartition) -> str:
    name = f"{result.topic}-{result.partition}"
    if result.status == FAILED:
        return f"{name}: {result.reason}"
    gaps = [gap for segment in result.segments for gap in segment.left_out]
    parts = [str(missing) for missing in result.lost]
    if gaps:
        parts.insert(0, f"{format_count(len(gaps), 'range')} left out, the first: {gaps[0].reason}")
    return f"{name}: {'; '.join(parts)}"


def _document(result: SalvagedPartition) -> dict[str, Any]:
    return {
        "topic": result.topic,
        "partition": result.partition,
        "path": result.path,
        "output": result.output,
        "status": result.status,
        "reason": result.reason,
        "logStartOffset": result.log_start_offset,
        "logEndOffset": result.log_end_offset,
        "missing": [
            {
                "firstOffset": missing.start_offset,
                "lastOffset": missing.end_offset - 1,
                "isProven": missing.is_proven,
                "cause": missing.cause.value,
                "evidence": missing.evidence,
            }
            for missing in result.missing
        ],
        "segments": [
            {
                "baseOffset": segment.base_offset,
                "path": segment.path,
                "bytesBefore": segment.bytes_before,
                "bytesAfter": segment.bytes_after,
                "batchesCount": segment.batches_count,
                "recordsCount": segment.records_count,
                "leftOut": [
                    {
                        "position": gap.position,
                        "length": gap.length,
                        "firstOffset": gap.first_offset,
                        "lastOffset": gap.last_offset,
                        "reason": gap.reason,
                    }
                    for gap in segment.left_out
                ],
            }
            for segment in result.segments
        ],
    }
