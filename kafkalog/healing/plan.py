"""Which copy is put right from which, by what a comparison found. Nothing is healed unless each
difference of the copy is proven, and one copy is right in all of them and wrong in none.

Up to the cut offset the healed copy has the right one's batches, from there on its own: below the
right one's start, and behind the end of the segment in which the last difference is, nothing
differs. Of transactions the end of what differs is not known: there it is all of the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkalog.comparing.difference import ComparedPartition, Difference
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.json_facts import JsonFacts
from kafkalog.log.topic_partition import TopicPartition
from kafkalog.planning.statuses import REFUSED
from kafkalog.replicas.copies import Copy
from kafkalog.replicas.digested import DigestedReplica
from kafkalog.replicas.replica import Replica

HEAL = "heal"
# A broker mends it when it starts: it cuts what the leader does not have.
_CUT_BY_A_BROKER = "diverged-epoch"
_DELETED = "resurrected-key"
_OF_TRANSACTIONS = (
    "aborted-served-as-committed", "committed-hidden", "open-transaction-forgotten"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HealPlan(JsonFacts):
    """A wrong copy (`path`), and how it is put right: from `source`, a copy called `source_name`,
    up to `cut_offset`. status: `heal`, or `refused` with a reason. otherwise: what else helps.
    """

    topic_partition: TopicPartition
    path: str
    log_dir: str
    name: str
    status: str
    differences: int
    reason: str = ""
    source: str = ""
    source_name: str = ""
    cut_offset: int = 0
    otherwise: str = ""


def plan_heals(
    compared: ComparedPartition, copies: Sequence[Copy], *, of_digests: bool = False
) -> Iterator[HealPlan]:
    """A plan for each copy on this host that is wrong in anything. `copies`: of the partition.
    `of_digests`: for those on other hosts instead, from the copies that are here.
    """
    local = {each.name: each for each in copies if isinstance(each, Replica)}
    by_name = {each.name: each for each in copies}
    for result in compared.replicas:
        own = [each for each in compared.differences if result.name in each.wrong]
        if own and (result.name in local) is not of_digests:
            yield _plan(by_name[result.name], own, compared, local)


def _plan(
    wrong: Copy,
    differences: Sequence[Difference],
    compared: ComparedPartition,
    local: Mapping[str, Replica],
) -> HealPlan:
    path, log_dir = wrong.place, wrong.where
    if isinstance(wrong, DigestedReplica):
        path, log_dir = wrong.facts.place, wrong.facts.log_dir
    plan = HealPlan(
        compared.topic_partition, path, log_dir, wrong.name, REFUSED,
        sum(1 + each.more for each in differences),
        otherwise=f"while its broker is stopped, mv {path} to a place outside of its log "
        f"dir: when it starts it copies the partition from the leader, which has to be a right one",
    )  # fmt: skip
    reason = _why_not(differences, compared)
    if reason is not None:
        return _refused(plan, reason)
    wrong_in = {each.name: each.wrong for each in compared.replicas}
    right = [
        name
        for name in local
        if all(name in each.right for each in differences) and not wrong_in[name]
    ]
    if not right:
        return _refused(plan, "no copy that is here is right in all differences and wrong in none")
    ends = {each.name: each.log_end_offset for each in compared.replicas}
    source = max(right, key=lambda name: (ends[name], name))
    segments = (wrong if isinstance(wrong, Replica) else local[source]).partition
    cut = _cut_offset(segments, differences, min(ends[source], ends[wrong.name]))
    return HealPlan(
        plan.topic_partition, plan.path, plan.log_dir, plan.name, HEAL, plan.differences,
        source=local[source].partition.path, source_name=source, cut_offset=cut,
        otherwise=plan.otherwise,
    )  # fmt: skip


def _why_not(differences: Sequence[Difference], compared: ComparedPartition) -> str | None:
    for each in differences:
        place = f"{each.kind} at {each.offset}"
        if each.kind == _CUT_BY_A_BROKER:
            return f"{place}: its broker cuts it when it follows the leader"
        # A record that was lost from a cleaned range looks as if it had been deleted. Kafka's
        # cleaner leaves the replicas wrong that were away; a disk makes one copy lose something.
        if each.kind == _DELETED and len(each.wrong) > len(each.right):
            return (
                f"{place}: more copies have the record than lack it, and one that was lost looks "
                "the same as one that was deleted"
            )
    for each in compared.differences:
        # Of any copy: the right one's records would take the place of what may be right.
        if not each.is_proven:
            return f"{each.kind} at {each.offset}: not provable which copy is right"
    return None


def _cut_offset(
    partition: PartitionInventory, differences: Sequence[Difference], end_offset: int
) -> int:
    if any(each.kind in _OF_TRANSACTIONS or each.more for each in differences):
        return end_offset
    last = max(
        each.offset if each.last_offset is None else each.last_offset for each in differences
    )
    behind = [segment.base_offset for segment in partition.segments if segment.base_offset > last]
    return min([*behind, end_offset])


def _refused(plan: HealPlan, reason: str) -> HealPlan:
    return HealPlan(
        plan.topic_partition, plan.path, plan.log_dir, plan.name, REFUSED, plan.differences, reason,
        otherwise=plan.otherwise,
    )  # fmt: skip
