"""What the groups of a cluster have committed: per partition of a topic the lowest and the highest
offset, and who commits more than anybody needs. `read_commits` reads it.

A group's commits are all in one partition of the offsets topic, so these are sums that other
partitions are put together with.

Source: Kafka GroupMetadataManager, OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kafkalog.format.redaction import redacted_name
from kafkalog.log.json_facts import JsonFacts


@dataclass(frozen=True, slots=True)
class CommittedRange(JsonFacts):
    """Of one partition of a topic: how many groups have committed for it, the lowest and the
    highest offset in force, whose they are, and when (ms) the lowest was committed.
    """

    topic: str
    partition: int
    groups: int
    lowest: int
    lowest_group: str
    lowest_commit_ms: int
    highest: int
    highest_group: str


@dataclass(frozen=True, slots=True)
class BusyCommitter(JsonFacts):
    """A group that commits for a topic oftener than once a second and partition, as far as the log
    still has its commits; `size_in_bytes` are those of keys and values.
    """

    group: str
    topic: str
    commits: int
    partitions: int
    size_in_bytes: int
    first_ms: int
    last_ms: int

    @property
    def commits_per_second(self) -> float:
        """Of all partitions together."""
        return self.commits * 1000 / max(self.last_ms - self.first_ms, 1)


@dataclass(frozen=True, slots=True)
class Commits(JsonFacts):
    """What one partition of the offsets topic tells."""

    ranges: tuple[CommittedRange, ...]
    busy: tuple[BusyCommitter, ...]

    def redacted(self) -> Commits:
        """The same with a digest in place of each group's name."""
        ranges = (
            replace(
                r,
                lowest_group=redacted_name(r.lowest_group),
                highest_group=redacted_name(r.highest_group),
            )
            for r in self.ranges
        )
        busy = (replace(b, group=redacted_name(b.group)) for b in self.busy)
        return Commits(tuple(ranges), tuple(busy))


def merge_ranges(ranges: Iterable[CommittedRange]) -> dict[tuple[str, int], CommittedRange]:
    """One range a topic's partition."""
    merged: dict[tuple[str, int], CommittedRange] = {}
    for found in ranges:
        key = found.topic, found.partition
        known = merged.get(key)
        if known is None:
            merged[key] = found
            continue
        low = min(known, found, key=lambda r: r.lowest)
        high = max(known, found, key=lambda r: r.highest)
        merged[key] = CommittedRange(
            *key, known.groups + found.groups, low.lowest, low.lowest_group, low.lowest_commit_ms,
            high.highest, high.highest_group,
        )  # fmt: skip
    return merged
