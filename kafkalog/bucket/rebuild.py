"""`bucket --rebuild-metadata`: `__remote_log_metadata` of what is whole in remote storage, written
to a new directory and read back.

What the storage cannot tell is what was deleted since, and custom metadata; a log dir that is
given beside it tells the first. Nothing is changed in the storage, nor in log dirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkalog.bucket.knowledge import ClusterKnowledge, read_knowledge
from kafkalog.bucket.metadata_log import WrittenPartition, write_metadata_log
from kafkalog.bucket.request import BucketRequest
from kafkalog.bucket.stored_copies import LeftOut, StoredCopy, read_stored_copies
from kafkalog.errors import InvalidConfigError, RemoteStorageError
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.log_dir import open_log_dir
from kafkalog.reading.remote_copies import read_metadata_partitions
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.stored_segments import StoredSegment, stored_segments
from kafkalog.runs import durable

# Of remote.log.metadata.topic.num.partitions.
DEFAULT_PARTITIONS = 50


@dataclass(frozen=True, slots=True)
class RebuiltMetadata:
    """What was written, and what was not."""

    output: Path
    partitions: tuple[WrittenPartition, ...]
    copies: tuple[StoredCopy, ...]
    left_out: tuple[LeftOut, ...]


def rebuild_metadata(
    request: BucketRequest, output: Path, partitions_count: int | None = None
) -> RebuiltMetadata:
    """Of the segments that are asked for; `partitions_count`: of the topic, where no metadata log
    in the log dirs tells.

    InvalidConfigError for an output that is there and not empty, or lies in a log dir, for a number
    that contradicts the cluster's, and for storage as `bucket_run`. RemoteStorageError where what
    was written does not read back.
    """
    if not request.remote.places:
        raise InvalidConfigError("--remote-dir is needed: the remote storage to look at")
    known = None
    if request.log_dirs:
        known = read_knowledge(
            open_log_dir(*request.log_dirs, reads_buckets=False), request.max_batch_bytes
        )
    count = _partitions(known, partitions_count)
    _check_output(output)
    found = stored_segments(
        directory
        for place in request.remote.places
        for directory in find_directories(place, request.remote.layout)
    )
    wanted = [segment for segment in found if _is_wanted(request, segment, known)]
    copies, left_out = _read_all(request, wanted, known)
    if not copies:
        why = f", as {left_out[0].segment.place}: {left_out[0].reason}" if left_out else ""
        raise InvalidConfigError(f"no segment of the storage can be taken{why}")
    durable.make_directories(output, exist_ok=True)
    written = write_metadata_log(output, copies, count)
    _read_back(output, copies, request.max_batch_bytes)
    return RebuiltMetadata(output, tuple(written), tuple(copies), tuple(left_out))


def _partitions(known: ClusterKnowledge | None, asked: int | None) -> int:
    own = known.cluster.metadata_partitions if known is not None and known.cluster else None
    if own is not None and asked not in (None, own):
        raise InvalidConfigError(
            f"--metadata-partitions {asked}, and the cluster's topic has {own}: its brokers would"
            " look for a topic's records in another partition"
        )
    return own or asked or DEFAULT_PARTITIONS


def _check_output(output: Path) -> None:
    place = output.resolve()
    for parent in (place, *place.parents):
        if os.path.lexists(parent / META_PROPERTIES_FILE):
            raise InvalidConfigError(
                f"the output must lie outside of the log dir {parent}", path=str(output)
            )
    if os.path.lexists(output) and (not output.is_dir() or any(output.iterdir())):
        raise InvalidConfigError("the output is there already and not empty", path=str(output))


def _is_wanted(
    request: BucketRequest, segment: StoredSegment, known: ClusterKnowledge | None
) -> bool:
    """Of a bucket that clusters share only this cluster's, where log dirs tell which these are."""
    topic_id = segment.topic_id or ""
    if known is not None and topic_id not in known.had:
        return False
    topic = segment.name if known is None else known.had[topic_id]
    return request.wants(topic, segment.partition)


def _read_all(
    request: BucketRequest, segments: Sequence[StoredSegment], known: ClusterKnowledge | None
) -> tuple[list[StoredCopy], list[LeftOut]]:
    copies = {} if known is None else known.copies
    deleted = {segment_id for segment_id, copy in copies.items() if copy.is_deleted}
    gone = [each for each in segments if each.segment_id in deleted]
    found, left_out = read_stored_copies(
        [each for each in segments if each.segment_id not in deleted],
        request.remote.keys,
        {} if known is None else known.had,
        request.max_batch_bytes,
    )
    why = "__remote_log_metadata has it as deleted"
    return list(found.values()), [*(LeftOut(each, why) for each in gone), *left_out]


def _read_back(output: Path, copies: Iterable[StoredCopy], max_batch_bytes: int) -> None:
    """What a reader of the topic finds there, held against what was to be written."""
    found = read_metadata_partitions(open_log_dir(str(output)), max_batch_bytes)
    problem = next((each.incomplete for each in found.values() if each.incomplete), None)
    read = {
        (c.topic, c.topic_id, c.partition, segment_id, c.start_offset, c.end_offset,
         c.size_in_bytes, c.max_timestamp_ms, c.leader_epochs, c.is_finished)
        for each in found.values() for segment_id, c in each.copies.items()
    }  # fmt: skip
    meant = {
        (c.topic, c.topic_id, c.partition, c.segment_id, c.start_offset, c.end_offset,
         copy.size_in_bytes, c.max_timestamp_ms, c.leader_epochs, True)
        for copy in copies for c in (copy.copied,)
    }  # fmt: skip
    if problem or read != meant:
        what = problem or f"{len(meant ^ read)} segments differ"
        raise RemoteStorageError(f"what was written does not read back: {what}", path=str(output))
