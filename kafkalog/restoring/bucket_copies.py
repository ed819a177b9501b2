"""The copies of segments that a bucket has, as a plan of `attach` takes them.

Source: Kafka RemoteLogMetadataCache, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from kafkalog.errors import KafkaLogError, RemoteStorageError
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.log.small_files import read_small_file
from kafkalog.remote.paths import beside
from kafkalog.remote.stored_segments import StoredSegment
from kafkalog.restoring.bucket_request import BucketAttachRequest

_THREADS = 8
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Copy:
    """A finished copy of a segment; end_offset: the one behind its last. producers: what its
    snapshot says of the offset there."""

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    leader_epochs: tuple[tuple[int, int], ...]
    size_in_bytes: int
    stored: StoredSegment
    producers: tuple[ProducerEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class BucketCopies:
    """copies: of each partition, by topic id and number. records: (partition of the topic, time,
    topic id and partition, segment id or "", value) in order; refusals: why something that ought to
    be there is not; left_out: segments of the bucket that count for nothing.
    """

    copies: Mapping[Place, Sequence[Copy]]
    records: Sequence[tuple[int, int, Place, str, bytes]]
    partitions_count: int
    log_starts: Mapping[Place, int] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def with_producers(copies: Sequence[Copy], request: BucketAttachRequest) -> Iterable[Copy]:
    """Each with its producer snapshot. RemoteStorageError for one that cannot be read."""

    def read(copy: Copy) -> tuple[ProducerEntry, ...]:
        path = beside(copy.stored.log_path(request.remote.keys), ".snapshot")
        try:
            return tuple(parse_producer_snapshot(read_small_file(path), str(path)))
        except FileNotFoundError:
            raise RemoteStorageError("no producer snapshot", path=str(path)) from None
        except KafkaLogError as error:
            raise RemoteStorageError(f"producer snapshot: {error.reason}", path=str(path)) from None

    with ThreadPoolExecutor(_THREADS, "snapshots") as pool:
        for copy, producers in zip(copies, pool.map(read, copies), strict=True):
            yield replace(copy, producers=producers)


def by_place(copies: Iterable[Copy]) -> dict[Place, list[Copy]]:
    found: dict[Place, list[Copy]] = {}
    for each in sorted(copies, key=lambda c: (c.topic, c.partition, c.start_offset, c.end_offset)):
        found.setdefault((each.topic_id, each.partition), []).append(each)
    return found


def leader_epochs_of(copy: Copy, request: BucketAttachRequest) -> bytes:
    """The leader epochs of the log up to the end of a segment, as a file."""
    path = beside(copy.stored.log_path(request.remote.keys), ".leader_epoch_checkpoint")
    return read_small_file(path)


def wanted_records(
    records: Iterable[tuple[int, int, Place, str, bytes]],
    count: int,
    places: Collection[Place],
    without: Collection[str],
) -> list[list[tuple[int, bytes]]]:
    """(time, value) by partition of the topic: those of these partitions, without the segments
    that a cut leaves out."""
    own: list[list[tuple[int, bytes]]] = [[] for _ in range(count)]
    for number, at_ms, place, segment_id, value in records:
        if place in places and segment_id not in without:
            own[number].append((at_ms, value))
    return own
