"""The text of `--config-file`: topic settings as TOML, one table per topic.

    ["orders"]
    cleanup.policy = "compact"
    min.compaction.lag.ms = 60000

    ["*"]                           # every topic without a table of its own, key by key
    delete.retention.ms = 3600000

Keys are Kafka's, quoted or not; values are strings, numbers, booleans or lists of strings. A topic
with a dot in its name needs its quotes, as `"*"` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.planning.log_config import LogConfig


def parse_config_file(data: bytes, path: str | None = None) -> dict[str, dict[str, str]]:
    """Topic → its settings as text.

    InvalidConfigError names the topic and the key: not TOML, not a table, unknown to Kafka, not
    parseable or outside Kafka's limits.
    """
    topics = parse_declared_settings(data, path)
    for topic, settings in topics.items():
        try:
            LogConfig.from_properties(settings, is_partial=True)
        except InvalidConfigError as error:
            raise InvalidConfigError(f"topic {topic}: {error.reason}", path=path) from None
    return topics


def parse_declared_settings(data: bytes, path: str | None = None) -> dict[str, dict[str, str]]:
    """The same for any setting of a topic, whether this package knows what it does or not."""
    # With its patterns, for who has such a file.
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidConfigError(f"not TOML: {error}", path=path) from None
    topics = {}
    for topic, table in document.items():
        if not isinstance(table, dict):
            raise InvalidConfigError(f"{topic} is not a table of a topic", path=path)
        try:
            topics[topic] = dict(_settings("", table))
        except InvalidConfigError as error:
            raise InvalidConfigError(f"topic {topic}: {error.reason}", path=path) from None
    return topics


def _settings(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """TOML reads an unquoted dotted key as tables in tables: put together again."""
    for name, value in table.items():
        key = prefix + name
        if isinstance(value, dict):
            yield from _settings(f"{key}.", value)
        elif isinstance(value, list):
            yield key, ",".join(map(str, value))
        elif isinstance(value, bool):
            yield key, str(value).lower()
        else:
            yield key, str(value)
