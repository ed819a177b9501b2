"""Where a stream stands, as JSON has it and as numbers; how far a batch of so many offsets goes."""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.log.topic_partition import TopicPartition

# {topic: {partition: next offset}}
Offsets = dict[str, dict[str, int]]


def limited_ends(
    begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], max_offsets: int
) -> dict[TopicPartition, int]:
    """The ends of a batch of about `max_offsets` offsets: each partition gives its share."""
    sizes = {name: end - begins[name] for name, end in ends.items()}
    total = sum(sizes.values())
    if total <= max_offsets:
        return dict(ends)
    # Rounded up, so that the smallest partition moves as well.
    return {
        name: begins[name] + min(-(-size * max_offsets // total), size)
        for name, size in sizes.items()
    }


def as_offsets(numbers: Mapping[TopicPartition, int]) -> Offsets:
    """As JSON has them."""
    offsets: Offsets = {}
    for name, offset in sorted(numbers.items()):
        offsets.setdefault(name.topic, {})[str(name.partition)] = offset
    return offsets


def as_numbers(offsets: Offsets) -> dict[TopicPartition, int]:
    """The other way."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
