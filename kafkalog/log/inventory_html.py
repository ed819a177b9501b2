"""An inventory and a partition as a notebook shows them: what `_repr_html_` returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kafkalog.html.pieces import Cell, Part, Piece, render
from kafkalog.log.inventory import LogInventory, PartitionInventory, SegmentInfo
from kafkalog.texts import format_bytes, format_count, format_timestamp


def inventory_html(inventory: LogInventory) -> str:
    """A row a topic and kind of directory, the problems of the log dirs and partitions below."""
    partitions = inventory.partitions
    size = sum(partition.size_in_bytes for partition in partitions)
    log_dirs = {partition.log_dir for partition in partitions}
    rows = [
        _topic_row(topic, kind, list(group))
        for (topic, kind), group in groupby(
            sorted(partitions, key=_topic_and_kind), key=_topic_and_kind
        )
    ]
    notes = [*inventory.problems]
    for partition in partitions:
        own = (problem for problem in partition.problems if problem not in inventory.problems)
        notes += [f"{partition.topic_partition}: {problem}" for problem in own]
    return render(
        Piece(
            "Kafka log",
            _counted(len(partitions), "partition")
            + f" in {_counted(len(log_dirs), 'log dir')}, {format_bytes(size)}",
            columns=("topic", "kind", "partitions", "segments", "size", "last record"),
            rows=rows,
            notes=notes,
        )
    )


def partition_html(partition: PartitionInventory) -> str:
    """Where the log begins and ends, a map of its segments by size, and a row a segment."""
    checkpoints = partition.checkpoints
    known = {
        "high watermark": checkpoints.high_watermark,
        "recovery point": checkpoints.recovery_point,
        "cleaned up to": checkpoints.cleaner,
    }
    facts = [
        f"offsets {partition.log_start_offset:,} to {partition.log_end_offset:,} (end excluded)",
        *(f"{name} {offset:,}" for name, offset in known.items() if offset is not None),
        format_bytes(partition.size_in_bytes),
    ]
    return render(
        Piece(
            f"{partition.topic_partition} ({partition.kind})",
            "; ".join(facts),
            parts=[
                Part(_label(segment), max(1, segment.size_in_bytes), _kind(segment))
                for segment in partition.segments
            ],
            map_label=f"{format_count(len(partition.segments), 'segment')} by size",
            columns=("base offset", "bytes", "last record", "index bytes", "active"),
            rows=[_segment_row(segment) for segment in partition.segments],
            notes=partition.problems,
        )
    )


def _topic_and_kind(partition: PartitionInventory) -> tuple[str, str]:
    return partition.topic_partition.topic, str(partition.kind)


def _topic_row(topic: str, kind: str, partitions: Sequence[PartitionInventory]) -> list[Cell]:
    segments = [segment for partition in partitions for segment in partition.segments]
    size = sum(segment.size_in_bytes for segment in segments)
    return [topic, kind, len(partitions), len(segments), format_bytes(size), _newest(segments)]


def _segment_row(segment: SegmentInfo) -> list[Cell]:
    index_bytes = segment.offset_index_bytes + segment.time_index_bytes + segment.txn_index_bytes
    active = "active" if segment.is_active else ""
    return [
        segment.base_offset, segment.size_in_bytes, _newest([segment]), index_bytes, active,
    ]  # fmt: skip


def _label(segment: SegmentInfo) -> str:
    return f"from offset {segment.base_offset:,}: {format_bytes(segment.size_in_bytes)}"


def _kind(segment: SegmentInfo) -> str:
    return "active" if segment.is_active else "kept"


def _newest(segments: Iterable[SegmentInfo]) -> str:
    """The largest timestamp that the time indexes know, `-` where they know none."""
    largest = max((segment.largest_timestamp_ms for segment in segments), default=-1)
    return format_timestamp(largest) if largest >= 0 else "-"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
