"""What a restore is asked for, and the words of its options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kafkalog.errors import InvalidConfigError
from kafkalog.format.topics import CLUSTER_METADATA_TOPIC, INTERNAL_POLICIES
from kafkalog.log.inventory import LogInventory
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.remote.paths import NO_REMOTE_STORAGE, RemoteStorage
from kafkalog.restoring.begin import Since
from kafkalog.restoring.cut import Until

ABORT, CUT = "abort", "cut"
_GLOB = frozenset("*?[")
_OFFSET = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<number>[0-9]+)=(?P<offset>[0-9]{1,19})")
# Kafka's Topic.validate.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_OF_KAFKA = frozenset((*INTERNAL_POLICIES, CLUSTER_METADATA_TOPIC))


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """sources: log dirs, or trees of remote storage; remote: that with the older segments of log
    dirs, or how the trees are laid out; renamed: the target's topic by that of the source, for
    those that get another name; topics: names or globs of the source's, topic_partitions: of those
    only these; since_ms, since_offsets: see `begin.Since`; until_ms, until_offsets: see
    `cut.Until`; offsets by partition of the source; end_transactions: ABORT, CUT, or None to
    refuse. Of topics that are made: replication_factor, None for the source's;
    leaves_followers_empty: whether only the leader's replica is filled; groups: names or globs of
    those whose offsets are in the new `__consumer_offsets`, which has offsets_partitions, None for
    as many as the source's; compacts: those whose policy says so, on the way.
    """

    sources: tuple[str, ...]
    topics: tuple[str, ...] = ()
    topic_partitions: tuple[TopicPartition, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    since_ms: int | None = None
    since_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    until_ms: int | None = None
    until_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    end_transactions: str | None = None
    replication_factor: int | None = None
    leaves_followers_empty: bool = False
    groups: tuple[str, ...] = ()
    offsets_partitions: int | None = None
    remote: RemoteStorage = NO_REMOTE_STORAGE
    compacts: bool = False

    def since(self, name: TopicPartition) -> Since:
        """Where a partition of the source begins to be taken."""
        return Since(self.since_offsets.get(name), self.since_ms)

    def until(self, name: TopicPartition) -> Until:
        """Where a partition of the source ends."""
        return Until(self.until_offsets.get(name), self.until_ms)

    def target_of(self, name: TopicPartition) -> TopicPartition:
        """What a partition of the source is called in the target."""
        return TopicPartition(self.renamed.get(name.topic, name.topic), name.partition)

    def check(self, found: LogInventory) -> None:
        """InvalidConfigError for a name that is not in the source, or two for one target."""
        topics = {each.topic_partition.topic for each in found}
        missing = [t for t in self.topics if not _GLOB & set(t) and t not in topics]
        partitions = {each.topic_partition for each in found}
        named = dict.fromkeys((*self.topic_partitions, *self.since_offsets, *self.until_offsets))
        missing += [str(name) for name in named if name not in partitions]
        if missing:
            raise InvalidConfigError(f"not in the source: {', '.join(missing)}")
        chosen = [t for t in topics if self.takes(t)]
        targets = [self.renamed.get(t, t) for t in chosen]
        twice = sorted({t for t in targets if targets.count(t) > 1})
        if twice:
            raise InvalidConfigError(f"two topics of the source into one: {', '.join(twice)}")

    def takes(self, topic: str) -> bool:
        """Whether a topic of the source, or a part of it, is asked for."""
        return (not self.topics or any(fnmatchcase(topic, t) for t in self.topics)) and (
            not self.topic_partitions or any(name.topic == topic for name in self.topic_partitions)
        )

    def takes_partition(self, name: TopicPartition) -> bool:
        """Whether a partition of the source is asked for."""
        return self.takes(name.topic) and (
            not self.topic_partitions or name in self.topic_partitions
        )


def parse_topics(texts: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The topics of the source that NAME, GLOB and OLD=NEW name, and the new names."""
    topics: list[str] = []
    renamed: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        topics.append(old)
        if not equals:
            continue
        if _GLOB & set(old) or not _TOPIC.fullmatch(new) or new in (".", ".."):
            raise InvalidConfigError(f"--topic {text!r}: OLD=NEW needs two topic names, no glob")
        if new in _OF_KAFKA:
            raise InvalidConfigError(f"--topic {text!r}: {new} is Kafka's own")
        if renamed.get(old, new) != new:
            raise InvalidConfigError(
                f"--topic {text!r}: {old} goes to {renamed[old]} already; a run makes one copy"
            )
        renamed[old] = new
    twice = sorted(set(renamed).intersection(text for text in texts if "=" not in text))
    if twice:
        raise InvalidConfigError(f"--topic: {', '.join(twice)} with another name and without one")
    return tuple(topics), renamed


def parse_offsets(option: str, text: str) -> dict[TopicPartition, int]:
    """`T-P=OFFSET,…` of an option; InvalidConfigError for anything else."""
    found: dict[TopicPartition, int] = {}
    for part in text.split(","):
        match = _OFFSET.fullmatch(part.strip())
        if match is None:
            raise InvalidConfigError(
                f"{option} {text!r}: a time (ms or ISO), or offsets as orders-0=1200,orders-1=900"
            )
        name = TopicPartition(match["topic"], int(match["number"]))
        if name in found:
            raise InvalidConfigError(f"{option} {text!r}: {name} is there twice")
        found[name] = int(match["offset"])
    return found
