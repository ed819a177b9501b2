"""The copies of a bucket by the old cluster's `__remote_log_metadata`: with what only that has, as
states, custom metadata and deletions.

Each record stays byte for byte what it was, in its partition and in order; those of segments that
are left out go. Every copy that is finished by it has to be in the bucket.

Source: Kafka RemoteLogMetadataCache, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkalog.errors import InvalidConfigError
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionKind
from kafkalog.log.lock_holder import lock_holder
from kafkalog.log.log_dir import open_log_dir
from kafkalog.messages.remote_log_records import RemoteLogRecord, decode_remote_log_record
from kafkalog.reading.remote_copies import MetadataPartition, SegmentCopy, read_metadata_partitions
from kafkalog.reading.tables import read_records
from kafkalog.remote.stored_segments import StoredSegment
from kafkalog.restoring.bucket_copies import BucketCopies, Copy, Place, by_place, with_producers
from kafkalog.restoring.bucket_request import BucketAttachRequest

_SHOWN = 3


def open_old(log_dirs: Sequence[str]) -> LogInventory | None:
    """The old cluster's log dirs; None without any."""
    return open_log_dir(*log_dirs, reads_buckets=False) if log_dirs else None


def by_metadata(
    request: BucketAttachRequest,
    found: Sequence[StoredSegment],
    old: LogInventory,
    known_count: int | None,
) -> BucketCopies:
    """By the records of the topic. InvalidConfigError where it is not there, or has another number
    of partitions.
    """
    metadata = read_metadata_partitions(old, request.max_batch_bytes)
    if not metadata:
        raise InvalidConfigError(
            f"--metadata-from: no partition of {REMOTE_LOG_TOPIC} is there",
            path=request.metadata_from[0],
        )
    count = _partitions_count(metadata, request.metadata_partitions or known_count)
    copies, missing = _finished(request, found, metadata)
    refusals = [*_why_not(request, metadata, count)]
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        refusals.append(f"finished by {REMOTE_LOG_TOPIC}, {'; '.join(missing[:_SHOWN])}{more}")
    taken = {copy.segment_id for copy in copies}
    return BucketCopies(
        by_place(with_producers(copies, request)),
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


def _why_not(
    request: BucketAttachRequest, metadata: Mapping[int, MetadataPartition], count: int
) -> Iterator[str]:
    """What is wrong with the old cluster's topic as a whole."""
    for log_dir in request.metadata_from:
        if (holder := lock_holder(log_dir)) is not None:
            yield (
                f"a broker (process {holder}) holds the lock of {log_dir}: the old cluster runs, "
                "and two clusters over one bucket delete each other's segments"
            )
    yield from (each.incomplete for each in metadata.values() if each.incomplete)
    for number in range(count):
        if number not in metadata:
            yield f"{REMOTE_LOG_TOPIC}-{number} is not in the log dirs of --metadata-from"


def _finished(
    request: BucketAttachRequest,
    found: Sequence[StoredSegment],
    metadata: Mapping[int, MetadataPartition],
) -> tuple[list[Copy], list[str]]:
    """The finished copies that are asked for; those that the bucket lacks, in words."""
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
            what = (
                "not in the bucket" if segment is None else f"without {', '.join(segment.missing)}"
            )
            missing.append(f"{known.topic}-{known.partition} offset {known.start_offset}: segment "
                           f"{known.segment_id} is {what}")  # fmt: skip
        elif known.start_offset is not None and known.end_offset is not None:
            copies.append(_of_metadata(known, segment))
    return copies, missing


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
