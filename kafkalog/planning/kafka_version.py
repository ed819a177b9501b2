"""Which Kafka release's rules are followed. They differ in few places; see each use."""

from __future__ import annotations

from kafkalog.errors import InvalidConfigError

OLDEST_KAFKA_VERSION = (4, 1)
NEWEST_KAFKA_VERSION = (4, 4)


def parse_kafka_version(kafka_version: str) -> tuple[int, int]:
    """`4.3` or `4.3.1` → (4, 3).

    InvalidConfigError outside 4.1 to 4.4, the releases whose cleaner is known.
    """
    parts = kafka_version.split(".")
    if 2 <= len(parts) <= 3 and all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):
        version = int(parts[0]), int(parts[1])
        if OLDEST_KAFKA_VERSION <= version <= NEWEST_KAFKA_VERSION:
            return version
    raise InvalidConfigError(f"Kafka version {kafka_version!r} is not one of 4.1 to 4.4")
