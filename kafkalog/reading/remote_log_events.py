"""The records of `__remote_log_metadata` that are about segments, as fields, and what they come to.

Source: Kafka RemoteLogMetadataCache; KIP-405.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.topics import REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory, PartitionInventory, PartitionKind
from kafkalog.log.remote_segments import CopyState
from kafkalog.messages.remote_log_records import RemoteLogSegmentState
from kafkalog.reading.message_views import read_messages
from kafkalog.reading.request import ReadCounts, ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.split_plan import plan_splits
from kafkalog.reading.views import select_columns

SEGMENT, CHANGED = "RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"


def segment_events(
    partition: PartitionInventory,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    *,
    fail_on_data_loss: bool = True,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(kind of record, its fields) of one partition of the topic in order; records that cannot be
    read are left out. Raises OSError."""
    columns = select_columns("messages", ("messageType", "value"))
    request = ReadRequest.of(columns, mode=ReadMode.DROPMALFORMED, max_batch_bytes=max_batch_bytes)
    splits = plan_splits([partition], PartitionSelection(fail_on_data_loss=fail_on_data_loss))
    for batch in read_messages(splits, request, ReadCounts()):
        rows = zip(batch["messageType"].to_pylist(), batch["value"].to_pylist(), strict=True)
        for kind, value in rows:
            if kind in (SEGMENT, CHANGED) and value is not None:
                yield kind, json.loads(value)


def copy_states(inventory: LogInventory) -> dict[str, CopyState]:
    """By segment id, of all partitions of the topic on these disks; empty without it.

    A topic's partition has all its records in one of them, and replicas say the same: the state
    that was reached last counts.
    """
    found: dict[str, CopyState] = {}
    for partition in inventory:
        name = partition.topic_partition.topic
        if name == REMOTE_LOG_TOPIC and partition.kind is PartitionKind.LIVE:
            for kind, fields in segment_events(partition, fail_on_data_loss=False):
                segment_id = str(fields["remoteLogSegmentId"]["id"])
                state = fields["remoteLogSegmentState"]
                is_finished = state == RemoteLogSegmentState.COPY_SEGMENT_FINISHED
                known = found.get(segment_id, CopyState(is_finished))
                if kind == SEGMENT:
                    epochs = fields["segmentLeaderEpochs"]
                    known = CopyState(
                        is_finished,
                        int(fields["endOffset"]) + 1,
                        tuple(sorted((e["leaderEpoch"], e["offset"]) for e in epochs)),
                    )
                found[segment_id] = CopyState(is_finished, known.end_offset, known.leader_epochs)
    return found
