"""Which partition directories a command means: topics by name or glob, narrowed by partition names.

Both given, both must hold: `--topic 'orders*' --topic-partition orders-eu-3` is one partition,
never more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from kafkalog.errors import InvalidConfigError
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.options import did_you_mean_of

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


def refuse_missing(
    topics: Iterable[str],
    topic_partitions: Iterable[TopicPartition],
    known: Collection[TopicPartition],
    where: str = "not in the log dirs",
) -> None:
    """InvalidConfigError for a name (not a glob) that is none of what is known, with names near it:
    a typing error must not pass as "nothing to do"."""
    known_topics = {name.topic for name in known}
    missing = [t for t in topics if not _GLOB_CHARACTERS & set(t) and t not in known_topics]
    absent = [str(name) for name in topic_partitions if name not in known]
    if missing or absent:
        names = [*known_topics, *map(str, known)] if absent else known_topics
        near = did_you_mean_of([*missing, *absent], names)
        raise InvalidConfigError(f"{where}: {', '.join([*missing, *absent])}{near}")


def select_partitions(
    partitions: Iterable[Chosen],
    topics: Sequence[str] = (),
    topic_partitions: Sequence[TopicPartition] = (),
) -> list[Chosen]:
    """The partitions asked for; all of them where nothing is named.

    InvalidConfigError for a name (not a glob) that matches nothing.
    """
    everything = list(partitions)
    if not topics and not topic_partitions:
        return everything
    refuse_missing(topics, topic_partitions, {p.topic_partition for p in everything})
    is_asked_for = asked_for(topics, topic_partitions)
    return [p for p in everything if is_asked_for(p.topic_partition)]


def asked_for(
    topics: Sequence[str], topic_partitions: Sequence[TopicPartition]
) -> Callable[[TopicPartition], bool]:
    """What tells whether these names and globs mean a partition."""
    # Thousands of topics may be named: each partition is looked up, not held against all of them.
    in_full, partitions = named_topics(topics), frozenset(topic_partitions)
    globs = [topic for topic in topics if topic not in in_full]

    def is_asked_for(name: TopicPartition) -> bool:
        if partitions and name not in partitions:
            return False
        topic = name.topic
        return not topics or topic in in_full or any(fnmatchcase(topic, each) for each in globs)

    return is_asked_for
