"""A cluster whose segments Aiven's plug-in has copied: the real broker's logs and metadata with the
real objects, as files that may be changed; the objects are as old as their copies.

    cluster = TieredCluster(tmp_path)
    cluster.object("a-lz4", 0, "log").unlink()
    cluster.findings()
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafkalog.bucket.look import LookTask, look
from kafkalog.bucket.request import BucketRequest
from kafkalog.bucket.run import BucketRun, bucket_run
from kafkalog.format.checkpoints import pack_offset_checkpoint, parse_offset_checkpoint
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, parse_header
from kafkalog.format.segment_manifest import parse_segment_manifest
from kafkalog.messages.remote_log_records import LAYOUTS, RemoteLogSegmentState
from kafkalog.remote.paths import RemoteStorage
from tests.remote.test_aiven import BROKER, KEYS, SAMPLES, STORE, TOPICS
from tests.support.message_encoder import encode_message

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
# When the last object was written, and three days later.
COPIED_MS = 1_795_922_323_823
NOW_MS = COPIED_MS + 3 * DAY_MS
# Ids of segments that no sample has, and the objects of a whole one.
OTHER, THIRD = "B" * 21 + "A", "C" * 21 + "A"
WHOLE = ("log", "indexes", "rsm-manifest")
HIGH_WATERMARKS = "replication-offset-checkpoint"
STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED


class TieredCluster:
    """`broker`: the log dir; `store`: the remote storage."""

    def __init__(self, path: Path) -> None:
        self.broker = Path(shutil.copytree(BROKER, path / "broker"))
        shutil.copytree(SAMPLES / "metadata", self.broker / "__cluster_metadata-0")
        self.store = Path(shutil.copytree(STORE, path / "store"))
        for manifest in self.store.rglob("*.rsm-manifest"):
            copied = parse_segment_manifest(manifest.read_bytes(), str(manifest)).copied
            assert copied is not None
            for each in manifest.parent.glob(f"{manifest.stem}.*"):
                set_time(each, copied.event_timestamp_ms)

    def request(self, *topics: str, **changes: Any) -> BucketRequest:
        """Of the topics whose objects are in the sample."""
        remote = RemoteStorage((str(self.store),), keys=tuple(KEYS.items()))
        request = BucketRequest((str(self.broker),), NOW_MS, remote, topics or tuple(TOPICS))
        return replace(request, **changes)

    def run(self, *topics: str, **changes: Any) -> BucketRun:
        changes.setdefault("run_dir", str(self.broker.parent / "runs"))
        return look_in_turn(self.request(*topics, **changes))

    def objects(self, topic: str, base_offset: int = 0) -> list[Path]:
        """Those of a segment that the plug-in wrote."""
        found = STORE.rglob(f"{topic}-*/0/{base_offset:020d}-*")
        own = (self.store / path.relative_to(STORE) for path in found)
        return sorted(path for path in own if path.exists())

    def object(self, topic: str, base_offset: int, suffix: str) -> Path:
        (path,) = (p for p in self.objects(topic, base_offset) if p.suffix == f".{suffix}")
        return path

    def again(self, topic: str, segment_id: str, suffixes: Iterable[str], at_ms: int) -> list[Path]:
        """Objects of the topic's first segment once more, under another segment id."""
        made = []
        for suffix in suffixes:
            path = self.object(topic, 0, suffix)
            other = path.with_name(f"{path.stem[:21]}{segment_id}.{suffix}")
            data = path.read_bytes()
            if suffix == "rsm-manifest":
                data = data.replace(path.stem[21:].encode(), segment_id.encode())
            other.write_bytes(data)
            set_time(other, at_ms)
            made.append(other)
        return sorted(made)

    def append(self, partition: str, *values: bytes | None, key: bytes | None = None,
               at_ms: int = COPIED_MS + DAY_MS) -> None:  # fmt: skip
        """Records at the end of a log, and its high watermark behind them."""
        path = self.broker / partition / f"{0:020d}.log"
        data = path.read_bytes()
        position, header = 0, parse_header(data)
        while position < len(data):
            header = parse_header(data[position:])
            position += header.size_in_bytes
        first = header.next_offset
        records = [Record(first + n, at_ms, key, value) for n, value in enumerate(values)]
        epoch = header.partition_leader_epoch
        path.write_bytes(data + pack_batch(records, partition_leader_epoch=epoch))
        self.set_high_watermark(partition, first + len(records))

    def set_high_watermark(self, partition: str, offset: int) -> None:
        path = self.broker / HIGH_WATERMARKS
        marks = dict(parse_offset_checkpoint(path.read_bytes(), str(path)))
        topic, _, number = partition.rpartition("-")
        marks[topic, int(number)] = offset
        path.write_bytes(pack_offset_checkpoint(marks))

    def copy(
        self, topic: str, segment_id: str, state: RemoteLogSegmentState,
        start_offset: int = 0, end_offset: int = 2699, at_ms: int = COPIED_MS,
    ) -> None:  # fmt: skip
        """A segment in `__remote_log_metadata`, begun at that time and at once in a state."""
        (directory,) = self.store.rglob(f"{topic}-*")
        place = {"name": topic, "id": directory.name[-22:], "partition": 0}
        segment = {"topicIdPartition": place, "id": segment_id}
        begun = {
            "remoteLogSegmentId": segment,
            "startOffset": start_offset,
            "endOffset": end_offset,
            "brokerId": 1,
            "maxTimestampMs": at_ms,
            "eventTimestampMs": at_ms,
            "segmentLeaderEpochs": [{"leaderEpoch": 0, "offset": start_offset}],
            "segmentSizeInBytes": 1000,
            "customMetadata": None,
            "remoteLogSegmentState": state.value,
        }
        self.append(metadata_partition(topic), record(0, begun))

    def change(
        self, topic: str, segment_id: str, state: RemoteLogSegmentState,
        event_ms: int = COPIED_MS,
    ) -> None:  # fmt: skip
        """Another state of a segment."""
        (directory,) = self.store.rglob(f"{topic}-*")
        place = {"name": topic, "id": directory.name[-22:], "partition": 0}
        fields = {
            "remoteLogSegmentId": {"topicIdPartition": place, "id": segment_id},
            "brokerId": 1,
            "eventTimestampMs": event_ms,
            "customMetadata": None,
            "remoteLogSegmentState": state.value,
        }
        self.append(metadata_partition(topic), record(1, fields))


def record(kind: int, fields: dict[str, Any]) -> bytes:
    """A value of `__remote_log_metadata`: frame, type, version, body."""
    return bytes([1, kind, 0]) + encode_message(LAYOUTS[kind][0], 0, fields)


def look_in_turn(request: BucketRequest) -> BucketRun:
    """In this process."""

    def execute(tasks: Iterable[LookTask]) -> Any:
        return map(look, tasks)

    return bucket_run(request, execute, lambda _: None)


def metadata_partition(topic: str) -> str:
    """The one of two that has the topic's records, as the real broker chose it."""
    return f"__remote_log_metadata-{1 if topic == 'a-lz4' else 0}"


def set_time(path: Path, at_ms: int) -> None:
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def kinds(run: BucketRun) -> list[tuple[str, str, int | None]]:
    """(id, topic, offset) of each finding."""
    return [(each.kind, each.topic, each.offset) for each in run.findings]


def deletable(run: BucketRun) -> list[str]:
    """Paths of the delete list."""
    return sorted(stored.path for each in run.deletions for _, stored in each.segment.objects)
