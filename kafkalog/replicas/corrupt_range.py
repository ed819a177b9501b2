"""A range of a copy that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.log.json_facts import JsonFacts


@dataclass(frozen=True, slots=True)
class CorruptRange(JsonFacts):
    """Offsets [start, end) of a copy that cannot be read, where in which file, and why. Of a batch
    that has offsets once more, those from `unread_from` on had not been read before.
    """

    start_offset: int
    end_offset: int
    path: str
    position: int
    reason: str
    unread_from: int
