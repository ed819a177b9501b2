"""A topic that a restore makes in a new cluster: its partitions in the source, up to where each is
taken, its id, settings and replicas; and why it cannot be made.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.inventory import LogInventory, PartitionInventory
from kafkalog.restoring.cut import Until, cut_log
from kafkalog.restoring.fresh import FreshDirs
from kafkalog.restoring.left_metadata import LeftMetadata
from kafkalog.restoring.plan import (
    RestorePlan,
    TransactionalIds,
    blank_plan,
    compacting,
    cut_of,
    warnings_of,
    why_not_from,
)
from kafkalog.restoring.request import RestoreRequest
from kafkalog.restoring.topic_settings import log_config_of, settings_of

# Of a source whose metadata log is not here; more copies than that are rarely wanted.
_REPLICAS = 3


@dataclass(slots=True)
class NewTopic:
    """A topic of the target: its partitions' plans, without a place yet."""

    name: str
    source_name: str
    topic_id: str
    config: Mapping[str, str]
    plans: list[RestorePlan]
    replicas: int


def new_topic(
    request: RestoreRequest,
    name: str,
    found: Sequence[PartitionInventory],
    source: LogInventory,
    left: LeftMetadata | None,
    target: FreshDirs,
    ids: TransactionalIds,
    notes: list[str],
) -> NewTopic:
    """Of these partitions of the source; what is refused is in its plans, what somebody has to know
    goes to `notes`.
    """
    new = request.renamed.get(name, name)
    says_compact = request.compacts and name in request.topics
    config = settings_of(name, found, left, notes, says_compact=says_compact)
    log_config = log_config_of(config)
    missing = _missing(request, found, left, name)
    plans = []
    for each in found:
        plan = blank_plan(request.target_of(each.topic_partition), each)
        reason = "; ".join(target.why_not) or why_not_from(each, source) or missing
        if not reason:
            cut, reason = cut_of(request, each, ids)
            warnings = () if cut is None else tuple(warnings_of(cut, log_config))
            plan = compacting(replace(plan, cut=cut, warnings=warnings), request, log_config)
        plans.append(plan.refused(reason) if reason else plan)
    topic_ids = {each.topic_id for each in found}
    kept = topic_ids.pop() if len(topic_ids) == 1 and new == name else None
    count = _replicas(request, left, name, target)
    return NewTopic(new, name, kept or _new_topic_id(), config, plans, count)


def new_offsets_topic(
    found: Sequence[PartitionInventory],
    left: LeftMetadata | None,
    target: FreshDirs,
    request: RestoreRequest,
    notes: list[str],
) -> NewTopic:
    """`__consumer_offsets`, of partitions that were written for it."""
    plans = [
        replace(blank_plan(each.topic_partition, each), cut=cut_log(each, Until(), to_stable=False))
        for each in found
    ]
    config = settings_of(OFFSETS_TOPIC, found, left, notes)
    count = _replicas(request, left, OFFSETS_TOPIC, target)
    return NewTopic(OFFSETS_TOPIC, OFFSETS_TOPIC, _new_topic_id(), config, plans, count)


def _replicas(
    request: RestoreRequest, left: LeftMetadata | None, topic: str, target: FreshDirs
) -> int:
    states = [] if left is None else [s for s in left.topics.states() if s["topic"] == topic]
    known = len(states[0]["replicas"]) if states else _REPLICAS
    return min(request.replication_factor or known, len(target.nodes))


def _missing(
    request: RestoreRequest,
    found: Sequence[PartitionInventory],
    left: LeftMetadata | None,
    name: str,
) -> str | None:
    """A topic has no gaps in its numbers."""
    here = {each.topic_partition.partition for each in found}
    count = max(here) + 1
    if left is not None:
        count = max(
            [count, *(s["partition"] + 1 for s in left.topics.states() if s["topic"] == name)]
        )
    missing = [str(number) for number in range(count) if number not in here]
    if not missing:
        return None
    if request.topic_partitions:
        return (
            f"{name} has {count} partitions, and {', '.join(missing)} is not asked for: a topic is "
            "made with all of its partitions; some of them go into a topic that a cluster has made"
        )
    return (
        f"{name} has {count} partitions, of {', '.join(missing)} nothing is in the source: give "
        "the log dirs with all of them"
    )


def _new_topic_id() -> str:
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode()[:22]
        # As Kafka: one that begins with a dash is taken for an option.
        if not text.startswith("-") and not is_reserved_directory_id(text):
            return text
