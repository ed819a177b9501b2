"""What the headers of a partition's segments said, kept for the next audit: an unchanged log is not
read again.

A scan holds for one key: a digest of the partition's token (size, modification time and inode of
every segment, its indexes and checkpoints) and of all else that decides what a scan makes of it.
Time decides one thing, which producers a broker still knows: where one has expired since, whether
it is forgotten depends on where it was read (a snapshot or a batch), and the log is read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkalog import __version__
from kafkalog.auditing.header_contents import HeaderContents
from kafkalog.auditing.segment_statistics import SegmentStatistics
from kafkalog.format.file_names import transaction_index_file_name
from kafkalog.log.inventory import ActiveProducer, JsonFacts, PartitionFacts, PartitionInventory


@dataclass(frozen=True, slots=True)
class KnownScan(JsonFacts):
    """What a scan gave. `headers` None where there was nothing to tell of contents."""

    key: str
    now_ms: int
    facts: PartitionFacts
    statistics: tuple[SegmentStatistics, ...]
    headers: HeaderContents | None

    def to_text(self) -> str:
        """As it is kept."""
        return json.dumps(self.to_json(), separators=(",", ":"))


def scan_key(partition: PartitionInventory, expiration_ms: int) -> str:
    """Which scan holds for a partition as it is now; of another version of kafkalog none does."""
    depends_on = [
        __version__,
        partition.token,
        str(expiration_ms),
        *_transaction_indexes(partition),
    ]
    return hashlib.sha256("\0".join(depends_on).encode()).hexdigest()


def recall_scan(text: str, key: str, *, now_ms: int, expiration_ms: int) -> KnownScan | None:
    """The kept scan if it is the one of this key; None also of what cannot be understood."""
    if f'"{key}"' not in text[: len(key) + 16]:
        return None
    try:
        known = KnownScan.from_json(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    changed = now_ms < known.now_ms or any(
        _is_expired(producer, known.now_ms, expiration_ms)
        != _is_expired(producer, now_ms, expiration_ms)
        for producer in known.facts.active_producers
    )
    return None if changed else known


def _is_expired(producer: ActiveProducer, now_ms: int, expiration_ms: int) -> bool:
    """As a broker forgets producers: never one with an open transaction."""
    idle = now_ms - producer.last_timestamp_ms >= expiration_ms
    return idle and producer.current_txn_first_offset is None


def _transaction_indexes(partition: PartitionInventory) -> Iterator[str]:
    """Their identities: whose transactions were aborted is written there alone."""
    for segment in partition.segments:
        if segment.txn_index_bytes:
            name = transaction_index_file_name(segment.base_offset)
            try:
                stat = Path(partition.path, name).stat()
            except OSError:
                yield f"{name} gone"
            else:
                yield f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
