"""`kafkalog bucket --rebuild-metadata`: `__remote_log_metadata` made anew from remote storage."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkalog.bucket.rebuild import RebuiltMetadata, rebuild_metadata
from kafkalog.bucket.request import BucketRequest
from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.tables import show_table
from kafkalog.texts import format_bytes


def rebuild(
    args: argparse.Namespace, request: BucketRequest, tell: Callable[[str], None]
) -> ExitCode:
    """FINDINGS if a segment was left out."""
    if args.output is None:
        raise UsageError("--rebuild-metadata needs --output DIR, a new or empty directory")
    if args.deep:
        raise UsageError("--rebuild-metadata or --deep, not both")
    started = time.monotonic()
    made = rebuild_metadata(request, Path(args.output), args.metadata_partitions)
    seconds = time.monotonic() - started
    if args.json:
        write_json(_document(made, seconds))
    else:
        show_table([row for row in _partitions(made) if row["recordsCount"]], tell=tell)
        show_table(_left_out(made), is_main=False, tell=tell)
    tell(_summary(made, seconds))
    return ExitCode.FINDINGS if made.left_out else ExitCode.DONE


def _document(made: RebuiltMetadata, seconds: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 3),
        "output": str(made.output),
        "segmentsCount": len(made.copies),
        "sizeInBytes": sum(copy.size_in_bytes for copy in made.copies),
        "partitions": _partitions(made),
        "leftOut": _left_out(made),
    }


def _partitions(made: RebuiltMetadata) -> list[dict[str, Any]]:
    return [
        {
            "partition": each.number,
            "path": each.path,
            "segmentsCount": each.segments_count,
            "recordsCount": each.records_count,
            "sizeInBytes": each.size_in_bytes,
        }
        for each in made.partitions
    ]


def _left_out(made: RebuiltMetadata) -> list[dict[str, Any]]:
    return [
        {
            "topic": each.segment.name,
            "partition": each.segment.partition,
            "segmentId": each.segment.segment_id,
            "path": each.segment.place,
            "sizeInBytes": each.segment.size_in_bytes,
            "reason": each.reason,
        }
        for each in made.left_out
    ]


def _summary(made: RebuiltMetadata, seconds: float) -> str:
    size = sum(copy.size_in_bytes for copy in made.copies)
    left_out = f", {len(made.left_out)} left out" if made.left_out else ""
    topics = len({copy.copied.topic_id for copy in made.copies})
    return (
        f"{len(made.copies)} segments of {format_bytes(size)} and {topics} topics in"
        f" {seconds:.1f} s{left_out}: {len(made.partitions)} partitions in {made.output}"
    )
