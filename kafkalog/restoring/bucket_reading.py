"""The finished copies of a bucket, and the records that tell a broker of them: the old cluster's
own, or made from manifests.

Source: Kafka RemoteLogMetadataCache, RemotePartitionMetadataStore; KIP-405.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.bucket.metadata_log import records_of
from kafkalog.bucket.rebuild import DEFAULT_PARTITIONS
from kafkalog.bucket.stored_copies import StoredCopy, read_stored_copies
from kafkalog.errors import InvalidConfigError
from kafkalog.format.remote_log_partition import remote_log_partition
from kafkalog.log.inventory import LogInventory
from kafkalog.remote.layouts import PLAIN, find_directories
from kafkalog.remote.stored_segments import StoredSegment, stored_segments
from kafkalog.restoring.bucket_copies import BucketCopies, Copy, by_place, with_producers
from kafkalog.restoring.bucket_old_metadata import by_metadata
from kafkalog.restoring.bucket_request import BucketAttachRequest


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
        else by_metadata(request, found, old, known_count)
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
        by_place(with_producers(copies, request)),
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
