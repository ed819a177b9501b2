"""What the metadata of a cluster has to be so that its brokers take their disks as they lie:
decided from `Disks` and, where one is left, from the metadata log. No input, no output.

Strategy: topics keep their ids, replicas and log dirs are those that the copies lie in. The copy
that goes furthest leads: the latest leader epoch, and of that the longest log. Only copies that end
at the same place are in sync: the controller may elect any of those, whichever starts first. All
partitions get one leader epoch, above all epochs that anything has, and producer ids begin above
all ids: what left no trace on a disk (an election without a leader, an id that was given out and
not used yet) has a margin. A topic whose settings are lost keeps all its data, until somebody says
otherwise: with a broker's defaults it would be deleted after a week.

Source: Kafka ReplicationControlManager, ProducerIdControlManager; KIP-966; settings of new internal
topics: GroupCoordinator, TransactionCoordinator, TopicBasedRemoteLogMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkalog.format.topics import COMPACT, INTERNAL_POLICIES
from kafkalog.restoring.attach_checks import check_disks, say_what_is_lost, topic_ids
from kafkalog.restoring.attach_facts import (
    ELIGIBLE_LEADERS,
    METADATA_VERSION,
    TRANSACTIONS_LEVEL,
    AttachFacts,
    AttachPlan,
    Notes,
)
from kafkalog.restoring.attach_partitions import partitions_of
from kafkalog.restoring.disks import DiskCopy, Disks
from kafkalog.restoring.left_metadata import LeftMetadata

# Room above what is on the disks: elections that left no leader raise the epoch, too; a broker
# holds ids that it has not given to a producer that wrote.
EPOCH_MARGIN = 100
PRODUCER_ID_MARGIN = 1_000_000
PRODUCER_BLOCK = 1000  # ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE
_MOST_IN_ONE_BATCH = 10_000  # QuorumController.MAX_RECORDS_PER_USER_OP


def plan_attach(facts: AttachFacts) -> AttachPlan:
    """The plan; with refusals it may be looked at, and not carried out."""
    disks, left = facts.disks, facts.left
    notes = Notes()
    check_disks(facts, notes)
    ids = topic_ids(disks.copies, left, notes)
    partitions = [*partitions_of(disks, left, ids, facts.force, notes)]
    levels = facts.feature_levels
    if left is not None and left.feature_levels:
        levels = left.feature_levels
    if not levels.get(METADATA_VERSION):
        notes.refusals.append(
            "no metadata log and no bootstrap.checkpoint tells metadata.version: "
            "--feature metadata.version=LEVEL, the level that the cluster had"
        )
    elif levels[METADATA_VERSION] < TRANSACTIONS_LEVEL and len(partitions) > _MOST_IN_ONE_BATCH:
        notes.refusals.append(
            f"{len(partitions)} partitions at metadata.version {levels[METADATA_VERSION]}: a "
            f"controller takes up to {_MOST_IN_ONE_BATCH} records at once below 3.6-IV1"
        )
    configs = _configs(disks.copies, left, ids)
    say_what_is_lost(facts, ids, configs, notes)
    return AttachPlan(
        disks.dirs[0].cluster_id,
        tuple(disks.nodes),
        dict(levels),
        facts.features_from if levels is facts.feature_levels else "the metadata log that is left",
        _leader_epoch(disks, left),
        _next_producer_id(disks, left),
        tuple(partitions),
        configs,
        _registrations(disks) if levels.get(ELIGIBLE_LEADERS) else {},
        tuple(notes.refusals),
        tuple(notes.warnings),
        tuple(notes.lost),
    )


def _leader_epoch(disks: Disks, left: LeftMetadata | None) -> int:
    highest = max((each.highest_epoch for each in disks.copies), default=0)
    if left is not None:
        highest = max([highest, *(state["leaderEpoch"] for state in left.topics.states())])
    return max(highest, 0) + EPOCH_MARGIN


def _next_producer_id(disks: Disks, left: LeftMetadata | None) -> int:
    highest = max((each.highest_producer_id for each in disks.copies), default=-1)
    known = 0 if left is None else left.next_producer_id
    return -(-max(highest + 1, known) // PRODUCER_BLOCK) * PRODUCER_BLOCK + PRODUCER_ID_MARGIN


def _registrations(disks: Disks) -> dict[str, int]:
    """The broker epoch of each node's last clean stop by node, -1 without one.

    With eligible leader replicas a broker that registers for the first time counts as one that was
    killed: it leaves the in-sync replicas, and leaders are elected uncleanly (seen on 4.3.1). One
    that is registered with the epoch that its clean shutdown tells has stopped in order. Of copies
    that did not, the ends were compared here.
    """
    found: dict[str, int] = {}
    # Of nodes that are controllers alone no broker ever registers.
    for node in sorted({each.node_id for each in disks.copies}):
        epochs = {each.clean_epoch for each in disks.dirs if each.node_id == node}
        epoch = epochs.pop() if len(epochs) == 1 else None
        found[str(node)] = -1 if epoch is None else epoch
    return found


def _configs(
    copies: Iterable[DiskCopy], left: LeftMetadata | None, ids: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Settings for topics whose own are lost."""
    known = {} if left is None else left.ids
    found: dict[str, dict[str, str]] = {}
    for topic, topic_id in sorted(ids.items()):
        if known.get(topic) == topic_id:
            continue
        own = [each for each in copies if each.name.topic == topic]
        policy = INTERNAL_POLICIES.get(topic)
        is_compacted = any(each.is_compacted for each in own)
        config = {"retention.ms": "-1", "retention.bytes": "-1"}
        if policy == COMPACT or (policy is None and is_compacted):
            config = {"cleanup.policy": "compact"}
        if any(each.has_remote for each in own):
            config["remote.storage.enable"] = "true"
        found[topic] = config
    return found
