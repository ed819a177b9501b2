"""What `__remote_log_metadata` has to say of a segment, read from remote storage itself.

Aiven's manifest has what the broker said when it announced the copy, and the segment's size. Where
it does not (early releases, Kafka's LocalTieredStorage) the segment's own batches and its leader
epochs tell. Neither tells whether a copy was deleted since, nor has custom metadata.

Source: SegmentManifestV1 of tiered-storage-for-apache-kafka; RemoteLogSegmentMetadata (KIP-405).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kafkalog.errors import KafkaLogError, RemoteStorageError
from kafkalog.format.checkpoints import parse_leader_epoch_checkpoint
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.segment_manifest import CopiedSegment
from kafkalog.log.segment_file import read_chunks
from kafkalog.log.small_files import read_small_file
from kafkalog.remote.layouts import PLAIN
from kafkalog.remote.paths import KeyFiles, ManifestPath, beside
from kafkalog.remote.segment import look_at_manifest, read_manifest
from kafkalog.remote.stored_segments import LOG, MANIFEST, StoredSegment

_THREADS = 8


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A whole segment of the storage. size_in_bytes: of the segment as the broker had it;
    finished_ms: when the last of its objects was written, by the store's clock."""

    copied: CopiedSegment
    size_in_bytes: int
    finished_ms: int
    place: str

    @property
    def order(self) -> tuple[int, str, int, int, str]:
        """As copies were announced; those of one moment by partition and offset."""
        own = self.copied
        return (
            own.event_timestamp_ms, own.topic_id, own.partition, own.start_offset, own.segment_id,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A segment that is not taken."""

    segment: StoredSegment
    reason: str


def read_stored_copies(
    segments: Iterable[StoredSegment],
    keys: KeyFiles,
    names: Mapping[str, str],
    max_batch_bytes: int,
) -> tuple[dict[StoredSegment, StoredCopy], list[LeftOut]]:
    """The facts of all that are whole, in their order, and why the others are not."""

    def read(segment: StoredSegment) -> StoredCopy | LeftOut:
        try:
            return read_stored_copy(segment, keys, names, max_batch_bytes)
        except KafkaLogError as error:
            return LeftOut(segment, error.reason)
        except OSError as error:
            return LeftOut(segment, error.strerror or str(error))

    segments = list(segments)
    with ThreadPoolExecutor(_THREADS, "manifests") as pool:
        results = list(pool.map(read, segments))
    found = {s: each for s, each in zip(segments, results, strict=True)
             if isinstance(each, StoredCopy)}  # fmt: skip
    return found, [each for each in results if isinstance(each, LeftOut)]


def read_stored_copy(
    segment: StoredSegment,
    keys: KeyFiles = (),
    names: Mapping[str, str] | None = None,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> StoredCopy:
    """The facts of a segment; `names`: of topics by id, where a directory's may have a prefix.

    RemoteStorageError for one that is not whole, has no ids, or whose manifest is another's;
    OSError and KafkaLogError as from reading it.
    """
    if segment.layout == PLAIN or segment.topic_id is None or segment.segment_id is None:
        raise _error(segment, "a copy without ids: nothing tells whose it is")
    if segment.missing:
        names_of = ", ".join(f".{suffix}" for suffix in segment.missing)
        raise _error(segment, f"half an upload, or half deleted: {names_of} is not there")
    if segment.is_twice:
        raise _error(segment, "objects of it lie under two prefixes")
    path = segment.log_path(keys)
    log = segment.find(LOG)
    size = 0 if log is None else log.size
    copied = None
    if isinstance(path, ManifestPath):
        manifest = read_manifest(look_at_manifest(path.manifest))
        copied, size = manifest.copied, manifest.chunks.segment_bytes
    if copied is None:
        copied = _by_batches(segment, path, (names or {}).get(segment.topic_id, segment.name),
                             max_batch_bytes)  # fmt: skip
    _check_names(segment, copied)
    finished = segment.find(MANIFEST)
    finished_ms = segment.newest_ms if finished is None else finished.mtime_ns // 1_000_000
    return StoredCopy(copied, size, max(finished_ms, copied.event_timestamp_ms), segment.place)


def _by_batches(
    segment: StoredSegment, path: str, topic: str, max_batch_bytes: int
) -> CopiedSegment:
    """From the headers of all batches; the time of the copy is that of its first object."""
    end, largest_ms = segment.base_offset - 1, -1
    for chunk in read_chunks(path, max_batch_bytes=max_batch_bytes):
        end = int(chunk.rows["last_offset"][-1])
        largest_ms = max(largest_ms, int(chunk.rows["max_timestamp"].max()))
    if end < segment.base_offset:
        raise _error(segment, "no whole batch is in it")
    epochs_path = beside(path, ".leader_epoch_checkpoint")
    epochs = parse_leader_epoch_checkpoint(read_small_file(epochs_path), str(epochs_path))
    try:
        aborts = read_small_file(beside(path, ".txnindex"))
    except FileNotFoundError:
        aborts = b""
    return CopiedSegment(
        topic=topic,
        partition=segment.partition,
        topic_id=str(segment.topic_id),
        segment_id=str(segment.segment_id),
        start_offset=segment.base_offset,
        end_offset=end,
        max_timestamp_ms=largest_ms,
        event_timestamp_ms=min(stored.mtime_ns for _, stored in segment.objects) // 1_000_000,
        # The epoch a segment begins in may have begun before it.
        leader_epochs=tuple((epoch, max(start, segment.base_offset)) for epoch, start in epochs),
        has_no_aborts=not aborts,
    )


def _check_names(segment: StoredSegment, copied: CopiedSegment) -> None:
    own = (segment.topic_id, segment.partition, segment.segment_id, segment.base_offset)
    other = (copied.topic_id, copied.partition, copied.segment_id, copied.start_offset)
    if own != other:
        raise _error(segment, f"the manifest is of {other}, its name of {own}")
    if copied.end_offset < copied.start_offset or not copied.leader_epochs:
        raise _error(
            segment,
            f"offsets {copied.start_offset} to {copied.end_offset}, leader epochs"
            f" {list(copied.leader_epochs)}: a broker refuses such a segment",
        )


def _error(segment: StoredSegment, reason: str) -> RemoteStorageError:
    return RemoteStorageError(reason, path=segment.place)
