"""Whose word counts for a topic's settings, and when they contradict each other.

From strongest to weakest: `--config`, the topic's table in `--config-file`, the topic's own
settings in the cluster's metadata, the dynamic settings of this broker and of all brokers there,
the broker's file (`--server-properties`), Kafka's default. Each setting takes the first that says
something, and the plan says which.

The first two are what an operator says, the others what was in force. Where they differ, compaction
would do what the cluster never would have, so that is refused unless forced. A topic whose
`cleanup.policy` nobody has set counts as one that says `delete`: a wrong guess there loses records.
Other settings that only Kafka's default speaks for may be given freely. How well the policy is
known (`PolicyStanding`) decides whether anything may be deleted by it: see `policy_evidence`.

The cluster's metadata is its metadata log, or what ZooKeeper kept of an older one.

Without the cluster's metadata (a copied partition) the policy must be given: no guess.

A setting that a later release brought does not exist for the one whose rules are followed: stored
in the cluster or a broker's file it says nothing, from an operator it is a mistake.

Source: Kafka LogConfig.fromProps, DynamicBrokerConfig, ConfigHelper; the refusals are ours.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafkalog.errors import InvalidConfigError
from kafkalog.log.cluster_settings import ClusterSettings
from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.broker_config import topic_settings
from kafkalog.planning.kafka_version import DEFAULT_KAFKA_VERSION
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import HOW_TO_FORCE, POLICY, PolicyStanding

__all__ = [
    "Difference",
    "GivenSettings",
    "PolicyStanding",
    "ResolvedConfig",
    "resolve_config",
]

CONFIG_FILE = "config-file"
TOPIC = "topic"
BROKER = "broker"
ALL_BROKERS = "all brokers"
SERVER_PROPERTIES = "server.properties"

_TIERED = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """What is given about settings beside the log dirs: `options` is a LogConfig of the given ones
    only; config_file has settings by topic, "*" for all others; server_properties None = no file;
    named_topics: those that the command names in full, of which the options speak.
    """

    options: LogConfig
    config_file: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    server_properties: Mapping[str, str] | None = None
    named_topics: frozenset[str] = frozenset()

    def of_topic(self, topic: str) -> dict[str, tuple[str, str]]:
        """key → (text, source) of what the operator says about a topic."""
        tables = {**self.config_file.get("*", {}), **self.config_file.get(topic, {})}
        said = {key: (text, CONFIG_FILE) for key, text in tables.items()}
        options = self.options
        return said | {key: (text, options.sources[key]) for key, text in options.given().items()}

    def says_policy_of(self, topic: str) -> bool:
        """Whether the policy it says is said of this topic, not of topics in general."""
        if POLICY in self.options.sources:
            return topic in self.named_topics
        return POLICY in self.config_file.get(topic, {})


@dataclass(frozen=True, slots=True)
class Difference(JsonFacts):
    """A setting that the operator says otherwise than it is in force; values as text."""

    key: str
    in_force: str
    in_force_source: str
    said: str
    said_source: str

    def __str__(self) -> str:
        return (
            f"{self.key} is {self.in_force} (from {self.in_force_source}), "
            f"not {self.said} (from {self.said_source})"
        )


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A topic's settings; `refusal` says why they must not be acted on. `is_local`: the topic is
    known not to be tiered, which Kafka's default alone does not tell.

    `differences`: what the operator says otherwise than the broker does, forced or not;
    `undeclared`: what a file declares and the cluster has not, so that Kafka's default is in force;
    `in_force`: the settings without these of the operator's words, by which a broker goes.
    `unreliable`: why the cluster's metadata tells nothing of this topic. `standing`: how the policy
    is known; `is_forced`: whether the operator's word stands against what is on the disk.
    """

    config: LogConfig
    refusal: str | None = None
    is_local: bool = False
    in_force: LogConfig = field(default_factory=LogConfig)
    differences: tuple[Difference, ...] = ()
    undeclared: tuple[Difference, ...] = ()
    unreliable: str | None = None
    standing: PolicyStanding = PolicyStanding.UNKNOWN
    is_forced: bool = False


def resolve_config(
    topic: str,
    topic_id: str | None,
    given: GivenSettings,
    cluster: ClusterSettings | None,
    node_id: int | None,
    *,
    force_differs: bool = False,
    needs_policy: bool = True,
    kafka_version: str = DEFAULT_KAFKA_VERSION,
) -> ResolvedConfig:
    """The settings of a topic, and whether they may be acted on.

    topic_id and node_id are those of the directories, None where they do not tell; cluster is None
    where there is neither a metadata log nor a ZooKeeper. `force_differs` lets the operator's word
    stand against the cluster's, but never makes a policy up. Without `needs_policy` a policy that
    no source has is Kafka's default.

    InvalidConfigError if the operator's own settings are wrong; the cluster's are a refusal.
    """
    said = given.of_topic(topic)
    known = LogConfig.keys(kafka_version)
    _check_known(said, known, kafka_version)
    unreliable = _why_unreliable(topic, topic_id, cluster)
    # What a damaged metadata log still tells is better than Kafka's defaults for who looks; who
    # changes something is refused, and with `force_differs` goes by the operator's word alone.
    is_known_in_part = not force_differs and _is_known_in_part(topic, topic_id, cluster)
    telling = cluster if unreliable is None or is_known_in_part else None
    try:
        in_force = {
            key: value
            for key, value in _in_force(topic, given, telling, node_id).items()
            # A topic has settings of its own that are none of a log's, as throttled replicas.
            if key in known
        }
        base = _config(in_force)
    except InvalidConfigError as error:
        reason = f"the broker's own settings of {topic} are not usable: {error}"
        config = _config(said)
        return ResolvedConfig(config, reason, in_force=config, unreliable=reason)
    config = _combined(in_force, said)
    is_reliable = cluster is not None and unreliable is None
    differences = _differences(base, config, said, cluster)
    undeclared = _undeclared(base, config, said) if is_reliable else []
    differing = {difference.key for difference in (*differences, *undeclared)}
    unopposed = {key: value for key, value in said.items() if _shown_key(key) not in differing}
    resolved = ResolvedConfig(
        config,
        in_force=config if force_differs or unreliable else _combined(in_force, unopposed),
        differences=tuple(differences),
        undeclared=tuple(undeclared),
        unreliable=unreliable,
        standing=_standing(topic, given, base, config, is_reliable=is_reliable),
        is_forced=force_differs,
    )
    has_policy = POLICY in said or POLICY in in_force
    is_unknown = cluster is None and needs_policy and not has_policy
    refusal = _refusal(resolved, has_policy=has_policy, is_unknown=is_unknown)
    if refusal is not None:
        return replace(resolved, refusal=refusal)
    is_known = is_reliable or _TIERED in said or _TIERED in in_force
    return replace(resolved, is_local=is_known and not config.remote_storage_enable)


def _check_known(said: Iterable[str], known: Container[str], kafka_version: str) -> None:
    for key in said:
        if key not in known:
            raise InvalidConfigError(
                f"unknown setting {key}: Kafka {kafka_version} has no such topic setting, a later "
                "release has (--kafka-version)"
            )


def _refusal(resolved: ResolvedConfig, *, has_policy: bool, is_unknown: bool) -> str | None:
    """Why the settings must not be acted on. Force puts the operator's word in place of the
    cluster's, but makes no policy up.
    """
    if resolved.unreliable is not None and not (resolved.is_forced and has_policy):
        return resolved.unreliable
    if is_unknown:
        return (
            "no cluster metadata beside the partition: cleanup.policy is not known, and "
            "neither --config nor --config-file nor --server-properties gives it"
        )
    if resolved.differences and not resolved.is_forced:
        return f"{', '.join(map(str, resolved.differences))}; {HOW_TO_FORCE}"
    return None


def _standing(
    topic: str, given: GivenSettings, base: LogConfig, config: LogConfig, *, is_reliable: bool
) -> PolicyStanding:
    """`base` is what was in force, with it the operator's words `config`."""
    is_theirs = is_reliable and set(base.cleanup_policy) == set(config.cleanup_policy)
    is_set = base.source(POLICY) != LogConfig.DEFAULT
    if is_theirs and is_set and not base.source(POLICY).startswith(SERVER_PROPERTIES):
        return PolicyStanding.IN_FORCE
    if given.says_policy_of(topic):
        return PolicyStanding.SAID
    return PolicyStanding.DEFAULT if is_theirs else PolicyStanding.UNKNOWN


def _why_unreliable(
    topic: str, topic_id: str | None, cluster: ClusterSettings | None
) -> str | None:
    if cluster is None:
        return None
    if cluster.problems:
        return f"the cluster metadata cannot be relied on: {'; '.join(cluster.problems)}"
    known = cluster.topics.get(topic)
    if known is None:
        return (
            f"the cluster metadata ({cluster.read_from}) has no topic {topic}: it was deleted, or "
            "the directory is another cluster's"
        )
    # Before Kafka 2.8 topics had no ids.
    if topic_id is not None and known.topic_id and topic_id != known.topic_id:
        return (
            f"the directory belongs to topic id {topic_id}, the cluster's {topic} has "
            f"{known.topic_id}: it was created anew, or the directory is another cluster's"
        )
    return None


def _is_known_in_part(topic: str, topic_id: str | None, cluster: ClusterSettings | None) -> bool:
    """Whether metadata with problems has this very topic."""
    if cluster is None or not cluster.problems or topic not in cluster.topics:
        return False
    known = cluster.topics[topic].topic_id
    return topic_id is None or not known or topic_id == known


def _in_force(
    topic: str, given: GivenSettings, cluster: ClusterSettings | None, node_id: int | None
) -> dict[str, tuple[str, str]]:
    """key → (text, source) of what the broker knows, without Kafka's defaults."""
    found = _from_broker(given.server_properties or {}, SERVER_PROPERTIES)
    if cluster is None:
        return found
    found |= _from_broker(cluster.broker_configs.get("", {}), ALL_BROKERS)
    if node_id is not None:
        dynamic = cluster.broker_configs.get(str(node_id), {})
        found |= _from_broker(dynamic, f"{BROKER} {node_id}")
    own = cluster.topics[topic].config if topic in cluster.topics else {}
    return found | {key: (text, TOPIC) for key, text in own.items()}


def _from_broker(settings: Mapping[str, str], source: str) -> dict[str, tuple[str, str]]:
    return {
        key: (text, f"{source} {name}") for key, (text, name) in topic_settings(settings).items()
    }


def _config(settings: Mapping[str, tuple[str, str]]) -> LogConfig:
    return LogConfig.from_properties(
        {key: text for key, (text, _) in settings.items()},
        source={key: source for key, (_, source) in settings.items()},
    )


def _combined(
    in_force: Mapping[str, tuple[str, str]], said: Mapping[str, tuple[str, str]]
) -> LogConfig:
    # The internal limit is in force where both are there: a given one must not lose to it.
    hidden = {"internal.segment.bytes"} if "segment.bytes" in said else set()
    kept = {key: value for key, value in in_force.items() if key not in hidden}
    return _config({**kept, **said})


def _differences(
    base: LogConfig,
    config: LogConfig,
    said: Mapping[str, tuple[str, str]],
    cluster: ClusterSettings | None,
) -> list[Difference]:
    """The settings that the operator says otherwise than they are in force."""
    found: dict[str, Difference] = {}
    for shown in map(_shown_key, said):
        ours, theirs = config.value(shown), base.value(shown)
        is_policy = shown == POLICY
        is_default = base.source(shown) == LogConfig.DEFAULT
        if is_default and not (is_policy and cluster is not None):
            continue
        same = set(ours) == set(theirs) if is_policy else ours == theirs
        if not same:
            found[shown] = _difference(shown, base, config)
    return list(found.values())


def _undeclared(
    base: LogConfig, config: LogConfig, said: Mapping[str, tuple[str, str]]
) -> list[Difference]:
    """What a file declares where the cluster's metadata has no such setting: declared is not in
    force, and of Kafka's default the file says another value.
    """
    declared = {_shown_key(key) for key, (_, source) in said.items() if source == CONFIG_FILE}
    return [
        _difference(shown, base, config)
        for shown in sorted(declared)
        if base.source(shown) == LogConfig.DEFAULT
        and shown != POLICY
        and config.value(shown) != base.value(shown)
    ]


def _difference(shown: str, base: LogConfig, config: LogConfig) -> Difference:
    values = _shown(base, shown), base.source(shown), _shown(config, shown), config.source(shown)
    return Difference(shown, *values)


def _shown_key(key: str) -> str:
    return "segment.bytes" if key == "internal.segment.bytes" else key


def _shown(config: LogConfig, key: str) -> str:
    return config.to_properties()[key] or "empty"
