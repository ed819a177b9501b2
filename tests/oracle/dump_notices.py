"""What DumpLogSegments complains about, without the two notices that any compacted log gets.

"Non-consecutive offsets" is what compaction is. A time-index entry that points at an emptied batch
is reported as a mismatch with log timestamp -1: the batch has no record to take a time from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.oracle.kafka import Kafka

HARMLESS = (
    re.compile(r"Non-consecutive offsets in .*"),
    re.compile(r"\s*-?\d+ is followed by \d+"),
    re.compile(r"Found timestamp mismatch in :.*"),
    re.compile(r"\s*Index timestamp: -?\d+, log timestamp: -1"),
)


def bad_lines(kafka: Kafka, partition_dir: Path) -> Iterator[str]:
    """Every complaint of Kafka's tool about the files of a partition."""
    answer = kafka.dump_log_segments(partition_dir)
    for line in [*answer["suspicious"], *answer["stderr"].splitlines()]:
        if line.strip() and not any(harmless.fullmatch(line) for harmless in HARMLESS):
            yield line
