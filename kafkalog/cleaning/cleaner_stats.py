"""What a round did to one partition, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.log.json_facts import JsonFacts


@dataclass(slots=True)
class CleanerStats(JsonFacts):
    """Counts over the source segments of a round (Kafka: CleanerStats).

    `superseded`, `tombstone`, `no_key`, `aborted`, `marker`: records removed, by the rule that
    removed them. Bytes are those of
    `.log` files. Of the whole round alone: `end_offset`, where it ended, below the plan's with a
    bounded map; `segments_split`, sources that had to be split first. `corrupt_batches` were kept
    as they were and count in nothing else of records.
    """

    records_read: int = 0
    records_retained: int = 0
    batches_read: int = 0
    batches_retained: int = 0
    batches_copied: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    superseded: int = 0
    tombstone: int = 0
    no_key: int = 0
    aborted: int = 0
    marker: int = 0
    distinct_keys: int = 0
    end_offset: int = 0
    segments_split: int = 0
    corrupt_batches: int = 0

    def add(self, other: CleanerStats) -> None:
        """Add another's counts, of another group of the same round."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
