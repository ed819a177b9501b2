"""The levels of the cluster's features against the brokers that registered, and metadata.version
against what the metadata holds.

A level is raised only when all registered brokers can go by it, and none registers that cannot:
where one's own range says otherwise, its release does not start. At each start a node writes all it
has read anew, in records of the cluster's level; it ends itself where they have no place for
something. A controller never writes such metadata by itself: a level that was lowered by force or
by hand leaves it.

Source: Kafka QuorumFeatures, MetadataLoader.initializeNewPublishers, ImageWriterOptions.handleLoss
(BrokerRegistration, PartitionRegistration, ClusterImage, ScramImage, DelegationTokenImage).
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalog.checking.finding import FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.cluster.tables import ClusterTables
from kafkalog.format.uuid_text import is_reserved_directory_id
from kafkalog.log.cluster_settings import METADATA_VERSION
from kafkalog.planning.kafka_version import FIRST_METADATA_VERSIONS, NEWEST_KAFKA_VERSION

# The first level of the newest release that is known here.
_NEWEST_LEVEL = max(FIRST_METADATA_VERSIONS.values())
_KIND = "feature-level-unsupported"


def check_levels(tables: ClusterTables, levels: dict[str, int], found: FindingList) -> None:
    """Note what does not fit the levels in force, by feature."""
    level = levels.get(METADATA_VERSION, 0)
    newest = ".".join(map(str, NEWEST_KAFKA_VERSION))
    newer = f"Kafka {newest}, the newest release known here, has level {_NEWEST_LEVEL}"
    refused = False
    for node, ranges in sorted(tables.brokers.supported.items()):
        for name, (lowest, highest) in sorted(ranges.items()):
            if 0 < levels.get(name, 0) and not lowest <= levels[name] <= highest:
                refused |= name == METADATA_VERSION
                found.add(
                    _KIND,
                    f"{name} is at level {levels[name]}, broker {node} registered for {lowest} to "
                    f"{highest}" + (f"; {newer}" if name == METADATA_VERSION else ""),
                    severity=Severity.ERROR,
                )
    if level > _NEWEST_LEVEL and not refused:
        found.add(_KIND, f"{METADATA_VERSION} is at level {level}; {newer}")
    missing = [
        f"{what} (level {first})" for first, what, is_there in _SINCE
        if 0 < level < first and is_there(tables)
    ]  # fmt: skip
    if missing:
        found.add(
            _KIND,
            f"{METADATA_VERSION} is at level {level}, which cannot say what the metadata holds: "
            f"{', '.join(missing)}",
            severity=Severity.ERROR,
        )


def _has_scram(tables: ClusterTables) -> bool:
    return any(row["endOffset"] is None for row in tables.scram.spans.rows)


def _has_tokens(tables: ClusterTables) -> bool:
    return any(row["endOffset"] is None for row in tables.tokens.spans.rows)


def _has_controllers(tables: ClusterTables) -> bool:
    return bool(tables.controllers.registrations)


def _has_log_dirs(tables: ClusterTables) -> bool:
    return any(row["logDirs"] for row in tables.brokers.alive().values())


def _has_assignments(tables: ClusterTables) -> bool:
    return any(
        not is_reserved_directory_id(directory)
        for row in tables.state.topics.states()
        for directory in row["directories"]
    )


def _has_cordons(tables: ClusterTables) -> bool:
    """An empty list as well: null is what older brokers register."""
    return any(cordoned is not None for cordoned in tables.brokers.cordoned.values())


_SINCE: tuple[tuple[int, str, Callable[[ClusterTables], bool]], ...] = (
    (11, "SCRAM credentials", _has_scram),
    (14, "delegation tokens", _has_tokens),
    (15, "registrations of controllers", _has_controllers),
    (17, "log dirs of brokers", _has_log_dirs),
    (17, "log dirs of replicas", _has_assignments),
    (30, "cordoned log dirs", _has_cordons),
)
