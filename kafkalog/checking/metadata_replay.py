"""The cluster's metadata log replayed as a start does, by the interpreter of `cluster`.

A controller ends itself at the first record that it cannot replay, whatever its batch's checksum
says, and does so at each start. So it does at types, versions and features that it does not know:
where the cluster's metadata.version is one that is known here, no release writes them; above it
they may be a newer release's.

Source: Kafka MetadataLoader, MetadataRecordSerde, QuorumController, QuorumFeatures; seen with 4.3.1
(tests/oracle).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkalog.checking.finding import Finding, FindingList
from kafkalog.checking.finding_kind import Severity
from kafkalog.checking.metadata_levels import check_levels
from kafkalog.cluster.history import ClusterHistory
from kafkalog.errors import InvalidConfigError
from kafkalog.log.cluster_settings import METADATA_VERSION, ClusterSettings
from kafkalog.planning.kafka_version import FIRST_METADATA_VERSIONS
from kafkalog.planning.log_config import LogConfig

# The last level of metadata.version all of whose records have their tables here.
_LAST_LEVEL = FIRST_METADATA_VERSIONS[4, 4] - 1


def check_replay(directory: str) -> Iterator[Finding]:
    """The records behind the newest whole snapshot of a metadata partition."""
    found = FindingList(directory)
    history = ClusterHistory(Path(directory), as_started=True)
    for error in history.refused:
        found.add(
            "metadata-record",
            error.reason,
            path=error.path,
            position=error.position,
            offset=error.offset,
        )
    levels = history.tables.features.levels()
    is_known = 0 < levels.get(METADATA_VERSION, 0) <= _LAST_LEVEL
    severity = Severity.ERROR if is_known else None
    for name, count in sorted(history.unread.items()):
        found.add("metadata-record-unknown", f"{count} of {name}", severity=severity)
    check_levels(history.tables, levels, found)
    yield from found.findings()


def check_topic_settings(cluster: ClusterSettings) -> Iterator[Finding]:
    """Settings of topics that a start cannot parse."""
    found = FindingList(cluster.path)
    for name, topic in sorted(cluster.topics.items()):
        for key, value in topic.config.items():
            try:
                LogConfig.from_properties({key: value}, is_partial=True)
            except InvalidConfigError as error:
                # What is outside of newer limits may have been right when it was set.
                if "expected" in error.reason:
                    found.add("topic-setting-invalid", f"topic {name}: {error.reason}")
    yield from found.findings()
