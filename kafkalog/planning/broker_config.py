"""A broker's own settings, static or dynamic, as settings of its topics.

Each topic setting takes the first of its broker's names that is set: `log.retention.ms`, else
`log.retention.minutes`, else `log.retention.hours`. Broker limits differ from a topic's in one
place: a retention time of 0 is refused, and any negative one means without limit.

Settings that have no say in topics are left alone: a broker has hundreds.

Source: Kafka ServerTopicConfigSynonyms, ServerLogConfigs, AbstractKafkaConfig
(logRetentionTimeMillis, logRollTimeMillis), KafkaConfig.validateValues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalog.errors import InvalidConfigError
from kafkalog.planning.config_values import Limits, parse_config_value

_MS_PER_MINUTE = 60_000
_MS_PER_HOUR = 3_600_000

_ANY = Limits()
_AT_LEAST_0 = Limits(at_least=0)
_AT_LEAST_1 = Limits(at_least=1)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A broker's name of a topic setting; one in a larger unit is an int of so many ms."""

    name: str
    ms_per_unit: int = 0
    limits: Limits = _ANY


def _same(name: str) -> tuple[Synonym, ...]:
    return (Synonym(name),)


# Topic setting → the broker's names for it, the first that is set wins.
SYNONYMS: Mapping[str, tuple[Synonym, ...]] = {
    "cleanup.policy": _same("log.cleanup.policy"),
    "segment.bytes": _same("log.segment.bytes"),
    "segment.ms": (
        Synonym("log.roll.ms"),
        Synonym("log.roll.hours", _MS_PER_HOUR, _AT_LEAST_1),
    ),
    "segment.jitter.ms": (
        Synonym("log.roll.jitter.ms"),
        Synonym("log.roll.jitter.hours", _MS_PER_HOUR, _AT_LEAST_0),
    ),
    "segment.index.bytes": _same("log.index.size.max.bytes"),
    "index.interval.bytes": _same("log.index.interval.bytes"),
    "retention.bytes": _same("log.retention.bytes"),
    "retention.ms": (
        Synonym("log.retention.ms", 1),
        Synonym("log.retention.minutes", _MS_PER_MINUTE),
        Synonym("log.retention.hours", _MS_PER_HOUR),
    ),
    "delete.retention.ms": _same("log.cleaner.delete.retention.ms"),
    "min.compaction.lag.ms": _same("log.cleaner.min.compaction.lag.ms"),
    "max.compaction.lag.ms": _same("log.cleaner.max.compaction.lag.ms"),
    "min.cleanable.dirty.ratio": _same("log.cleaner.min.cleanable.ratio"),
    "file.delete.delay.ms": _same("log.segment.delete.delay.ms"),
    "max.message.bytes": _same("message.max.bytes"),
    "max.decompressed.message.bytes": _same("max.decompressed.message.bytes"),
    "preallocate": _same("log.preallocate"),
    "compression.type": _same("compression.type"),
    "compression.gzip.level": _same("compression.gzip.level"),
    "compression.lz4.level": _same("compression.lz4.level"),
    "compression.zstd.level": _same("compression.zstd.level"),
    "message.timestamp.type": _same("log.message.timestamp.type"),
    "message.timestamp.before.max.ms": _same("log.message.timestamp.before.max.ms"),
    "message.timestamp.after.max.ms": _same("log.message.timestamp.after.max.ms"),
    "local.retention.ms": _same("log.local.retention.ms"),
    "local.retention.bytes": _same("log.local.retention.bytes"),
    "producer.id.expiration.ms": _same("producer.id.expiration.ms"),
}


def topic_settings(broker: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Topic setting → (its value's text, the broker's name it came from), where one is set.

    InvalidConfigError for a time a broker would refuse; other limits are the topic setting's own.
    """
    found = {}
    for key, synonyms in SYNONYMS.items():
        for synonym in synonyms:
            if synonym.name in broker:
                found[key] = _text(key, synonym, broker[synonym.name]), synonym.name
                break
    return found


def _text(key: str, synonym: Synonym, text: str) -> str:
    if synonym.ms_per_unit == 0:
        return text
    kind = "long" if synonym.ms_per_unit == 1 else "int"
    value_ms = parse_config_value(synonym.name, text, kind, synonym.limits) * synonym.ms_per_unit
    if key == "retention.ms":
        if value_ms == 0:
            raise InvalidConfigError(f"{synonym.name}: 0 is neither -1 (unlimited) nor at least 1")
        value_ms = max(value_ms, -1)
    return str(value_ms)
