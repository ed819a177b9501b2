"""Whether a topic's `cleanup.policy` is known well enough to delete records by it.

A wrong guess deletes what nobody brings back: the offsets of all groups, of connectors, a table
that was kept by compaction. So a policy counts for a deletion only where the cluster's metadata
has the topic, or where somebody says it for this topic: by its name in full with `--config`, or in
its own table of `--config-file`. A glob, the table `["*"]` and a broker's own file speak of topics
in general. The same holds for compaction, which deletes what a later record of its key replaces,
unless the disk shows that the partition was compacted before.

What the disk shows stands against a policy that deletes: a line in the cleaner's checkpoint, which
only a compacted partition gets; batches that only compaction leaves (a delete horizon, records
missing between two batches or within one); and the topics a broker makes by itself, of which it
deletes nothing by age. Only the cluster's own word is stronger, or an operator who forces it.

Source: Kafka LogCleanerManager.updateCheckpoints.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from kafkalog.format.topics import COMPACT, DELETE, INTERNAL_POLICIES
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.force_rules import FORCE_CONFIG_DIFFERS
from kafkalog.planning.log_config import LogConfig

POLICY = "cleanup.policy"
RETENTION_MS = "retention.ms"
HOW_TO_FORCE = f"to go on nevertheless: --force {FORCE_CONFIG_DIFFERS}"

_FOR_EVER = -1
# Where settings come from that the disk suggests, and no setting has.
UNKNOWN = "unknown"
INTERNAL = "internal topic"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
SUGGESTED = (UNKNOWN, INTERNAL, CLEANER_CHECKPOINT)


class PolicyStanding(StrEnum):
    """How a topic's policy is known."""

    IN_FORCE = "in-force"  # the cluster's metadata says it, of the topic or of its brokers
    SAID = "said"  # an operator says it of this topic
    DEFAULT = "default"  # the metadata has the topic, and no policy for it
    UNKNOWN = "unknown"  # neither has it

    @classmethod
    def of(cls, config: LogConfig) -> PolicyStanding:
        """Of settings that stand for themselves, as somebody made them for one topic."""
        return cls.UNKNOWN if config.source(POLICY) == LogConfig.DEFAULT else cls.SAID


def compaction_evidence(partition: PartitionInventory, facts: PartitionFacts) -> str | None:
    """What on the disk says that this partition was compacted, or is a broker's own topic."""
    topic = partition.topic_partition.topic
    if topic in INTERNAL_POLICIES:
        made = ",".join(INTERNAL_POLICIES[topic])
        kept = "" if INTERNAL_POLICIES[topic] == COMPACT else f" and {RETENTION_MS} -1"
        return f"a broker makes {topic} with {POLICY} {made}{kept}"
    cleaner = partition.checkpoints.cleaner
    if cleaner is not None:
        return f"{CLEANER_CHECKPOINT} has it compacted up to offset {cleaner}"
    return facts.compaction_mark


def why_not_deleted_from(
    partition: PartitionInventory,
    config: LogConfig,
    facts: PartitionFacts,
    standing: PolicyStanding,
    *,
    is_forced: bool,
) -> str | None:
    """Why nothing of a partition may be deleted by its policy; None where it may, or where the
    policy does not delete.
    """
    evidence = compaction_evidence(partition, facts)
    topic = partition.topic_partition.topic
    if standing is PolicyStanding.UNKNOWN:
        return _why_unknown(topic, evidence)
    if "delete" not in config.cleanup_policy or standing is PolicyStanding.IN_FORCE:
        return None
    is_internal = topic in INTERNAL_POLICIES
    # A policy of compact,delete explains both what compaction left and a deletion: nothing
    # contradicts.
    if evidence is None or (config.is_compacted and not is_internal):
        return None
    policy = f"{POLICY} is {','.join(config.cleanup_policy)} (from {config.source(POLICY)})"
    if standing is PolicyStanding.DEFAULT:
        return (
            f"{policy}, which is not set for {topic}, and {evidence}: --topic {topic} --config "
            f"{POLICY}=delete with --force {FORCE_CONFIG_DIFFERS} would set it"
        )
    return None if is_forced else f"{policy}, but {evidence}; {HOW_TO_FORCE}"


def _why_unknown(topic: str, evidence: str | None) -> str:
    seen = f" ({evidence})" if evidence else ""
    return (
        f"{POLICY} of {topic} is not known{seen}: no cluster metadata has it, and it is not "
        f"given for this topic, by --topic {topic} --config {POLICY}=… or by its table in "
        '--config-file; a glob, ["*"] and --server-properties do not count'
    )


def why_not_compacted(
    partition: PartitionInventory,
    facts: PartitionFacts,
    standing: PolicyStanding,
    *,
    is_forced: bool,
) -> str | None:
    """Why a topic must not be compacted whose policy an operator says: of topics in general, and
    the disk does not show that this one was compacted before; or of a broker's own ones without
    `compact`, which hold records of one key that belong together.
    """
    topic = partition.topic_partition.topic
    if INTERNAL_POLICIES.get(topic) == DELETE:
        if standing is PolicyStanding.IN_FORCE or is_forced:
            return None
        return f"a broker makes {topic} with {POLICY} delete, and reads all of it; {HOW_TO_FORCE}"
    if standing is PolicyStanding.UNKNOWN and compaction_evidence(partition, facts) is None:
        return _why_unknown(topic, None)
    return None


def presumed_config(
    partition: PartitionInventory, config: LogConfig, standing: PolicyStanding
) -> LogConfig:
    """The settings to judge a partition by that is only looked at: what somebody says of all topics
    is supposed of this one; where no policy is given, or the disk shows another one than a
    deleting one, it is the one the disk suggests, or none at all, which deletes nothing.
    """
    if standing is PolicyStanding.IN_FORCE or config.is_compacted:
        return config
    topic = partition.topic_partition.topic
    if topic in INTERNAL_POLICIES:
        return _as_internal(config, topic)
    if compaction_evidence(partition, PartitionFacts(())) is not None:
        return _with_policy(config, COMPACT, CLEANER_CHECKPOINT)
    is_guessed = config.source(POLICY) == LogConfig.DEFAULT
    if standing is PolicyStanding.UNKNOWN and is_guessed:
        return _with_policy(config, (), UNKNOWN)
    return config


def _as_internal(config: LogConfig, topic: str) -> LogConfig:
    presumed = _with_policy(config, INTERNAL_POLICIES[topic], INTERNAL)
    is_said = config.source(RETENTION_MS) != LogConfig.DEFAULT
    if is_said or INTERNAL_POLICIES[topic] == COMPACT:
        return presumed
    sources = {**presumed.sources, RETENTION_MS: INTERNAL}
    return replace(presumed, retention_ms=_FOR_EVER, sources=sources)


def _with_policy(config: LogConfig, policy: tuple[str, ...], source: str) -> LogConfig:
    return replace(config, cleanup_policy=policy, sources={**config.sources, POLICY: source})
