"""The settings of a topic that is made for a restore: the source's own where its metadata log tells
them, else such that nothing of it is deleted.

Left out is what names brokers or another storage: lists of throttled replicas, and tiered storage,
without which a broker that has such a topic does not start; and what Kafka 4 does not know.

Source: Kafka LogConfig, TopicConfig; KIP-724, KIP-950.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalog.format.topics import COMPACT, INTERNAL_POLICIES
from kafkalog.log.inventory import PartitionInventory
from kafkalog.messages.cluster_metadata import TOPIC_RESOURCE
from kafkalog.planning.kafka_version import NEWEST_KAFKA_VERSION
from kafkalog.planning.log_config import LogConfig
from kafkalog.restoring.left_metadata import LeftMetadata

NEWEST = ".".join(map(str, NEWEST_KAFKA_VERSION))
_OF_BROKERS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_OF_TIERS = ("remote.", "local.retention.")
_OF_OLD = (
    "message.format.version", "message.downconversion.enable",
    "message.timestamp.difference.max.ms",
)  # fmt: skip


def settings_of(
    topic: str,
    found: Sequence[PartitionInventory],
    left: LeftMetadata | None,
    notes: list[str],
    *,
    says_compact: bool = False,
) -> dict[str, str]:
    """Keys and values; what is made up or left out is added to `notes`. says_compact: whether the
    operator says so of this topic, which counts where nothing else tells.
    """
    if left is None or topic not in left.ids:
        is_compacted = says_compact or any(each.checkpoints.cleaner is not None for each in found)
        policy = INTERNAL_POLICIES.get(topic)
        if policy == COMPACT or (policy is None and is_compacted):
            made_up = {"cleanup.policy": "compact"}
        else:
            made_up = {"retention.ms": "-1", "retention.bytes": "-1"}
        shown = ", ".join(f"{name}={value}" for name, value in made_up.items())
        notes.append(
            f"{topic}: no metadata log of the source tells its settings: it gets {shown}; give the "
            "log dir with it as a source too, or set them once brokers run"
        )
        return made_up
    kept, left_out = dict[str, str](), list[str]()
    for key, fields in sorted(left.kept.get("ConfigRecord", {}).items()):
        if key[:2] != (TOPIC_RESOURCE, topic) or fields["value"] is None:
            continue
        name, value = str(fields["name"]), str(fields["value"])
        if _is_taken(name):
            kept[name] = value
        else:
            left_out.append(f"{name}={value}")
    if left_out:
        notes.append(f"{topic}: settings that are left out: {', '.join(left_out)}")
    return kept


def _is_taken(name: str) -> bool:
    return name not in (*_OF_BROKERS, *_OF_OLD) and not name.startswith(_OF_TIERS)


def log_config_of(settings: Mapping[str, str]) -> LogConfig:
    """Those of them by which segments and indexes are made."""
    known = LogConfig.keys(NEWEST)
    own = {name: value for name, value in settings.items() if name in known}
    return LogConfig.from_properties(own, is_partial=True)
