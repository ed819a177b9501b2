"""Which partition of `__remote_log_metadata` has the records of a tiered partition.

    java = Objects.hash(low half of the topic id, high half, partition)      longs folded
    partition of the topic = (murmur2(java as 4 bytes) & 0x7fffffff) % partitions

Source: Kafka RemoteLogMetadataTopicPartitioner, Utils.murmur2.
"""

from __future__ import annotations

import struct

from kafkalog.format.uuid_text import parse_uuid

_MASK = 0xFFFFFFFF
_HALVES = struct.Struct(">QQ")
_SEED, _MULTIPLIER = 0x9747B28C, 0x5BD1E995


def remote_log_partition(topic_id: str, partition: int, partitions: int) -> int:
    """The number of the partition, of so many. ValueError for a text that is no id."""
    topic = parse_uuid(topic_id)
    if topic is None:
        raise ValueError(f"{topic_id!r} is no id of a topic")
    high, low = _HALVES.unpack(topic)
    java = 1
    for part in (low ^ low >> 32, high ^ high >> 32, partition):
        java = 31 * java + (part & _MASK) & _MASK
    return (_murmur2(java) & 0x7FFFFFFF) % partitions


def _murmur2(number: int) -> int:
    """Kafka's murmur2 of the four bytes of a number, big-endian; it reads them little-endian."""
    block = int.from_bytes(number.to_bytes(4, "big"), "little") * _MULTIPLIER & _MASK
    block = (block ^ block >> 24) * _MULTIPLIER & _MASK
    found = (_SEED ^ 4) * _MULTIPLIER & _MASK ^ block
    found = (found ^ found >> 13) * _MULTIPLIER & _MASK
    return found ^ found >> 15
