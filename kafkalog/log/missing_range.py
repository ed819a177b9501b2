"""Offsets that a log once had and that are not here: where, why, and what proves it.

What a file beside the log proves alone, and what needs a second one, is the same in front, between
and at the end. Who finds them: `missing_ranges`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafkalog.log.disk_traces import Witness
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.segment_span import SegmentSpan


class MissingPlace(StrEnum):
    """Where in the log."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


class MissingCause(StrEnum):
    """What became of the offsets, as far as the disk tells.

    lost      proven, see the head of the module
    remote    proven to be not here; the cluster says that the topic is tiered
    cleaning  of a compacted topic, where the cleaner has not said that it came so far: a loss, or a
              round that was interrupted
    compaction  of a log that is compacted, or looks so, and nothing tells how far
    stale     a log start that can be older than what retention took
    doubtful  one file alone speaks of them, and others contradict it
    damage    they may be in batches that cannot be walked over
    """

    LOST = "lost"
    REMOTE = "remote"
    CLEANING = "cleaning"
    COMPACTION = "compaction"
    STALE = "stale"
    DOUBTFUL = "doubtful"
    DAMAGE = "damage"


@dataclass(frozen=True, slots=True)
class MissingRange(JsonFacts):
    """No file here has the offsets from `start_offset` to `end_offset` (excluded). `evidence` says
    how that is known, or why it proves nothing; `path` is the file behind the gap, the last segment
    or the partition's directory, `position` where that segment ends. `is_contradicted`: one file
    alone tells, and others know no such offsets.
    """

    place: MissingPlace
    start_offset: int
    end_offset: int
    cause: MissingCause
    evidence: str
    path: str
    position: int | None = None
    is_contradicted: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether the log had these offsets, and they are not here."""
        return self.cause in (MissingCause.LOST, MissingCause.REMOTE)

    def __str__(self) -> str:
        return f"offsets {self.start_offset} to {self.end_offset - 1} are not here: {self.evidence}"


def behind_bad_batches(
    span: SegmentSpan, end: int, place: MissingPlace, partition: PartitionInventory
) -> MissingRange:
    """A segment whose batches break the format, or that ends inside of one: who reads it says so,
    and what else there is.
    """
    path = next(s.path for s in partition.segments if s.base_offset == span.base_offset)
    evidence = "not proven: the segment in front of them is damaged there"
    return MissingRange(
        place, span.next_offset, end, MissingCause.DAMAGE, evidence, path, span.end_position
    )


def agreed_end(witnesses: Sequence[Witness]) -> int | None:
    """Up to where a strong witness knows the log, or else two others; None if none do."""
    strong = [witness.end_offset for witness in witnesses if witness.is_strong]
    if strong:
        return max(strong)
    return sorted(witness.end_offset for witness in witnesses)[-2] if len(witnesses) > 1 else None


def orphan_offsets(partition: PartitionInventory) -> list[int]:
    """Base offsets of indexes without a `.log` of any state."""
    others = {segment.base_offset for segment in partition.other_segments}
    return [base for base in partition.orphan_indexes if base not in others]
