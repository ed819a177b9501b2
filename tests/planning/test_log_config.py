"""Kafka's topic settings."""

from __future__ import annotations

import json

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.planning.log_config import MAX_LONG, LogConfig

# Written from the spec's table, not from the code's.
DEFAULTS = {
    "cleanup.policy": "delete",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "segment.jitter.ms": "0",
    "segment.index.bytes": "10485760",
    "index.interval.bytes": "4096",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "delete.retention.ms": "86400000",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "9223372036854775807",
    "min.cleanable.dirty.ratio": "0.5",
    "file.delete.delay.ms": "60000",
    "max.message.bytes": "1048588",
    "max.decompressed.message.bytes": "2147483639",
    "preallocate": "false",
    "compression.type": "producer",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.zstd.level": "3",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "3600000",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "remote.storage.enable": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "producer.id.expiration.ms": "86400000",
}


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.to_properties() == DEFAULTS
    assert {config.source(key) for key in DEFAULTS} == {"default"}


def test_every_default_is_a_value_kafka_takes() -> None:
    config = LogConfig.from_properties(DEFAULTS)
    assert config.to_properties() == DEFAULTS
    assert {config.source(key) for key in DEFAULTS} == {"option"}


def test_values_are_typed_and_trimmed() -> None:
    config = LogConfig.from_overrides(
        [
            "cleanup.policy= compact , delete ",
            "min.cleanable.dirty.ratio=0.01",
            "preallocate=TRUE",
            "retention.ms= -1 ",
        ]
    )
    assert config.cleanup_policy == ("compact", "delete")
    assert config.is_compacted
    assert config.min_cleanable_dirty_ratio == 0.01
    assert config.preallocate is True
    assert config.retention_ms == -1


def test_the_last_of_a_repeated_override_wins() -> None:
    assert LogConfig.from_overrides(["segment.ms=1", "segment.ms=2"]).segment_ms == 2


@pytest.mark.parametrize("order", [1, -1])
def test_internal_segment_bytes_overrides_segment_bytes_in_any_order(order: int) -> None:
    overrides = ["internal.segment.bytes=4096", "segment.bytes=2097152"][::order]
    config = LogConfig.from_overrides(overrides)
    assert config.segment_bytes == 4096
    assert config.source("segment.bytes") == "option internal.segment.bytes"


@pytest.mark.parametrize(
    ("key", "legal", "illegal"),
    [
        ("cleanup.policy", ["", "compact", "delete", "delete,compact"], ["Compact", "a", ","]),
        ("cleanup.policy", [], ["compact,compact", "compact,"]),
        ("segment.bytes", ["1048576", "2147483647"], ["1048575", "2147483648", "1.0", ""]),
        ("internal.segment.bytes", ["1"], ["0"]),
        ("segment.ms", ["1", str(MAX_LONG)], ["0", str(MAX_LONG + 1)]),
        ("segment.jitter.ms", ["0"], ["-1"]),
        ("segment.index.bytes", ["4"], ["3"]),
        ("index.interval.bytes", ["0"], ["-1"]),
        ("retention.bytes", ["-5", "0"], ["x"]),
        ("retention.ms", ["-1", "0"], ["-2"]),
        ("delete.retention.ms", ["0"], ["-1"]),
        ("min.compaction.lag.ms", ["0"], ["-1"]),
        ("max.compaction.lag.ms", ["1"], ["0"]),
        ("min.cleanable.dirty.ratio", ["0", "1", "1.0"], ["-0.1", "1.2", "nan", "half"]),
        ("file.delete.delay.ms", ["0"], ["-1"]),
        ("max.message.bytes", ["0"], ["-1"]),
        ("max.decompressed.message.bytes", ["1", "2147483639"], ["0", "2147483640"]),
        ("preallocate", ["true", "false"], ["yes", "1"]),
        ("compression.type", ["uncompressed", "zstd", "producer"], ["none", "ZSTD"]),
        ("compression.gzip.level", ["-1", "1", "9"], ["-2", "0", "10"]),
        ("compression.lz4.level", ["1", "17"], ["0", "18"]),
        ("compression.zstd.level", ["-131072", "22"], ["-131073", "23"]),
        ("message.timestamp.type", ["LogAppendTime"], ["logappendtime"]),
        ("local.retention.ms", ["-2"], ["-3", "-1"]),
        ("local.retention.bytes", ["-2", "-1"], ["-3"]),
        ("producer.id.expiration.ms", ["1"], ["0"]),
    ],
)
def test_limits_are_kafkas(key: str, legal: list[str], illegal: list[str]) -> None:  # item 151
    for text in legal:
        LogConfig.from_overrides([f"{key}={text}"])
    for text in illegal:
        with pytest.raises(InvalidConfigError, match=key.replace(".", r"\.")):
            LogConfig.from_overrides([f"{key}={text}"])


def test_min_lag_above_max_lag_is_refused_and_equal_is_not() -> None:  # item 151
    LogConfig.from_overrides(["min.compaction.lag.ms=5", "max.compaction.lag.ms=5"])
    with pytest.raises(InvalidConfigError, match="greater than"):
        LogConfig.from_overrides(["min.compaction.lag.ms=6", "max.compaction.lag.ms=5"])


def test_local_limits_may_not_pass_the_total() -> None:  # item 152
    LogConfig.from_overrides(["retention.ms=10", "local.retention.ms=10"])
    LogConfig.from_overrides(["retention.ms=-1", "local.retention.ms=-1"])
    for local in ("11", "-1"):
        with pytest.raises(InvalidConfigError, match=r"local\.retention\.ms"):
            LogConfig.from_overrides(["retention.ms=10", f"local.retention.ms={local}"])


def test_remote_storage_excludes_compact() -> None:  # item 153
    with pytest.raises(InvalidConfigError, match="remote"):
        LogConfig.from_overrides(["cleanup.policy=compact", "remote.storage.enable=true"])


def test_an_unknown_key_names_what_was_probably_meant() -> None:
    with pytest.raises(InvalidConfigError, match=r"did you mean .*min\.cleanable\.dirty\.ratio"):
        LogConfig.from_overrides(["min.cleanable.ratio=0.5"])
    with pytest.raises(InvalidConfigError, match=r"unknown setting zzz$"):
        LogConfig.from_overrides(["zzz=1"])


def test_an_override_without_an_equals_sign_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="KEY=VALUE"):
        LogConfig.from_overrides(["cleanup.policy"])


def test_a_config_survives_json() -> None:
    config = LogConfig.from_overrides(["cleanup.policy=compact", "internal.segment.bytes=99"])
    assert LogConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
