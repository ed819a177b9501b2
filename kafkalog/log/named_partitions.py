"""Partitions and their offsets as people write them: `TopicPartition`, ("orders", 0), "orders-0",
{"orders": [0, 1]}, and of offsets {"orders": {0: 5}} beside {TopicPartition("orders", 0): 5}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition, parse_topic_partition

NamedPartition: TypeAlias = TopicPartition | tuple[str, int] | str
NamedPartitions: TypeAlias = NamedPartition | Iterable[NamedPartition] | Mapping[str, Sequence[int]]
NamedOffsets: TypeAlias = Mapping[Any, Any]  # NamedPartition → int, or topic → {partition: int}


def partitions_in(given: NamedPartitions) -> tuple[TopicPartition, ...]:
    """One or several; InvalidConfigError for what names none."""
    if isinstance(given, Mapping):
        return tuple(_partition((topic, p)) for topic, many in given.items() for p in many)
    if isinstance(given, TopicPartition | str) or _is_pair(given):
        return (_partition(given),)
    return tuple(_partition(each) for each in given)


def offsets_in(given: str | NamedOffsets) -> str | dict[TopicPartition, int]:
    """A word (`earliest`) as it is, offsets by partition; InvalidConfigError for what is none."""
    if isinstance(given, str):
        return given
    found: dict[TopicPartition, int] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            found |= {_partition((name, int(p))): _offset(o) for p, o in value.items()}
        else:
            found[_partition(name)] = _offset(value)
    return found


def _offset(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidConfigError(f"{value!r} is no offset")


def _is_pair(given: object) -> bool:
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], str)
        and isinstance(given[1], int)
    )


def _partition(given: Any) -> TopicPartition:
    if isinstance(given, TopicPartition):
        return given
    if _is_pair(given):
        return TopicPartition(*given)
    found = parse_topic_partition(given) if isinstance(given, str) else None
    if found is None:
        raise InvalidConfigError(
            f"{given!r} names no partition: write TopicPartition('orders', 0), ('orders', 0) or "
            "'orders-0'"
        )
    return found
