"""What the headers of a partition's segments said, kept for the next audit.

A scan holds as a whole for one key: a digest of the directory (names, sizes, modification times and
inodes), of the partition's lines in the checkpoints, and of all else that decides what a scan makes
of it. Then nothing of the partition is read again. Time decides one thing, which producers a broker
still knows: where one has expired since, whether it is forgotten depends on where it was read (a
snapshot or a batch), and the scan does not hold.

Where it does not, each segment stands for itself: one whose `.log` has the same size, modification
time and inode, and the same aborted transactions, is not read again. What runs through segments,
producers and transactions, is put together anew from what is kept of each and from the newest
snapshot on; a segment behind that snapshot is read again if it has producers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkalog.auditing.audited_partition import Leftover
from kafkalog.auditing.known_files import KnownFiles
from kafkalog.auditing.packed_text import pack_text, unpack_text
from kafkalog.code_digest import code_digest
from kafkalog.contents.header_contents import HeaderContents, HeaderContentsScan
from kafkalog.contents.scan_contents import ScanContents
from kafkalog.contents.segment_statistics import FileBytes, StatisticsBuilder
from kafkalog.log.header_facts import ActiveProducer, PartitionFacts, SegmentFacts
from kafkalog.log.inventory import FileIdentity, JsonFacts, PartitionInventory, SegmentInfo

# What a text that cannot be understood raises.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)
# What one segment may be kept with: of more it is read again.
_MOST_SCANS = 64
_MOST_TRANSACTIONS = 4096


@dataclass(frozen=True, slots=True)
class KnownLog(JsonFacts):
    """Of a whole log. `facts` has no segments, `headers` is None where nothing tells of contents;
    `bytes_by_kind` and `leftovers` are those of the directory.
    """

    now_ms: int
    facts: PartitionFacts
    headers: HeaderContents | None
    bytes_by_kind: dict[str, int]
    leftovers: tuple[Leftover, ...]
    files: KnownFiles
    indexes_end_in_log: bool = False


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """Of one segment. `aborted`: a digest of the aborted transactions that end in it; `scans`: what
    each scan of its headers said of contents.
    """

    identity: FileIdentity
    aborted: str
    files: FileBytes
    facts: SegmentFacts
    counts: StatisticsBuilder
    scans: tuple[ScanContents, ...]

    def to_row(self) -> list[Any]:
        """As it is kept."""
        scans = [scan.to_row() for scan in self.scans]
        parts = (self.identity, self.files, self.facts, self.counts)
        return [self.aborted, scans, *(part.to_row() for part in parts)]

    @property
    def is_whole(self) -> bool:
        """Whether what is kept says all that another scan would."""
        has_few = len(self.scans) <= _MOST_SCANS and all(
            len(scan.first_txns) + len(scan.last_txns) + len(scan.bare_markers) + len(scan.horizons)
            <= _MOST_TRANSACTIONS
            for scan in self.scans
        )
        return has_few and self.facts.corrupt is None

    def is_same(self, segment: SegmentInfo, headers: HeaderContentsScan | None) -> bool:
        """Whether it still tells of a segment of the log that `headers` is to be shown."""
        if segment.identity != self.identity or segment.base_offset != self.facts.base_offset:
            return False
        # The same bytes may mean another thing: what of them is aborted the transaction index says,
        # which is a file of its own and may have come or gone.
        return headers is None or (
            bool(self.scans) and self.aborted == aborted_digest(headers, self.facts)
        )


class CarriedSegment(NamedTuple):
    """Of a segment of a log that holds as a whole, what its statistics are made from."""

    files: FileBytes
    facts: SegmentFacts
    counts: StatisticsBuilder


def _carried_of(row: list[Any]) -> CarriedSegment:
    _, _, _, files, facts, counts = row
    # Plain numbers, and a dictionary of them: nothing is to be decoded.
    return CarriedSegment(
        FileBytes(*files), SegmentFacts.from_row(facts), StatisticsBuilder(*counts)
    )


def _segment_of(row: list[Any]) -> KnownSegment:
    aborted, scans, identity, files, facts, counts = row
    return KnownSegment(
        FileIdentity.from_row(identity),
        aborted,
        FileBytes.from_row(files),
        SegmentFacts.from_row(facts),
        StatisticsBuilder.from_row(counts),
        tuple(map(ScanContents.from_row, scans)),
    )


def aborted_digest(headers: HeaderContentsScan, facts: SegmentFacts) -> str:
    """Of the aborted transactions that end in a segment; empty without any."""
    markers = headers.aborted_within(facts.base_offset, facts.next_offset)
    return hashlib.sha256(markers.tobytes()).hexdigest()[:16] if markers.size else ""


def scan_key(partition: PartitionInventory, expiration_ms: int) -> str:
    """Which scan holds for a partition as it is now, empty if none does; of another version of
    kafkalog none does.
    """
    if not partition.digest or partition.problems:
        return ""
    depends_on = (
        code_digest(),
        partition.digest,
        str(partition.kind),
        repr(partition.checkpoints.to_row()),
        str(partition.has_remote_segments),
        str(partition.log_start_offset),
        str(partition.log_end_offset),
        str(expiration_ms),
    )
    return hashlib.sha256("\0".join(depends_on).encode()).hexdigest()


def packed_scan(key: str, log: KnownLog, segments: Iterable[KnownSegment]) -> bytes:
    """A scan as it is kept."""
    rows = [segment.to_row() for segment in segments]
    kept = {"code": code_digest(), "key": key, "log": log.to_row(), "segments": rows}
    return pack_text(json.dumps(kept, separators=(",", ":")))


def recall_scan(
    packed: bytes, partition: PartitionInventory, *, now_ms: int, expiration_ms: int
) -> tuple[KnownLog, tuple[CarriedSegment, ...]] | None:
    """The kept scan if it holds for the partition as it is now; None also of what cannot be
    understood.
    """
    key = scan_key(partition, expiration_ms) if packed else ""
    try:
        # The key stands in front: of a text that does not hold what is behind it is not parsed.
        if not key or f'"{key}"' not in (text := unpack_text(packed))[:256]:
            return None
        kept = json.loads(text)
        log = KnownLog.from_row(kept["log"])
        segments = tuple(map(_carried_of, kept["segments"]))
        # Facts name the producers that a broker would know then. Time alone changes that: where one
        # has expired since, the log is scanned again.
        if now_ms < log.now_ms or any(
            is_expired(producer, log.now_ms, expiration_ms)
            != is_expired(producer, now_ms, expiration_ms)
            for producer in log.facts.active_producers
        ):
            return None
    except UNREADABLE:
        return None
    bases = [segment.base_offset for segment in partition.segments]
    is_complete = bases == [segment.facts.base_offset for segment in segments]
    return (log, segments) if is_complete else None


def recall_segments(packed: bytes) -> dict[int, KnownSegment]:
    """The segments of a kept scan by base offset, whatever its key; none of what cannot be
    understood.
    """
    if not packed:
        return {}
    try:
        kept = json.loads(unpack_text(packed))
        if kept["code"] != code_digest():
            return {}
        segments = [_segment_of(row) for row in kept["segments"]]
    except UNREADABLE:
        return {}
    return {segment.facts.base_offset: segment for segment in segments}


def is_expired(producer: ActiveProducer, now_ms: int, expiration_ms: int) -> bool:
    """As a broker forgets producers: never one with an open transaction."""
    idle = now_ms - producer.last_timestamp_ms >= expiration_ms
    return idle and producer.current_txn_first_offset is None
