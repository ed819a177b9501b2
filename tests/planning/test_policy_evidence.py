"""How well a policy is known, what stands against it, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafkalog.format.topics import INTERNAL_POLICIES
from kafkalog.log.cluster_settings import ClusterSettings, TopicSettings
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionCheckpoints, TopicPartition
from kafkalog.planning.compaction import plan_compaction
from kafkalog.planning.config_sources import GivenSettings, PolicyStanding, resolve_config
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import presumed_config, why_not_compacted
from kafkalog.planning.retention import RetentionPlan, plan_retention
from tests.planning.facts import FIVE, NOW_MS, partition

ID = "4L6g3nShT-eMCtK--X86sw"
DELETE = "cleanup.policy=delete"
COMPACT = "cleanup.policy=compact"
BOTH = "cleanup.policy=compact,delete"
DUE = "retention.ms=1000"
NO_FACTS = PartitionFacts(())
MARK = PartitionFacts((), compaction_mark="batch 3 of segment 0 @ 0 has a delete horizon")


def standing_of(
    *options: str,
    own: Mapping[str, str] | None = None,
    brokers: Mapping[str, Mapping[str, str]] | None = None,
    table: str | None = None,
    server: Mapping[str, str] | None = None,
    named: bool = True,
) -> PolicyStanding:
    cluster = None
    if own is not None:
        cluster = ClusterSettings(
            "/d", "the log", 9, {"orders": TopicSettings(ID, own)}, brokers or {}
        )
    told = GivenSettings(
        LogConfig.from_overrides(options, is_partial=True),
        {} if table is None else {table: {"cleanup.policy": "delete"}},
        server,
        frozenset({"orders"} if named else ()),
    )
    return resolve_config("orders", ID, told, cluster, 1, force_differs=True).standing


@pytest.mark.parametrize(
    ("expected", "how"),
    [
        ("in-force", {"own": {"cleanup.policy": "delete"}}),
        ("in-force", {"own": {}, "brokers": {"": {"log.cleanup.policy": "delete"}}}),
        ("in-force", {"own": {}, "brokers": {"1": {"log.cleanup.policy": "delete"}}}),
        ("in-force", {"own": {"cleanup.policy": "delete"}, "options": [DELETE], "named": False}),
        ("default", {"own": {}}),
        ("default", {"own": {}, "brokers": {"2": {"log.cleanup.policy": "compact"}}}),
        ("default", {"own": {}, "server": {"log.cleanup.policy": "delete"}}),
        ("default", {"own": {}, "options": [DELETE], "named": False}),
        ("said", {"own": {}, "options": [DELETE]}),
        ("said", {"options": [DELETE]}),
        ("said", {"table": "orders", "named": False}),
        ("said", {"own": {"cleanup.policy": "compact"}, "options": [DELETE]}),
        ("unknown", {}),
        ("unknown", {"options": [DUE]}),
        ("unknown", {"options": [DELETE], "named": False}),
        ("unknown", {"options": [DELETE], "named": False, "table": "orders"}),
        ("unknown", {"table": "*"}),
        ("unknown", {"server": {"log.cleanup.policy": "delete"}}),
        # force lifts a contradiction for the topics that are named, not for all that match
        ("unknown", {"own": {"cleanup.policy": "compact"}, "options": [DELETE], "named": False}),
    ],
)  # fmt: skip
def test_who_says_the_policy(expected: str, how: dict[str, Any]) -> None:
    options = how.pop("options", ())
    assert standing_of(*options, **how) == expected


def plan(
    *settings: str,
    topic: str = "orders",
    cleaner: int | None = None,
    facts: PartitionFacts = NO_FACTS,
    **options: Any,
) -> RetentionPlan:
    inventory = partition(FIVE, topic_partition=TopicPartition(topic, 0))
    inventory = replace(inventory, checkpoints=replace(inventory.checkpoints, cleaner=cleaner))
    config = LogConfig.from_overrides([*settings, DUE])
    return plan_retention(inventory, config, facts, now_ms=NOW_MS, **options)


@pytest.mark.parametrize("standing", [None, PolicyStanding.UNKNOWN])
@pytest.mark.parametrize("forced", [False, True])
def test_an_unknown_policy_deletes_nothing_whatever_is_forced(
    standing: PolicyStanding | None, forced: bool
) -> None:
    made = plan(standing=standing, is_forced=forced)
    assert (made.status, made.deleted) == ("refused", ())
    assert "cleanup.policy of orders is not known" in made.reason
    assert "--topic orders --config cleanup.policy=" in made.reason
    seen = plan(standing=standing, cleaner=20).reason
    assert "cleaner-offset-checkpoint has it compacted up to offset 20" in seen


EVIDENCE: list[tuple[dict[str, Any], str]] = [
    ({"cleaner": 20}, "cleaner-offset-checkpoint has it compacted up to offset 20"),
    ({"cleaner": 0}, "compacted up to offset 0"),
    ({"facts": MARK}, "has a delete horizon"),
    *(({"topic": topic}, f"a broker makes {topic} with") for topic in INTERNAL_POLICIES),
]


@pytest.mark.parametrize(("seen", "reason"), EVIDENCE)
def test_what_the_disk_shows_stands_against_a_policy_that_deletes(
    seen: dict[str, Any], reason: str
) -> None:
    said = plan(DELETE, **seen)
    assert (said.status, said.deleted) == ("refused", ())
    assert reason in said.reason
    assert "--force config-differs" in said.reason
    assert len(plan(DELETE, is_forced=True, **seen).deleted) == 5
    # by default never, whatever is forced; by the cluster's own word as a broker does
    for forced in (False, True):
        made = plan(standing=PolicyStanding.DEFAULT, is_forced=forced, **seen)
        assert made.status == "refused"
        assert reason in made.reason
    assert len(plan(DELETE, standing=PolicyStanding.IN_FORCE, **seen).deleted) == 5
    # without `delete` there is nothing to contradict
    assert plan(COMPACT, **seen).status == "skip"


def test_a_topic_that_is_compacted_and_deleted_from_has_been_compacted() -> None:
    assert len(plan(BOTH, cleaner=20).deleted) == 5
    assert len(plan(BOTH, facts=MARK).deleted) == 5
    assert plan(BOTH, topic="__consumer_offsets").status == "refused"


def test_without_evidence_the_clusters_default_counts() -> None:
    assert len(plan(standing=PolicyStanding.DEFAULT).deleted) == 5


@pytest.mark.parametrize(
    ("topic", "cleaner", "facts", "is_known"),
    [
        ("orders", None, PartitionFacts(()), False),
        ("orders", 20, PartitionFacts(()), True),
        ("orders", None, MARK, True),
        ("__consumer_offsets", None, PartitionFacts(()), True),
    ],
)
def test_a_policy_said_of_topics_in_general_compacts_only_what_was_compacted_before(
    topic: str, cleaner: int | None, facts: PartitionFacts, *, is_known: bool
) -> None:
    inventory = replace(
        partition(FIVE, topic_partition=TopicPartition(topic, 0)),
        checkpoints=PartitionCheckpoints(cleaner=cleaner, high_watermark=50),
    )
    config = LogConfig.from_overrides([COMPACT])
    for forced in (False, True):
        doubt = why_not_compacted(inventory, facts, PolicyStanding.UNKNOWN, is_forced=forced)
        assert (doubt is None) == is_known
        plan_of = plan_compaction(
            inventory, config, facts, now_ms=NOW_MS, standing=PolicyStanding.UNKNOWN,
            is_forced=forced,
        )  # fmt: skip
        assert ("cleanup.policy of orders is not known" in plan_of.reason) == (not is_known)
    for standing in (PolicyStanding.SAID, PolicyStanding.IN_FORCE, PolicyStanding.DEFAULT):
        assert why_not_compacted(inventory, facts, standing, is_forced=False) is None


@pytest.mark.parametrize("topic", ["__share_group_state", "__remote_log_metadata"])
def test_records_of_one_key_that_belong_together_are_not_compacted(topic: str) -> None:
    inventory = partition(FIVE, topic_partition=TopicPartition(topic, 0))
    config = LogConfig.from_overrides([COMPACT])

    def status(**options: Any) -> str:
        made = plan_compaction(inventory, config, PartitionFacts(()), now_ms=NOW_MS, **options)
        return made.reason if made.status == "refused" else made.status

    assert "reads all of it; to go on nevertheless: --force config-differs" in status()
    for options in ({"is_forced": True}, {"standing": PolicyStanding.IN_FORCE}):
        assert "reads all of it" not in status(**options)


@pytest.mark.parametrize(
    ("topic", "cleaner", "settings", "standing", "policy", "source"),
    [
        ("orders", None, [], "unknown", (), "unknown"),
        ("orders", 0, [], "unknown", ("compact",), "cleaner-offset-checkpoint"),
        ("orders", 20, [DELETE], "unknown", ("compact",), "cleaner-offset-checkpoint"),
        ("orders", 20, [DELETE], "said", ("compact",), "cleaner-offset-checkpoint"),
        ("orders", 20, [], "default", ("compact",), "cleaner-offset-checkpoint"),
        ("orders", 20, [BOTH], "said", ("compact", "delete"), "option"),
        ("orders", 20, [DELETE], "in-force", ("delete",), "option"),
        ("orders", None, [], "default", ("delete",), "default"),
        ("orders", None, [DELETE], "unknown", ("delete",), "option"),
        ("__consumer_offsets", None, [], "unknown", ("compact",), "internal topic"),
        ("__share_group_state", None, [], "unknown", ("delete",), "internal topic"),
    ],
)  # fmt: skip
def test_an_audit_judges_by_what_the_disk_suggests(
    topic: str,
    cleaner: int | None,
    settings: list[str],
    standing: str,
    policy: tuple[str, ...],
    source: str,
) -> None:
    checkpoints = PartitionCheckpoints(cleaner=cleaner)
    name = TopicPartition(topic, 0)
    inventory = replace(partition(FIVE, topic_partition=name), checkpoints=checkpoints)
    config = LogConfig.from_overrides(settings)
    presumed = presumed_config(inventory, config, PolicyStanding(standing))
    assert (presumed.cleanup_policy, presumed.source("cleanup.policy")) == (policy, source)
    assert presumed.retention_ms == (-1 if topic == "__share_group_state" else config.retention_ms)
