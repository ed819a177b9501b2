"""What brokers and old producers write and kafkalog does not: markers, sets of legacy messages."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kafkalog.format.compression import compress
from kafkalog.format.constants import (
    MAGIC_VALUE_V1,
    NO_PARTITION_LEADER_EPOCH,
    CompressionType,
    TimestampType,
)
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.legacy_record import pack_legacy_message
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch


def pack_legacy_entries(
    records: Sequence[Record],
    magic: int,
    *,
    codec: int = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """Records as a producer of that time had them stored: an entry each, or all in one wrapper.

    Under magic 1 inner offsets count from the first record; the wrapper's timestamp is the largest.
    """
    if codec == CompressionType.NONE:
        return b"".join(
            pack_legacy_message(record, magic, timestamp_type=timestamp_type) for record in records
        )
    # As above: relative in magic 1, absolute in magic 0.
    base_offset = records[0].offset if magic == MAGIC_VALUE_V1 else 0
    content = b"".join(
        pack_legacy_message(
            Record(record.offset - base_offset, record.timestamp, record.key, record.value), magic
        )
        for record in records
    )
    wrapper = Record(
        records[-1].offset,
        max(record.timestamp for record in records),
        None,
        compress(codec, content, magic=magic),
    )
    return pack_legacy_message(wrapper, magic, codec=codec, timestamp_type=timestamp_type)


def pack_control_key(control_type: ControlRecordType) -> bytes:
    """The four bytes of a control record's key."""
    return struct.pack(">hh", 0, control_type)


def pack_end_transaction_marker(coordinator_epoch: int) -> bytes:
    """The six bytes of a marker's value."""
    return struct.pack(">hi", 0, coordinator_epoch)


def pack_marker_batch(
    control_type: ControlRecordType,
    offset: int,
    timestamp: int,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """The 78-byte batch that ends a transaction, as a transaction coordinator has it written."""
    marker = Record(
        offset,
        timestamp,
        pack_control_key(control_type),
        pack_end_transaction_marker(coordinator_epoch),
    )
    return pack_batch(
        [marker],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )
