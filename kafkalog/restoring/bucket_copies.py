"""The finished copies of a bucket, and the records that tell a broker of them: the old cluster's
own, with what only those have (states, custom metadata), or made from manifests.

Of the old `__remote_log_metadata` each record stays byte for byte what it was, in its partition and
in order; those of segments that are left out go. Every copy that is finished by it has to be in the
bucket.

Source: Kafka RemoteLogMetadataCache, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from kafkalog.bucket.metadata_log import records_of
from kafkalog.bucket.rebuild import DEFAULT_PARTITIONS
from kafkalog.bucket.stored_copies import StoredCopy, read_stored_copies
from kafkalog.errors import InvalidConfigError, KafkaLogError, RemoteStorageError
from kafkalog.format.producer_snapshot import ProducerEntry, parse_producer_snapshot
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionKind
from kafkalog.log.lock_holder import lock_holder
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.small_files import read_small_file
from kafkalog.messages.remote_log_records import RemoteLogRecord, decode_remote_log_record
from kafkalog.reading.remote_copies import MetadataPartition, SegmentCopy, read_metadata_partitions
from kafkalog.reading.tables import read_records
from kafkalog.remote.layouts import PLAIN, find_directories
from kafkalog.remote.paths import beside
from kafkalog.remote.stored_segments import StoredSegment, stored_segments
from kafkalog.restoring.bucket_request import BucketAttachRequest

_THREADS = 8
_SHOWN = 3
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


def read_bucket_copies(
    request: BucketAttachRequest, old: LogInventory | None, known_count: int | None = None
) -> BucketCopies:
    """What is in the bucket by the old cluster's metadata, or without it by manifests; known_count:
    partitions of its topic, where something tells.

    InvalidConfigError for a bucket without segments that can be attached, or old log dirs without
    the topic; RemoteStorageError, OSError as from the store.
    """
    found = stored_segments(
        directory
        for place in request.remote.places
        for directory in find_directories(place, request.remote.layout)
    )
    if any(each.layout == PLAIN for each in found):
        plain = next(each for each in found if each.layout == PLAIN)
        raise InvalidConfigError(
            "segments of layout plain have no topic id: a broker cannot read them where they lie; "
            "`kafkalog restore` copies them into log dirs",
            path=plain.place,
        )
    taken = (
        _by_manifests(request, found)
        if old is None
        else _by_metadata(request, found, old, known_count)
    )
    if not taken.copies and not taken.refusals:
        why = f", as {taken.left_out[0]}" if taken.left_out else ""
        raise InvalidConfigError(f"no segment of this storage can be attached{why}")
    return taken


def _by_manifests(request: BucketAttachRequest, found: Sequence[StoredSegment]) -> BucketCopies:
    read, left_out = read_stored_copies(found, request.remote.keys, {}, request.max_batch_bytes)
    chosen = {
        segment: copy
        for segment, copy in read.items()
        if request.wants(copy.copied.topic, copy.copied.topic_id)
    }
    copies = [_of_manifest(segment, copy) for segment, copy in chosen.items()]
    count = request.metadata_partitions or DEFAULT_PARTITIONS
    records = []
    for each in sorted(chosen.values(), key=lambda copy: copy.order):
        place = each.copied.topic_id, each.copied.partition
        number = remote_log_partition(*place, count)
        records += [(number, at_ms, place, each.copied.segment_id, value)
                    for at_ms, value in records_of([each])]  # fmt: skip
    return BucketCopies(
        _by_place(_with_producers(copies, request)),
        records,
        count,
        left_out=tuple(f"{each.segment.place}: {each.reason}" for each in left_out),
    )


def _of_manifest(segment: StoredSegment, copy: StoredCopy) -> Copy:
    own = copy.copied
    return Copy(
        own.topic, own.topic_id, own.partition, own.segment_id, own.start_offset,
        own.end_offset + 1, own.max_timestamp_ms, own.leader_epochs, copy.size_in_bytes, segment,
    )  # fmt: skip


def open_old(log_dirs: Sequence[str]) -> LogInventory | None:
    """The old cluster's log dirs; None without any."""
    return open_log_dir(*log_dirs, reads_buckets=False) if log_dirs else None


def _by_metadata(
    request: BucketAttachRequest,
    found: Sequence[StoredSegment],
    old: LogInventory,
    known_count: int | None,
) -> BucketCopies:
    metadata = read_metadata_partitions(old, request.max_batch_bytes)
    if not metadata:
        raise InvalidConfigError(
            f"--metadata-from: no partition of {REMOTE_LOG_TOPIC} is there",
            path=request.metadata_from[0],
        )
    count = _partitions_count(metadata, request.metadata_partitions or known_count)
    refusals = [
        f"a broker (process {holder}) holds the lock of {log_dir}: the old cluster runs, and two "
        "clusters over one bucket delete each other's segments"
        for log_dir in request.metadata_from
        if (holder := lock_holder(log_dir)) is not None
    ]
    refusals += [each.incomplete for each in metadata.values() if each.incomplete]
    refusals += [
        f"{REMOTE_LOG_TOPIC}-{number} is not in the log dirs of --metadata-from"
        for number in range(count)
        if number not in metadata
    ]
    stored = {each.segment_id: each for each in found}
    copies: list[Copy] = []
    missing: list[str] = []
    deleted = {place for own in metadata.values() for place in own.deletions}
    for known in (copy for own in metadata.values() for copy in own.copies.values()):
        is_deleted = (known.topic_id, known.partition) in deleted
        if is_deleted or not known.is_finished or not request.wants(known.topic, known.topic_id):
            continue
        segment = stored.get(known.segment_id)
        if segment is None or segment.missing:
            what = "not in the bucket" if segment is None else f"lacks {', '.join(segment.missing)}"
            missing.append(f"{known.topic}-{known.partition} offset {known.start_offset}: segment "
                           f"{known.segment_id} is {what}")  # fmt: skip
        elif known.start_offset is not None and known.end_offset is not None:
            copies.append(_of_metadata(known, segment))
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        refusals.append(f"finished by {REMOTE_LOG_TOPIC}, {'; '.join(missing[:_SHOWN])}{more}")
    taken = {copy.segment_id for copy in copies}
    return BucketCopies(
        _by_place(_with_producers(copies, request)),
        list(_old_records(metadata, request)),
        count,
        _log_starts(old),
        tuple(refusals),
        tuple(
            f"{each.place}: not finished by {REMOTE_LOG_TOPIC}"
            for each in found
            if each.segment_id not in taken and request.wants(each.name, each.topic_id or "")
        ),
    )


def _partitions_count(metadata: Mapping[int, MetadataPartition], asked: int | None) -> int:
    """By the numbers that are there; a higher one may be asked for."""
    least = max(metadata) + 1
    for number, own in metadata.items():
        for copy in own.copies.values():
            counted = asked or least
            if remote_log_partition(copy.topic_id, copy.partition, counted) != number:
                raise InvalidConfigError(
                    f"{REMOTE_LOG_TOPIC} has not {counted} partitions: records of "
                    f"{copy.topic}-{copy.partition} are in {number}; --metadata-partitions tells "
                    "how many it had"
                )
    return asked or least


def _of_metadata(known: SegmentCopy, segment: StoredSegment) -> Copy:
    return Copy(
        known.topic, known.topic_id, known.partition, known.segment_id, known.start_offset or 0,
        (known.end_offset or 0) + 1, known.max_timestamp_ms, known.leader_epochs,
        known.size_in_bytes, segment,
    )  # fmt: skip


def _old_records(
    metadata: Mapping[int, MetadataPartition], request: BucketAttachRequest
) -> Iterator[tuple[int, int, Place, str, bytes]]:
    """Every record of a topic that is asked for, as it lies."""
    for number, own in metadata.items():
        batches = read_records(own.path, columns=["timestampMs", "value"],
                               max_batch_bytes=request.max_batch_bytes)  # fmt: skip
        for row in (row for batch in batches for row in batch.to_pylist()):
            record = decode_remote_log_record(row["value"]) if row["value"] is not None else None
            if not isinstance(record, RemoteLogRecord):
                continue
            segment = record.fields.get("remoteLogSegmentId")
            fields = segment if segment is not None else record.fields
            place = fields.get("topicIdPartition")
            if place is not None and request.wants(place["name"], place["id"]):
                segment_id = "" if segment is None else segment["id"]
                key = place["id"], place["partition"]
                yield number, row["timestampMs"], key, segment_id, row["value"]


def _log_starts(old: LogInventory) -> dict[Place, int]:
    """Where logs begin by the old cluster's checkpoints: the highest of all replicas."""
    found: dict[Place, int] = {}
    for each in old:
        start = each.checkpoints.log_start
        if each.kind is PartitionKind.LIVE and each.topic_id is not None and start is not None:
            place = each.topic_id, each.topic_partition.partition
            found[place] = max(found.get(place, 0), start)
    return found


def _with_producers(copies: Sequence[Copy], request: BucketAttachRequest) -> Iterable[Copy]:
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


def _by_place(copies: Iterable[Copy]) -> dict[Place, list[Copy]]:
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
