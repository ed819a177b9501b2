"""What `__remote_log_metadata` says of the copies in remote storage, summed up by partition: which
bytes retention must count, and which only look as if they were there.

Only copies that were finished count (KAFKA-17062: 3.6 to 3.8 counted those that failed as well, and
dropped the oldest records early). A copy that was begun and never finished is left by a broker that
died or a plugin that failed; its objects may be in the bucket.

A record a segment and state, decoded one by one: this topic has thousands where others have
millions.

Source: Kafka RemoteLogManager.buildRetentionSizeData, RemoteLogMetadataCache; KIP-405.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.messages.remote_log_records import RemoteLogSegmentState


@dataclass(frozen=True, slots=True)
class RemoteCopies(JsonFacts):
    """The segments of one partition of a topic in remote storage. `begun_ms`: when the oldest copy
    was begun that was not finished, -1 if all were.
    """

    topic: str
    partition: int
    finished: int
    finished_bytes: int
    unfinished: int
    unfinished_bytes: int
    begun_ms: int


def read_remote_copies(
    partition: PartitionInventory, max_batch_bytes: int = MAX_BATCH_BYTES
) -> tuple[RemoteCopies, ...]:
    """From one partition of `__remote_log_metadata`, which has all records of a topic's partition.
    Records that cannot be read are left out; raises OSError.
    """
    # Rows of views, which the logs of other topics have no need of.
    from kafkalog.reading.remote_log_events import SEGMENT, segment_events

    segments: dict[str, dict[str, Any]] = {}
    for kind, fields in segment_events(partition, max_batch_bytes):
        segment_id = fields["remoteLogSegmentId"]["id"]
        if kind == SEGMENT:
            segments[segment_id] = fields
        elif segment_id in segments:
            segments[segment_id]["remoteLogSegmentState"] = fields["remoteLogSegmentState"]
    by_partition: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for fields in segments.values():
        place = fields["remoteLogSegmentId"]["topicIdPartition"]
        by_partition.setdefault((place["name"], place["partition"]), []).append(fields)
    return tuple(_summed(*place, found) for place, found in sorted(by_partition.items()))


def _summed(topic: str, partition: int, segments: list[dict[str, Any]]) -> RemoteCopies:
    def of(state: RemoteLogSegmentState) -> list[dict[str, Any]]:
        return [fields for fields in segments if fields["remoteLogSegmentState"] == state]

    finished = of(RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    unfinished = of(RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    return RemoteCopies(
        topic=topic,
        partition=partition,
        finished=len(finished),
        finished_bytes=sum(fields["segmentSizeInBytes"] for fields in finished),
        unfinished=len(unfinished),
        unfinished_bytes=sum(fields["segmentSizeInBytes"] for fields in unfinished),
        begun_ms=min((fields["eventTimestampMs"] for fields in unfinished), default=-1),
    )
