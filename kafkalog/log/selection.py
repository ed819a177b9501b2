"""Which partition directories a command means: topics by name or glob, narrowed by partition names.

Both given, both must hold: `--topic 'orders*' --topic-partition orders-eu-3` is one partition,
never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.options import did_you_mean

_GLOB_CHARACTERS = frozenset("*?[")


class _OfPartition(Protocol):
    @property
    def topic_partition(self) -> TopicPartition: ...


Chosen = TypeVar("Chosen", bound=_OfPartition)


def named_topics(
    topics: Iterable[str], topic_partitions: Iterable[TopicPartition] = ()
) -> frozenset[str]:
    """The topics that are named in full, by themselves or by a partition; a glob names none."""
    in_full = {topic for topic in topics if not _GLOB_CHARACTERS & set(topic)}
    return frozenset(in_full | {name.topic for name in topic_partitions})


def select_partitions(
    partitions: Iterable[Chosen],
    topics: Sequence[str] = (),
    topic_partitions: Sequence[TopicPartition] = (),
) -> list[Chosen]:
    """The partitions asked for; all of them where nothing is named.

    InvalidConfigError for a name (not a glob) that matches nothing: a typing error must not pass as
    "nothing to do".
    """
    everything = list(partitions)
    known_topics = {partition.topic_partition.topic for partition in everything}
    known = {partition.topic_partition for partition in everything}
    missing = [t for t in topics if not _GLOB_CHARACTERS & set(t) and t not in known_topics]
    missing += [str(name) for name in topic_partitions if name not in known]
    if missing:
        names = [*known_topics, *map(str, known)] if topic_partitions else known_topics
        near = did_you_mean(missing[0], names) if len(missing) == 1 else ""
        raise InvalidConfigError(f"not in the log dirs: {', '.join(missing)}{near}")
    return [
        partition
        for partition in everything
        if (not topics or any(fnmatchcase(partition.topic_partition.topic, t) for t in topics))
        and (not topic_partitions or partition.topic_partition in topic_partitions)
    ]
