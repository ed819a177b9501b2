"""All record types of `__consumer_offsets`, by the number in front of their keys."""

from __future__ import annotations

from kafkalog.messages import (
    consumer_group_records,
    group_records,
    share_group_records,
    streams_group_records,
)
from kafkalog.messages.coordinator_record import RecordType

OFFSETS_TYPES: dict[int, RecordType] = {
    known.number: known
    for module in (
        group_records,
        consumer_group_records,
        share_group_records,
        streams_group_records,
    )
    for known in vars(module).values()
    if isinstance(known, RecordType)
}
