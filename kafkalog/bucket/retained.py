"""The objects of segments that retention lets go, of a cluster that is no more: no broker deletes
them, and none reads them.

Whose they are the topic's and the segment's id tell; a segment whose objects lie at two places is
left. Copies of one partition may have been planned from different replicas: what goes is what all
of them let go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalog.bucket.judgement import Deletion
from kafkalog.planning.retention_plan import RetentionPlan
from kafkalog.remote.layouts import find_directories
from kafkalog.remote.paths import RemoteStorage
from kafkalog.remote.stored_segments import StoredSegment, stored_segments

KIND = "retention"

# Topic id, partition.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RetainedObjects:
    """deletions: by partition and offset; absent: ids of segments without an object; left: why
    others stay."""

    deletions: tuple[Deletion, ...]
    absent: tuple[str, ...]
    left: tuple[str, ...]


def objects_to_delete(plans: Iterable[RetentionPlan], storage: RemoteStorage) -> RetainedObjects:
    """What of the plans is in remote storage. InvalidConfigError as of `find_directories`."""
    wanted = _wanted(plans)
    if not any(ids for _, ids in wanted.values()):
        return RetainedObjects((), (), ())
    ids = {topic_id for topic_id, _ in wanted}
    found = [
        directory
        for place in storage.places
        for directory in find_directories(place, storage.layout, ids.__contains__)
    ]
    there: dict[str, Deletion] = {}
    left = []
    for segment in stored_segments(found):
        topic = _topic_of(segment, wanted)
        if topic is None or segment.segment_id is None:
            continue
        if segment.is_twice:
            left.append(f"{segment.place}: its objects lie under two prefixes")
        else:
            there[segment.segment_id] = Deletion(segment, KIND, topic)
    named = {each for _, segment_ids in wanted.values() for each in segment_ids}
    deletions = sorted(
        there.values(), key=lambda d: (d.topic, d.segment.partition, d.segment.base_offset)
    )
    absent = named - there.keys() if not left else set()
    return RetainedObjects(tuple(deletions), tuple(sorted(absent)), tuple(left))


def _topic_of(
    segment: StoredSegment, wanted: Mapping[Place, tuple[str, frozenset[str]]]
) -> str | None:
    """The topic of a segment that is to go; None of any other."""
    own = wanted.get((segment.topic_id or "", segment.partition))
    return own[0] if own is not None and segment.segment_id in own[1] else None


def _wanted(plans: Iterable[RetentionPlan]) -> dict[Place, tuple[str, frozenset[str]]]:
    """By partition the topic, and ids of segments that every replica's plan lets go."""
    found: dict[Place, tuple[str, frozenset[str]]] = {}
    for plan in plans:
        if plan.remote is None:
            continue
        name, topic_id = plan.topic_partition, plan.remote.topic_id
        own = frozenset(verdict.segment.segment_id for verdict in plan.remote.deleted)
        known = found.get((topic_id, name.partition))
        found[topic_id, name.partition] = name.topic, own if known is None else known[1] & own
    return found
