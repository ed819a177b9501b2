"""Which Kafka release's rules are followed. They differ in few places; see each use."""

from __future__ import annotations

from functools import cache

from kafkalog.errors import InvalidConfigError

OLDEST_KAFKA_VERSION = (4, 1)
NEWEST_KAFKA_VERSION = (4, 4)
DEFAULT_KAFKA_VERSION = "4.3"

# The first feature level of `metadata.version` of each release. Source: Kafka MetadataVersion
# (IBP_4_1_IV0 …).
FIRST_METADATA_VERSIONS = {(4, 1): 26, (4, 2): 28, (4, 3): 30, (4, 4): 31}


@cache
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


def kafka_version_of(metadata_version: int | None) -> str:
    """The release whose rules hold where none is asked for.

    That is the release that brought the feature level `metadata.version`, at least 4.1 and at most
    4.4: a cluster below 4.1's levels may be run by any later broker, one above is newer than what
    is known here. Without a level it is 4.3.
    """
    if metadata_version is None:
        return DEFAULT_KAFKA_VERSION
    release = OLDEST_KAFKA_VERSION
    for candidate, first_level in FIRST_METADATA_VERSIONS.items():
        if metadata_version >= first_level:
            release = candidate
    major, minor = min(release, NEWEST_KAFKA_VERSION)
    return f"{major}.{minor}"
