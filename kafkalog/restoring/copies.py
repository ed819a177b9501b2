"""Of several copies of a partition in the source the one that is restored: the copy that goes
furthest, as a controller would have it lead (see `attach_plan`): the latest leader epoch in its
records, of that the longest log; of equal ones the one that begins first.

Only the last segment and small files are looked at. A copy that is damaged at a place that they do
not tell of is refused when it is read: `compare` tells which is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import INTERNAL_POLICIES
from kafkalog.log.inventory import (
    CLUSTER_METADATA_TOPIC,
    LogInventory,
    PartitionInventory,
    PartitionKind,
)
from kafkalog.log.log_dir_files import read_log_dir_files
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.replicas.replica import Replica, ReplicaFacts, replica_facts
from kafkalog.restoring.plan import RestorePlan
from kafkalog.restoring.wholeness import wholeness_of


@dataclass(frozen=True, slots=True)
class Source:
    """What logs are taken from, each once where one of its copies could be chosen; said: what
    somebody has to know of the choice.
    """

    found: LogInventory
    said: Mapping[TopicPartition, str]

    def noted(self, plans: Iterable[RestorePlan]) -> Iterator[RestorePlan]:
        """The plans, with that."""
        for plan in plans:
            said = self.said.get(plan.source_name)
            yield plan if said is None else replace(plan, warnings=(said, *plan.warnings))


def one_copy_each(found: LogInventory, takes: Callable[[str], bool]) -> Source:
    """One copy of each partition of the topics that are taken. Copies of several clusters, or under
    several topic ids, stay side by side.
    """
    copies: dict[TopicPartition, list[PartitionInventory]] = {}
    for each in found:
        topic = each.topic_partition.topic
        is_own = topic in (*INTERNAL_POLICIES, CLUSTER_METADATA_TOPIC)
        if each.kind is PartitionKind.LIVE and takes(topic) and not is_own:
            copies.setdefault(each.topic_partition, []).append(each)
    others: set[str] = set()
    said: dict[TopicPartition, str] = {}
    for name, own in copies.items():
        if len(own) < 2 or len({each.topic_id for each in own}) > 1 or not _of_one_cluster(own):
            continue
        best, note = _best(own)
        others |= {each.path for each in own if each is not best}
        if note:
            said[name] = note
    kept = tuple(each for each in found if each.path not in others)
    return Source(replace(found, partitions=kept), said)


def how_far(facts: ReplicaFacts) -> tuple[int, int]:
    """The leader epoch of a copy's last record, -1 without one, and the end that a recovery keeps
    for sure.
    """
    end = min(facts.sound_end_offset, facts.log_end_offset)
    # A leader notes its epoch before it appends anything, a follower only with a record of it.
    return max((e for e, start in facts.leader_epochs if start < end), default=-1), end


def _of_one_cluster(copies: Iterable[PartitionInventory]) -> bool:
    metas = [read_log_dir_files(Path(each.log_dir)).meta for each in copies]
    return len({meta.cluster_id for meta in metas if meta is not None}) < 2


def _best(copies: Iterable[PartitionInventory]) -> tuple[PartitionInventory, str]:
    """The copy, and what is to be said of the others."""
    far: dict[str, tuple[int, int]] = {}
    unsound: list[str] = []
    paths = {each.path: each for each in copies}
    for path, each in paths.items():
        try:
            facts = replica_facts(Replica("", each, None, None))
            lacks = wholeness_of(each, each.log_end_offset).why_not
        except (KafkaLogError, OSError) as error:
            unsound.append(f"{path} is left out: {error}")
            continue
        problems = (*facts.problems, *([] if lacks is None else [lacks]))
        if problems:
            unsound.append(f"{path} is left out: {'; '.join(problems)}")
        else:
            far[path] = how_far(facts)
    if not far:  # each of them says why when it is planned
        return next(iter(paths.values())), ""
    best = max(far, key=lambda path: (far[path], -paths[path].log_start_offset))
    behind = [
        f"{path} ends at offset {end} of epoch {epoch}"
        for path, (epoch, end) in far.items()
        if (epoch, end) != far[best]
    ]
    if not behind and not unsound:
        return paths[best], ""
    epoch, end = far[best]
    return paths[best], (
        f"of {len(paths)} copies that of {best} is taken, to offset {end} of leader epoch {epoch}: "
        f"{'; '.join([*behind, *unsound])}"
    )
