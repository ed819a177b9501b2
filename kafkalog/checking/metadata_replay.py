"""The cluster's metadata log replayed as a start does, by the interpreter of `cluster`.

A controller ends itself at the first record that it cannot replay, whatever its batch's checksum
says, and does so at each start.

Source: Kafka MetadataLoader, MetadataRecordSerde, QuorumController; seen with 4.3.1 (tests/oracle).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.cluster.history import ClusterHistory


def check_replay(directory: str) -> Iterator[Finding]:
    """The records behind the newest whole snapshot of a metadata partition."""
    found = FindingList(directory)
    history = ClusterHistory(Path(directory), as_started=True)
    for error in history.refused:
        found.add(
            "metadata-record",
            error.reason,
            path=error.path,
            position=error.position,
            offset=error.offset,
        )
    for name, count in sorted(history.unread.items()):
        if name.startswith("type "):
            found.add("metadata-record-unknown", f"{count} of {name}")
    yield from found.findings()
