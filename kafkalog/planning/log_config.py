"""Topic settings: Kafka's dotted keys, types, defaults and limits, and where each value came from.

A field of LogConfig is the table: its key is the field's name with dots
(`min_cleanable_dirty_ratio` is `min.cleanable.dirty.ratio`), its metadata the type, the limits and
the release that brought it. A value is parsed as Kafka's ConfigDef parses it, so what a broker
refuses is refused here. Values are those of the 4.x line: `segment.bytes` is at least 1 MiB
(KAFKA-19080), tests use `internal.segment.bytes`, which overrides it.

`producer.id.expiration.ms` is a broker setting; it decides which producers count as active, hence
is taken here as well.

Source: Kafka TopicConfig, LogConfig, ConfigDef; KIP-1030, KIP-1161.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Set
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import JsonFacts
from kafkalog.planning.config_values import Limits, parse_config_value
from kafkalog.planning.kafka_version import OLDEST_KAFKA_VERSION, parse_kafka_version
from kafkalog.planning.setting_units import plain_value

MAX_LONG = 2**63 - 1
MAX_ARRAY_LENGTH = 2**31 - 9  # Kafka Records.SOFT_MAX_ARRAY_LENGTH
_MIB = 1024 * 1024


def _setting(
    kind: str, default: Any, *, since: tuple[int, int] = OLDEST_KAFKA_VERSION, **limits: Any
) -> Any:
    metadata = {"kind": kind, "limits": Limits(**limits), "since": since}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class LogConfig(JsonFacts):
    """The settings of one topic. Sizes in bytes, times in ms.

    `segment_bytes` is the limit in force: `internal.segment.bytes` if that is set. `sources` maps a
    dotted key to where its value came from, `option` or whatever name the caller gave; a key not in
    it has Kafka's default.
    """

    OPTION: ClassVar[str] = "option"
    DEFAULT: ClassVar[str] = "default"

    cleanup_policy: tuple[str, ...] = _setting("list", ("delete",), allowed=("compact", "delete"))
    segment_bytes: int = _setting("int", 1_073_741_824, at_least=_MIB)
    internal_segment_bytes: int | None = _setting("int", None, at_least=1)
    segment_ms: int = _setting("long", 604_800_000, at_least=1)
    segment_jitter_ms: int = _setting("long", 0, at_least=0)
    segment_index_bytes: int = _setting("int", 10_485_760, at_least=4)
    index_interval_bytes: int = _setting("int", 4096, at_least=0)
    retention_bytes: int = _setting("long", -1)
    retention_ms: int = _setting("long", 604_800_000, at_least=-1)
    delete_retention_ms: int = _setting("long", 86_400_000, at_least=0)
    min_compaction_lag_ms: int = _setting("long", 0, at_least=0)
    max_compaction_lag_ms: int = _setting("long", MAX_LONG, at_least=1)
    min_cleanable_dirty_ratio: float = _setting("double", 0.5, at_least=0, at_most=1)
    file_delete_delay_ms: int = _setting("long", 60_000, at_least=0)
    max_message_bytes: int = _setting("int", 1_048_588, at_least=0)
    max_decompressed_message_bytes: int = _setting(
        "int", MAX_ARRAY_LENGTH, at_least=1, at_most=MAX_ARRAY_LENGTH, since=(4, 4)
    )
    preallocate: bool = _setting("boolean", False)
    compression_type: str = _setting(
        "string", "producer", allowed=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    )
    compression_gzip_level: int = _setting("int", -1, at_least=1, at_most=9, also=-1)
    compression_lz4_level: int = _setting("int", 9, at_least=1, at_most=17)
    compression_zstd_level: int = _setting("int", 3, at_least=-131_072, at_most=22)
    message_timestamp_type: str = _setting(
        "string", "CreateTime", allowed=("CreateTime", "LogAppendTime")
    )
    message_timestamp_before_max_ms: int = _setting("long", MAX_LONG, at_least=0)
    message_timestamp_after_max_ms: int = _setting("long", 3_600_000, at_least=0)
    local_retention_ms: int = _setting("long", -2, at_least=-2)
    local_retention_bytes: int = _setting("long", -2, at_least=-2)
    remote_storage_enable: bool = _setting("boolean", False)
    remote_log_copy_disable: bool = _setting("boolean", False)
    remote_log_delete_on_disable: bool = _setting("boolean", False)
    producer_id_expiration_ms: int = _setting("int", 86_400_000, at_least=1)
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_overrides(
        cls, overrides: Iterable[str], *, source: str = OPTION, is_partial: bool = False
    ) -> Self:
        """Settings from `key=value` texts, as `--config` takes them, 7d and 1GiB too; the last of a
        repeated key wins. `is_partial`: other sources are still to come, so combinations are not
        checked yet.

        InvalidConfigError names the key: unknown (with what was probably meant), not parseable, or
        outside Kafka's limits.
        """
        properties: dict[str, str] = {}
        for override in overrides:
            key, equals, value = override.partition("=")
            if not equals or not key.strip():
                raise InvalidConfigError(f"expected KEY=VALUE, found {override!r}")
            properties[key.strip()] = plain_value(key.strip(), value)
        return cls.from_properties(properties, source=source, is_partial=is_partial)

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        *,
        source: str | Mapping[str, str] = OPTION,
        is_partial: bool = False,
    ) -> Self:
        """Settings from dotted keys; the same errors as `from_overrides`. `source` is where all
        values came from, or where each did.
        """
        known = _settings()
        values: dict[str, Any] = {}
        for key, text in properties.items():
            if key not in known:
                raise InvalidConfigError(f"unknown setting {key}{_near_matches(key, known)}")
            metadata = known[key].metadata
            values[known[key].name] = parse_config_value(
                key, text, metadata["kind"], metadata["limits"]
            )
        if "internal_segment_bytes" in values:
            values["segment_bytes"] = values["internal_segment_bytes"]
        sources = dict.fromkeys(properties, source) if isinstance(source, str) else dict(source)
        config = cls(**values, sources=sources)
        if not is_partial:
            config._check_combinations()
        return config

    @property
    def is_compacted(self) -> bool:
        """Whether `cleanup.policy` has `compact`."""
        return "compact" in self.cleanup_policy

    def source(self, key: str) -> str:
        """Where the value of a dotted key came from."""
        if key == "segment.bytes" and "internal.segment.bytes" in self.sources:
            return f"{self.sources['internal.segment.bytes']} internal.segment.bytes"
        return self.sources.get(key, self.DEFAULT)

    @classmethod
    def keys(cls, kafka_version: str) -> frozenset[str]:
        """The dotted keys of the settings that a release has."""
        release = parse_kafka_version(kafka_version)
        return frozenset(
            key for key, item in _settings().items() if item.metadata["since"] <= release
        )

    def value(self, key: str) -> Any:
        """The value in force of a dotted key."""
        attribute = "segment_bytes" if key == "internal.segment.bytes" else key.replace(".", "_")
        return getattr(self, attribute)

    def given(self) -> dict[str, str]:
        """The settings that have a source, under their dotted keys; without a `segment.bytes` that
        `internal.segment.bytes` overrides.
        """
        overridden = {"segment.bytes"} if "internal.segment.bytes" in self.sources else set()
        return self._properties(self.sources.keys() - overridden)

    def to_properties(self) -> dict[str, str]:
        """Every setting that has a value under its dotted key, as Kafka writes it."""
        return self._properties(_settings().keys())

    def _properties(self, wanted: Set[str]) -> dict[str, str]:
        named = {k: getattr(self, item.name) for k, item in _settings().items() if k in wanted}
        return {key: _text(value) for key, value in named.items() if value is not None}

    def _check_combinations(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfigError(
                f"min.compaction.lag.ms {self.min_compaction_lag_ms} is greater than "
                f"max.compaction.lag.ms {self.max_compaction_lag_ms}"
            )
        if self.remote_storage_enable and self.is_compacted:
            raise InvalidConfigError("remote.storage.enable=true excludes cleanup.policy compact")
        for key, local, total in (
            ("retention.ms", self.local_retention_ms, self.retention_ms),
            ("retention.bytes", self.local_retention_bytes, self.retention_bytes),
        ):
            # -2 means "as the total"; a negative total is unlimited, which a negative local may be
            # as well
            if local != -2 and total >= 0 and not 0 <= local <= total:
                raise InvalidConfigError(f"local.{key} {local} is greater than {key} {total}")


@cache
def _settings() -> dict[str, Field[Any]]:
    """The fields of LogConfig that are settings, by their dotted keys."""
    return {config_key(item.name): item for item in fields(LogConfig) if item.metadata}


def config_key(attribute: str) -> str:
    """`min_compaction_lag_ms` → `min.compaction.lag.ms`."""
    return attribute.replace("_", ".")


def _near_matches(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, list(known), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
