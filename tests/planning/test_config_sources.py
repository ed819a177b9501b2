"""Whose word counts for a setting, where it came from, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.log.cluster_settings import ClusterSettings, TopicSettings
from kafkalog.planning.broker_config import SYNONYMS, topic_settings
from kafkalog.planning.config_sources import GivenSettings, ResolvedConfig, resolve_config
from kafkalog.planning.kafka_version import FIRST_METADATA_VERSIONS, kafka_version_of
from kafkalog.planning.log_config import LogConfig

ID = "4L6g3nShT-eMCtK--X86sw"
KEY = "max.compaction.lag.ms"
BROKER_KEY = "log.cleaner.max.compaction.lag.ms"
COMPACT = {"cleanup.policy": "compact"}

# From strongest to weakest: (where, value, the source a plan names).
LEVELS = [
    ("option", "6", "option"),
    ("config-file", "5", "config-file"),
    ("topic", "4", "topic"),
    ("broker", "3", f"broker 1 {BROKER_KEY}"),
    ("all brokers", "2", f"all brokers {BROKER_KEY}"),
    ("server.properties", "1", f"server.properties {BROKER_KEY}"),
    ("default", str(2**63 - 1), "default"),
]


def cluster(
    topic: Mapping[str, str] = COMPACT, brokers: Mapping[str, Mapping[str, str]] | None = None
) -> ClusterSettings:
    topics = {"orders": TopicSettings(ID, topic)}
    return ClusterSettings("/d", "the log up to offset 9", 9, topics, brokers or {})


def told(
    *options: str,
    file: Mapping[str, Mapping[str, str]] | None = None,
    server: Mapping[str, str] | None = None,
) -> GivenSettings:
    return GivenSettings(LogConfig.from_overrides(options, is_partial=True), file or {}, server)


def resolve(
    said: GivenSettings,
    settings: ClusterSettings | None,
    *,
    topic_id: str | None = ID,
    node_id: int | None = 1,
    force: bool = False,
) -> ResolvedConfig:
    return resolve_config("orders", topic_id, said, settings, node_id, force_differs=force)


@pytest.mark.parametrize("strongest", range(len(LEVELS)))
def test_the_strongest_source_counts_and_is_named(strongest: int) -> None:
    there = {name: value for name, value, _ in LEVELS[strongest:]}
    said = told(
        *([f"{KEY}={there['option']}"] if "option" in there else []),
        file={"orders": {KEY: there["config-file"]}} if "config-file" in there else None,
        server={BROKER_KEY: there["server.properties"]} if "server.properties" in there else None,
    )
    brokers = {
        name: {BROKER_KEY: there[level]}
        for name, level in (("1", "broker"), ("", "all brokers"))
        if level in there
    }
    brokers["2"] = {BROKER_KEY: "99"}
    own = {KEY: there["topic"]} if "topic" in there else {}
    resolved = resolve(said, cluster(COMPACT | own, brokers), force=True)
    _, value, source = LEVELS[strongest]
    assert resolved.refusal is None
    assert resolved.config.max_compaction_lag_ms == int(value)
    assert resolved.config.source(KEY) == source
    assert resolved.config.source("cleanup.policy") == "topic"


def test_a_table_of_a_topic_goes_before_the_one_of_all_others() -> None:
    file = {"*": {KEY: "1", "segment.ms": "7"}, "orders": {KEY: "2"}, "other": {KEY: "3"}}
    config = resolve(told(file=file), cluster()).config
    assert (config.max_compaction_lag_ms, config.segment_ms) == (2, 7)


@pytest.mark.parametrize(
    ("option", "own", "reason"),
    [
        ("cleanup.policy=compact", {}, "cleanup.policy is delete (from default), not compact"),
        ("cleanup.policy=compact", {"cleanup.policy": "delete"}, "is delete (from topic)"),
        ("cleanup.policy=compact", {"cleanup.policy": "compact,delete"}, "compact,delete (from"),
        ("cleanup.policy=", COMPACT, "is compact (from topic), not empty (from option)"),
        ("retention.ms=5", {"retention.ms": "6"}, "retention.ms is 6 (from topic), not 5"),
        ("segment.ms=5", {}, "segment.ms is 9 (from all brokers log.roll.ms), not 5"),
        ("segment.bytes=1048576", {"internal.segment.bytes": "900"}, "segment.bytes is 900 (from"),
        ("internal.segment.bytes=9", {"segment.bytes": "1048576"}, "segment.bytes is 1048576"),
        ("preallocate=true", {}, "preallocate is false (from server.properties log.preallocate)"),
    ],
)
def test_an_option_that_contradicts_what_was_in_force_is_refused_unless_forced(
    option: str, own: dict[str, str], reason: str
) -> None:
    settings = cluster(own, {"": {"log.roll.ms": "9"}})
    said = told(option, server={"log.preallocate": "false"})
    resolved = resolve(said, settings)
    assert resolved.refusal is not None
    assert reason in resolved.refusal
    assert "--force config-differs" in resolved.refusal
    forced = resolve(said, settings, force=True)
    key, _, text = option.partition("=")
    assert forced.refusal is None
    assert forced.config.given()[key] == text
    as_file = told(file={"orders": {key: text}}, server=said.server_properties)
    assert reason.partition(", not")[0] in (resolve(as_file, settings).refusal or "")


@pytest.mark.parametrize(
    ("option", "own"),
    [
        ("cleanup.policy= compact", COMPACT),
        ("cleanup.policy=delete", {}),
        ("cleanup.policy=delete,compact", {"cleanup.policy": "compact,delete"}),
        ("min.cleanable.dirty.ratio=0.50", {"min.cleanable.dirty.ratio": "0.5"}),
        ("min.cleanable.dirty.ratio=0", COMPACT),
        ("segment.bytes=1048576", {"segment.bytes": "1048576"}),
    ],
)
def test_the_same_value_or_one_nobody_set_is_no_contradiction(
    option: str, own: dict[str, str]
) -> None:
    assert resolve(told(option), cluster(own)).refusal is None


def test_without_cluster_metadata_the_policy_must_be_given() -> None:
    refusal = resolve(told("segment.ms=1"), None).refusal
    assert refusal is not None
    assert "no cluster metadata" in refusal
    assert "--config" in refusal
    # force lifts contradictions; it makes nothing up
    assert resolve(told(), None, force=True).refusal == refusal
    for said in (
        told("cleanup.policy=compact"),
        told(file={"*": COMPACT}),
        told(server={"log.cleanup.policy": "compact"}),
    ):
        resolved = resolve(said, None, node_id=None, topic_id=None)
        assert resolved.refusal is None
        assert resolved.config.is_compacted


@pytest.mark.parametrize(
    ("settings", "topic_id", "reason"),
    [
        (replace(cluster(), topics={}), ID, "has no topic orders: it was deleted"),
        (cluster(), "5L6g3nShT-eMCtK--X86sw", "belongs to topic id 5L6g3nShT-eMCtK--X86sw"),
        (replace(cluster(), problems=("x @ 3: bad",)), ID, "cannot be relied on: x @ 3: bad"),
    ],
)
def test_unreliable_metadata_is_refused_even_if_options_agree(
    settings: ClusterSettings, topic_id: str, reason: str
) -> None:
    for said in (told(), told("cleanup.policy=compact")):
        assert reason in (resolve(said, settings, topic_id=topic_id).refusal or "")
    assert resolve(told(), settings, topic_id=topic_id, force=True).refusal is not None
    said = told("cleanup.policy=compact")
    forced = resolve(said, settings, topic_id=topic_id, force=True)
    assert (forced.config, forced.refusal) == (said.options, None)


def test_a_directory_that_tells_no_id_goes_by_its_name() -> None:
    assert resolve(told(), cluster(), topic_id=None).refusal is None


def test_settings_of_the_cluster_that_kafka_refuses_are_a_refusal_and_options_an_error() -> None:
    refusal = resolve(told(), cluster({"segment.bytes": "100"})).refusal
    assert refusal is not None
    assert "segment.bytes: 100 is not at least" in refusal
    with pytest.raises(InvalidConfigError, match=r"greater than max\.compaction\.lag\.ms 5"):
        resolve(told("min.compaction.lag.ms=6"), cluster({KEY: "5"}))


def test_settings_of_a_topic_that_are_none_of_a_logs_are_left_alone() -> None:
    own = COMPACT | {"follower.replication.throttled.replicas": "*", "unheard.of": "1"}
    assert resolve(told(), cluster(own)).config.given() == COMPACT


# -- a broker's own names --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broker", "key", "expected"),
    [
        ({"log.retention.hours": "1"}, "retention.ms", ("3600000", "log.retention.hours")),
        (
            {"log.retention.hours": "1", "log.retention.minutes": "1"},
            "retention.ms",
            ("60000", "log.retention.minutes"),
        ),
        (
            {"log.retention.hours": "1", "log.retention.minutes": "1", "log.retention.ms": "1"},
            "retention.ms",
            ("1", "log.retention.ms"),
        ),
        ({"log.retention.hours": "-1"}, "retention.ms", ("-1", "log.retention.hours")),
        ({"log.retention.minutes": "-1"}, "retention.ms", ("-1", "log.retention.minutes")),
        ({"log.retention.ms": "-7"}, "retention.ms", ("-1", "log.retention.ms")),
        ({"log.roll.hours": "2"}, "segment.ms", ("7200000", "log.roll.hours")),
        ({"log.roll.hours": "2", "log.roll.ms": "3"}, "segment.ms", ("3", "log.roll.ms")),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", ("3600000", "log.roll.jitter.hours")),
        (
            {"log.cleaner.min.cleanable.ratio": "0.1"},
            "min.cleanable.dirty.ratio",
            ("0.1", "log.cleaner.min.cleanable.ratio"),
        ),
        ({"message.max.bytes": "5"}, "max.message.bytes", ("5", "message.max.bytes")),
    ],
)
def test_ms_go_before_minutes_before_hours(
    broker: dict[str, str], key: str, expected: tuple[str, str]
) -> None:
    assert topic_settings(broker | {"num.io.threads": "8"}) == {key: expected}


@pytest.mark.parametrize(
    "name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
)
def test_a_broker_refuses_a_retention_of_0_and_so_do_we(name: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"{name}: 0"):
        topic_settings({name: "0"})
    # per topic it is legal
    assert LogConfig.from_overrides(["retention.ms=0"]).retention_ms == 0


@pytest.mark.parametrize("version", ["4.1", "4.2", "4.3", "4.4"])
def test_a_setting_of_a_later_release_says_nothing_unless_an_operator_names_it(
    version: str,
) -> None:
    key, is_known = "max.decompressed.message.bytes", version == "4.4"
    settings = cluster(COMPACT | {key: "500"}, {"": {key: "600"}})

    def limit(said: GivenSettings) -> int:
        resolved = resolve_config("orders", ID, said, settings, 1, kafka_version=version)
        assert resolved.refusal is None
        return resolved.config.max_decompressed_message_bytes

    assert limit(told(server={key: "700"})) == (500 if is_known else 2147483639)
    for said in (told(f"{key}=500"), told(file={"*": {key: "500"}})):
        if is_known:
            assert limit(said) == 500
        else:
            with pytest.raises(InvalidConfigError, match=f"Kafka {version} has no such"):
                limit(said)


def test_no_retention_setting_means_seven_days() -> None:
    assert topic_settings({}) == {}
    assert LogConfig().retention_ms == 7 * 24 * 3_600_000


def test_broken_broker_settings_are_named() -> None:
    for broker in ({"log.roll.hours": "0"}, {"log.retention.hours": "a"}):
        (name,) = broker
        with pytest.raises(InvalidConfigError, match=name):
            topic_settings(broker)


def test_synonyms_are_of_known_settings_and_named_once() -> None:
    assert SYNONYMS.keys() <= LogConfig.keys("4.4")
    names = [synonym.name for synonyms in SYNONYMS.values() for synonym in synonyms]
    assert len(names) == len(set(names))
    # those a broker has no name for
    assert LogConfig.keys("4.4") - SYNONYMS.keys() == {
        "internal.segment.bytes",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    }


@pytest.mark.parametrize(
    ("level", "version"),
    [
        (None, "4.3"), (1, "4.1"), (25, "4.1"), (26, "4.1"), (27, "4.1"), (28, "4.2"),
        (29, "4.2"), (30, "4.3"), (31, "4.4"), (33, "4.4"), (34, "4.4"), (99, "4.4"),
    ],
)  # fmt: skip
def test_the_version_is_the_feature_levels_within_what_is_known(
    level: int | None, version: str
) -> None:
    assert kafka_version_of(level) == version
    assert list(FIRST_METADATA_VERSIONS) == [(4, 1), (4, 2), (4, 3), (4, 4)]
