"""A look at one segment: its manifest against its objects and against `__remote_log_metadata`, its
key; a deep look reads all of it: the tag and size of each chunk, each batch and record, each index.

Nothing is raised for what is in the storage: it is in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kafkalog.bucket.finding import BucketFinding, Place
from kafkalog.checking.segment import GONE, TORN, ZEROS, check_segment, segment_task
from kafkalog.checking.segment_report import SegmentReport
from kafkalog.errors import LogChangedError, RemoteStorageError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.segment_manifest import SegmentManifest
from kafkalog.log.pace import paced
from kafkalog.log.partition_dir import describe_segment
from kafkalog.log.remote_segments import REMOTE, describe_behind_manifest
from kafkalog.log.segment_file import ChunkBuffers
from kafkalog.reading.remote_copies import SegmentCopy
from kafkalog.remote.keys import data_key_of
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.segment import ChunkedSegment, look_at_manifest, read_manifest
from kafkalog.remote.stored_segments import INDEXES, LOG, StoredSegment

# Indexes that the check of a segment does not read.
_OTHER_PIECES = ("producerSnapshot", "leaderEpoch")


@dataclass(frozen=True, slots=True)
class LookTask:
    """One whole segment: the path that readers take, with the files of keys, and what is known of
    it. known: what an earlier deep look found; bytes_per_second: what this worker may read."""

    segment: StoredSegment
    path: str
    place: Place
    copy: SegmentCopy | None
    is_deep: bool = False
    known: SegmentReport | None = None
    max_batch_bytes: int = MAX_BATCH_BYTES
    bytes_per_second: float | None = None

    @property
    def size_in_bytes(self) -> int:
        """Bytes to read: of a deep look those of the `.log` object."""
        log = self.segment.find(LOG)
        return log.size if log is not None and self.is_deep else 0


@dataclass(frozen=True, slots=True)
class LookResult:
    """report: of a deep look; is_carried: that of an earlier one, as nothing has changed since.
    closed_by: the id of the key without which a segment was not opened, as none was given."""

    task: LookTask
    findings: tuple[BucketFinding, ...] = ()
    report: SegmentReport | None = None
    is_carried: bool = False
    closed_by: str | None = None


def look(task: LookTask, buffers: ChunkBuffers | None = None) -> LookResult:
    """What is wrong with a segment; InvalidConfigError for a key file that is none."""
    with paced(task.bytes_per_second):
        try:
            return _look(task, buffers)
        except (LogChangedError, FileNotFoundError) as error:
            kind, text = "segment-changed", str(error)
        except RemoteStorageError as error:
            finding = task.place.finding(
                "object-damaged", error.reason, path=error.path, position=error.position
            )
            return LookResult(task, (finding,))
        except OSError as error:
            kind, text = "object-damaged", error.strerror or str(error)
    return LookResult(task, (task.place.finding(kind, text),))


def look_died(task: LookTask) -> LookResult:
    """The result of a segment whose worker process died."""
    text = "a worker process died while it was read"
    return LookResult(task, (task.place.finding("object-damaged", text),))


def _look(task: LookTask, buffers: ChunkBuffers | None) -> LookResult:
    findings: list[BucketFinding] = []
    closed_by = None
    if isinstance(task.path, ManifestPath):
        try:
            manifest = read_manifest(look_at_manifest(task.path.manifest))
        except RemoteStorageError as error:
            made = task.place.finding("manifest-unreadable", error.reason, path=error.path)
            return LookResult(task, (made,))
        findings += _objects(task, manifest)
        closed_by = manifest.data_key.key_id if manifest.data_key is not None else None
        if manifest.data_key is not None and task.path.keys:
            closed_by = None
            try:
                data_key_of(manifest.data_key, task.path.keys, task.path.manifest)
            except RemoteStorageError as error:
                findings.append(task.place.finding("key-unreadable", error.reason, path=error.path))
                return LookResult(task, tuple(findings))
    elif task.copy is not None:
        log = task.segment.find(LOG)
        findings += _size(task, -1 if log is None else log.size)
    if not task.is_deep or findings or closed_by is not None:
        return LookResult(task, tuple(findings), closed_by=closed_by)
    return _deep(task, buffers)


def _objects(task: LookTask, manifest: SegmentManifest) -> Iterator[BucketFinding]:
    """The sizes of the objects, and what was said of the segment when it was copied."""
    log, indexes = task.segment.find(LOG), task.segment.find(INDEXES)
    stored = manifest.chunks.stored_bytes
    if log is not None and log.size != stored:
        text = f"the object has {log.size} bytes, its manifest says {stored}"
        yield task.place.finding("object-differs", text)
    end = max((position + size for position, size in manifest.pieces.values()), default=0)
    if indexes is not None and indexes.size != end:
        text = f"the object has {indexes.size} bytes, its manifest says {end}"
        yield task.place.finding("object-differs", text, path=indexes.path)
    yield from _size(task, manifest.chunks.segment_bytes)
    copied, copy = manifest.copied, task.copy
    if copied is None:
        return
    said: dict[str, tuple[object, object]] = {
        "topic id": (copied.topic_id, task.segment.topic_id),
        "partition": (copied.partition, task.segment.partition),
        "segment id": (copied.segment_id, task.segment.segment_id),
        "first offset": (copied.start_offset, task.segment.base_offset),
    }
    if copy is not None and copy.start_offset is not None:
        said["first offset"] = copied.start_offset, copy.start_offset
        said["last offset"] = copied.end_offset, copy.end_offset
        said["leader epochs"] = copied.leader_epochs, copy.leader_epochs
    for name, (own, other) in said.items():
        if own != other:
            where = "its name" if copy is None else "its name or __remote_log_metadata"
            text = f"the manifest has {name} {own}, {where} {other}"
            yield task.place.finding("object-differs", text, path=manifest_path(task))


def _size(task: LookTask, size: int) -> Iterator[BucketFinding]:
    if task.copy is not None and task.copy.size_in_bytes not in (-1, size):
        text = f"a segment of {size} bytes, __remote_log_metadata says {task.copy.size_in_bytes}"
        yield task.place.finding("object-differs", text)


def manifest_path(task: LookTask) -> str:
    """Of the manifest, or of the segment where the layout has none."""
    return task.path.manifest if isinstance(task.path, ManifestPath) else task.path


def _deep(task: LookTask, buffers: ChunkBuffers | None) -> LookResult:
    base_offset = task.segment.base_offset
    if isinstance(task.path, ManifestPath):
        described = describe_behind_manifest(task.path, base_offset)
    else:
        described = describe_segment(task.path, base_offset, REMOTE)
    checked = segment_task(described, task.max_batch_bytes)
    is_carried = task.known is not None and task.known.task == checked
    report = task.known if is_carried and task.known else check_segment(checked, buffers)
    # Where the objects changed meanwhile nothing is to be said of them.
    findings = [task.place.of_check(found) for found in report.findings]
    if report.tail != GONE:
        findings += _ends(task, report)
        if isinstance(task.path, ManifestPath) and not is_carried:
            segment = ChunkedSegment(task.path)
            for piece in _OTHER_PIECES:
                if piece in segment.manifest.pieces:
                    segment.index(piece)
    return LookResult(task, tuple(findings), report, is_carried=is_carried)


def _ends(task: LookTask, report: SegmentReport) -> Iterator[BucketFinding]:
    """A copied segment is closed: it ends with a batch, and in its own range of offsets."""
    if report.tail in (TORN, ZEROS):
        kind = "torn-tail" if report.tail == TORN else "zero-tail"
        trailing = report.task.size_in_bytes - report.valid_bytes
        text = f"{trailing} bytes behind the last whole batch"
        yield task.place.finding(kind, text, position=report.valid_bytes)
    copy = task.copy
    if copy is None or copy.end_offset is None or not report.batches_count:
        return
    if report.first_offset < task.segment.base_offset or report.last_offset > copy.end_offset:
        text = (
            f"batches of offsets {report.first_offset} to {report.last_offset}, and"
            f" __remote_log_metadata has {copy.start_offset} to {copy.end_offset}"
        )
        yield task.place.finding("object-differs", text)


def with_pace(task: LookTask, bytes_per_second: float | None, workers: int) -> LookTask:
    """The task for one of so many workers, which share a pace."""
    if bytes_per_second is None:
        return task
    return replace(task, bytes_per_second=bytes_per_second / max(workers, 1))
