"""The metadata that a fresh cluster gets for the logs of a bucket: where their partitions go, their
settings, what somebody has to know. No input, no output.

Source: Kafka ReplicaPlacer; settings of its own topic: TopicBasedRemoteLogMetadataManager.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kafkalog.format.topics import OFFSETS_TOPIC, REMOTE_LOG_TOPIC
from kafkalog.log.inventory import LogInventory
from kafkalog.log.metadata_names import BOOTSTRAP_FILE
from kafkalog.messages.cluster_metadata import TOPIC_RESOURCE
from kafkalog.restoring.attach_facts import (
    ELIGIBLE_LEADERS,
    AttachPlan,
    PlannedPartition,
    PlannedReplica,
)
from kafkalog.restoring.bucket_groups import AttachedGroups
from kafkalog.restoring.bucket_plan import AttachedLog, BucketPlan
from kafkalog.restoring.fresh import FreshDirs
from kafkalog.restoring.left_metadata import LeftMetadata

MOST_REPLICAS = 3
_FOR_EVER = {"retention.ms": "-1", "retention.bytes": "-1"}
_TIERED = "remote.storage.enable"
_METADATA_CONFIG = {"cleanup.policy": "delete", **_FOR_EVER}


class Placement:
    """Where partitions go: up to three replicas, leaders and log dirs of a node in turn."""

    def __init__(self, fresh: FreshDirs) -> None:
        self._fresh = fresh
        self._placed = 0

    def logs(
        self, logs: Sequence[AttachedLog], left: LeftMetadata | None
    ) -> list[PlannedPartition]:
        """All partitions of the topics; those of which nothing was copied begin at 0."""
        known: dict[tuple[str, int], AttachedLog] = {log.place: log for log in logs}
        counts: dict[str, int] = {}
        names = {log.topic_id: log.topic for log in logs}
        for topic_id, number in known:
            counts[topic_id] = max(counts.get(topic_id, 0), number + 1)
        for state in () if left is None else left.topics.states():
            if state["topicId"] in counts:
                topic_id = state["topicId"]
                counts[topic_id] = max(counts[topic_id], state["partition"] + 1)
        found = []
        for topic_id, count in counts.items():
            for number in range(count):
                log = known.get((topic_id, number))
                end = None if log is None else log.next_offset
                found.append(self.partition(names[topic_id], topic_id, number, end))
        return found

    def partition(
        self, topic: str, topic_id: str, number: int, end: int | None
    ) -> PlannedPartition:
        """The next one; end: None for one of which nothing is there."""
        nodes, turn = self._fresh.nodes, self._placed
        self._placed += 1
        chosen = [nodes[(turn + n) % len(nodes)] for n in range(min(MOST_REPLICAS, len(nodes)))]
        replicas = []
        for node in chosen:
            own = [each for each in self._fresh.dirs if each.node_id == node]
            place = own[turn % len(own)]
            path = None if end is None else str(Path(place.path, f"{topic}-{number}"))
            directory = place.directory_id or ""
            replicas.append(PlannedReplica(node, directory, path, None, end, is_in_sync=True))
        return PlannedPartition(
            topic, topic_id, number, chosen[0], tuple(replicas), is_empty=end is None
        )


def attach_plan(
    fresh: FreshDirs,
    decided: BucketPlan,
    partitions: Sequence[PlannedPartition],
    known: LeftMetadata | None,
    groups: AttachedGroups,
    also_lost: str,
) -> AttachPlan:
    """The plan whose records are written; known: the settings of its topics that are not lost;
    also_lost: beside records.
    """
    kept = {} if known is None else known.kept.get("ConfigRecord", {})
    set_ = {(fields["resourceName"], fields["name"]): fields["value"] for fields in kept.values()}
    with_own = {topic for topic, _ in set_}
    ids = {log.topic: log.topic_id for log in decided.logs}
    configs: dict[str, dict[str, str]] = {}
    lost = []
    for topic, topic_id in ids.items():
        is_known = known is not None and known.ids.get(topic) == topic_id
        made_up = {} if is_known else dict(_FOR_EVER)
        if set_.get((topic, _TIERED)) != "true":
            made_up[_TIERED] = "true"
        if made_up:
            configs[topic] = made_up
        lost += [] if is_known else [topic]
    if REMOTE_LOG_TOPIC not in with_own:
        configs[REMOTE_LOG_TOPIC] = _METADATA_CONFIG
    if groups.partitions:
        configs[OFFSETS_TOPIC] = dict(groups.config)
    has_eligible = fresh.feature_levels.get(ELIGIBLE_LEADERS)
    return AttachPlan(
        fresh.cluster_id,
        tuple(fresh.nodes),
        dict(fresh.feature_levels),
        BOOTSTRAP_FILE,
        decided.leader_epoch,
        decided.next_producer_id,
        tuple(partitions),
        configs,
        {str(node): -1 for node in fresh.nodes} if has_eligible else {},
        (*fresh.why_not, *decided.refusals),
        (*_warnings(partitions, lost), *groups.notes),
        tuple(_lost(decided.logs, also_lost)),
    )


def _warnings(partitions: Sequence[PlannedPartition], lost: Sequence[str]) -> list[str]:
    texts = [
        f"{each.topic}-{each.partition}: no segment of it is in the bucket, it begins at offset 0"
        for each in partitions
        if each.is_empty
    ]
    if lost:
        texts.append(
            f"settings of {', '.join(lost)} are not known (--metadata-from with a metadata log "
            "tells them): they keep all segments until retention.ms and retention.bytes are set"
        )
    return texts


def _lost(logs: Sequence[AttachedLog], also_lost: str) -> list[str]:
    texts = ["what was never copied to the bucket: records behind the end of each partition"]
    texts.append(also_lost)
    texts += [
        f"{log.topic}-{log.partition}: {len(log.left_out)} segments from offset {log.end_offset} "
        "on, behind the cut; they stay in the bucket, and no broker knows of them"
        for log in logs
        if log.left_out
    ]
    return texts


def known_partitions(left: LeftMetadata | None) -> int | None:
    """Of `__remote_log_metadata`, by the old cluster's metadata."""
    states = [] if left is None else list(left.topics.states())
    return sum(state["topic"] == REMOTE_LOG_TOPIC for state in states) or None


def known_configs(left: LeftMetadata | None, logs: Sequence[AttachedLog]) -> LeftMetadata | None:
    """Of what the old metadata says the settings of these topics alone."""
    if left is None:
        return None
    topics = {log.topic for log in logs} | {REMOTE_LOG_TOPIC}
    kept = {
        key: fields
        for key, fields in left.kept.get("ConfigRecord", {}).items()
        if key[0] == TOPIC_RESOURCE and key[1] in topics
    }
    return replace(left, kept={"ConfigRecord": kept})


def metadata_topic_id(fresh: FreshDirs, old: LogInventory | None) -> str:
    """The old one where it is known, else one that is made from the cluster's id: a plan that is
    made twice is the same.
    """
    for each in old or ():
        if each.topic_partition.topic == REMOTE_LOG_TOPIC and each.topic_id is not None:
            return each.topic_id
    return made_topic_id(fresh, REMOTE_LOG_TOPIC)


def made_topic_id(fresh: FreshDirs, topic: str) -> str:
    """Of a topic that is new."""
    digest = hashlib.sha256(f"{fresh.cluster_id} {topic}".encode()).digest()
    # As of Kafka's own no id begins with a minus, which a shell takes for an option.
    return urlsafe_b64encode(bytes([digest[0] & 0x7F]) + digest[1:16]).decode()[:22]
