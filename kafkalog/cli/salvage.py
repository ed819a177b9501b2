"""`kafkalog salvage`: valid copies of damaged partitions without the bad ranges, and a manifest."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, say, write_json, write_table
from kafkalog.clock import now_ms
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.selection import select_partitions
from kafkalog.planning.statuses import FAILED
from kafkalog.repair.salvage import MANIFEST_FILE, SalvagedPartition, salvage_partition
from kafkalog.runs.durable import make_directories
from kafkalog.swap.local_files import LocalFiles
from kafkalog.swap.output_dir import check_output


def run(args: argparse.Namespace) -> ExitCode:
    """Write the copies and the manifest; FINDINGS if anything was left out, is missing or
    could not be done.
    """
    if args.output is None:
        raise UsageError("salvage needs --output DIR, a new directory outside of the log dirs")
    started = time.monotonic()
    limit = check_max_batch_bytes(args.max_batch_bytes)
    inventory = open_log_dir(*args.log_dir)
    partitions = select_partitions(inventory, args.topic, args.topic_partition)
    output = Path(args.output)
    check_output(output, [each.path for each in partitions], [each.log_dir for each in partitions])
    make_directories(output, exist_ok=True)
    files, salvaged_ms = LocalFiles(), now_ms()
    done = []
    for partition in partitions:
        result = salvage_partition(
            partition, output, now_ms=salvaged_ms, files=files, max_batch_bytes=limit
        )
        done.append(result)
        if not result.is_whole:
            say(_line(result))
    manifest = {"partitions": [_document(result) for result in done]}
    data = json.dumps(manifest, ensure_ascii=False, indent=2).encode() + b"\n"
    path = output / MANIFEST_FILE
    files.replace_contents(str(path), data, f"{path}.tmp")
    if args.json:
        write_json(manifest)
    elif done:
        rows = [_row(result) for result in done]
        write_table(list(rows[0]), rows)
        say(f"{len(done)} partitions in {time.monotonic() - started:.1f} s; see {path}")
    return ExitCode.DONE if all(result.is_whole for result in done) else ExitCode.FINDINGS


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


def _line(result: SalvagedPartition) -> str:
    name = f"{result.topic}-{result.partition}"
    if result.status == FAILED:
        return f"{name}: {result.reason}"
    gaps = [gap for segment in result.segments for gap in segment.left_out]
    parts = [str(missing) for missing in result.lost]
    if gaps:
        parts.insert(0, f"{len(gaps)} ranges left out, the first: {gaps[0].reason}")
    return f"{name}: {'; '.join(parts)}"


def _document(result: SalvagedPartition) -> dict[str, Any]:
    """A partition as it stands in the manifest and in `--json`."""
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
