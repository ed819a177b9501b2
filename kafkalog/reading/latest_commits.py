"""The latest offset commits of a large `__consumer_offsets`, by several tasks a partition.

The view `latest_offset_commits` is a task a partition. Here each task has a part of one, and tells
the latest record of each key in it; of these the one with the highest offset counts, and a
tombstone there means that nothing is committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import pyarrow as pa

from kafkalog.reading.offset_views import offset_partitions, read_offset_commits
from kafkalog.reading.request import ReadCounts, ReadRequest
from kafkalog.reading.scan import open_paths
from kafkalog.reading.selection import PartitionSelection, select_partitions
from kafkalog.reading.splits import SPLIT_BYTES, ScanSplit, plan_splits

# Where there are transactions each part looks at the headers behind it: so many parts at most.
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class CommitsPart:
    """Some splits of a partition, and the segments behind them. Can be pickled."""

    splits: tuple[ScanSplit, ...]
    later_paths: tuple[str, ...]


def plan_commit_parts(paths: Sequence[str], *, part_bytes: int = SPLIT_BYTES) -> list[CommitsPart]:
    """Parts of at least `part_bytes` of every partition of the topic below the paths."""
    inventory, named = open_paths(paths)
    selection = PartitionSelection().naming(named)
    partitions = select_partitions(inventory, selection, every_kind=False)
    return [
        part
        for partition in offset_partitions(partitions, selection)
        for part in _parts(plan_splits([partition], selection), part_bytes)
    ]


def _parts(splits: Sequence[ScanSplit], part_bytes: int) -> Iterator[CommitsPart]:
    ends = list(accumulate(split.end - split.start for split in splits))
    size = max(part_bytes, -(-ends[-1] // _MOST_PARTS)) if ends else 1
    paths = list(dict.fromkeys(split.path for split in splits))
    numbered = zip(ends, splits, strict=True)
    for _, group in groupby(numbered, lambda pair: (pair[0] - 1) // size):
        part = tuple(split for _, split in group)
        behind = paths[paths.index(part[-1].path) + 1 :]
        yield CommitsPart(part, tuple(behind))


def read_commits_part(part: CommitsPart, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """The latest record of each key of the part. Raises as the view."""
    return read_offset_commits(
        part.splits, request, ReadCounts(), latest=True, later_paths=part.later_paths
    )
