"""The state machine of the metadata log: records in, topics, settings and feature levels out.

 Topic, RemoveTopic       a topic with its id; removing it forgets its settings, so that one created
                          anew under the same name begins without
 Config                   a setting of a topic or broker; null removes it
 Partition, …Change       the replicas
 FeatureLevel             a level; 0 removes it
 Begin … End, Abort       what is between counts at End, and is forgotten at Abort or if neither
                          comes: a controller that takes over aborts it

A record that contradicts the ones before it (a topic removed that was never created) means that
something is missing in front of it: an error, not a guess. So is a newer version of a record that
the settings depend on; any other record that is not understood is counted.

Source: Kafka MetadataBatchLoader, TopicsDelta, ConfigurationsDelta, FeaturesDelta; KIP-868.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.log.cluster_settings import TopicSettings
from kafkalog.messages.cluster_metadata import (
    ABORT_TRANSACTION_RECORD,
    BEGIN_TRANSACTION_RECORD,
    BROKER_RESOURCE,
    CONFIG_RECORD,
    END_TRANSACTION_RECORD,
    FEATURE_LEVEL_RECORD,
    PARTITION_CHANGE_RECORD,
    PARTITION_RECORD,
    REMOVE_TOPIC_RECORD,
    TOPIC_RECORD,
    TOPIC_RESOURCE,
    MetadataRecord,
    RawRecord,
)

# Types whose unknown versions may hold settings we would miss.
_NEEDED = {
    message.api_key
    for message in (
        TOPIC_RECORD,
        REMOVE_TOPIC_RECORD,
        CONFIG_RECORD,
        FEATURE_LEVEL_RECORD,
        BEGIN_TRANSACTION_RECORD,
        END_TRANSACTION_RECORD,
        ABORT_TRANSACTION_RECORD,
    )
}


# PartitionChangeRecord: the leader is unchanged, and so is its epoch.
_SAME_LEADER = -2


class MetadataState:
    """Fed with the records of a snapshot, then with those of the log behind it, in order."""

    def __init__(self) -> None:
        self.unread: Counter[str] = Counter()
        self.feature_levels: dict[str, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._topic_names: dict[str, str] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._replicas: dict[str, dict[int, tuple[int, ...]]] = {}
        self._directories: dict[str, dict[int, tuple[str, ...]]] = {}
        self._leader_epochs: dict[str, dict[int, int]] = {}
        self._transaction: list[MetadataRecord] | None = None
        self._replay: Mapping[int, Callable[[dict[str, Any]], None]] = {
            TOPIC_RECORD.api_key: self._topic,
            REMOVE_TOPIC_RECORD.api_key: self._remove_topic,
            CONFIG_RECORD.api_key: self._config,
            PARTITION_RECORD.api_key: self._partition,
            PARTITION_CHANGE_RECORD.api_key: self._partition_change,
            FEATURE_LEVEL_RECORD.api_key: self._feature_level,
        }

    def append(self, record: MetadataRecord | RawRecord) -> None:
        """Apply a record, or hold it back in its transaction.

        Raises CorruptRecordError if it contradicts what was before, UnsupportedMessageVersionError
        if settings may be in it that cannot be read.
        """
        if isinstance(record, RawRecord):
            if record.api_key in _NEEDED:
                raise UnsupportedMessageVersionError(f"{record.name} is not known")
            self.unread[record.name] += 1
        elif record.message is BEGIN_TRANSACTION_RECORD:
            if self._transaction is not None:
                raise CorruptRecordError("a transaction begins within another")
            self._transaction = []
        elif record.message in (END_TRANSACTION_RECORD, ABORT_TRANSACTION_RECORD):
            self._close_transaction(record)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._apply(record)

    @property
    def has_open_transaction(self) -> bool:
        """Whether a transaction has begun whose end is not there."""
        return self._transaction is not None

    def topics(self) -> dict[str, TopicSettings]:
        """The topics that exist now, by name."""
        return {
            name: TopicSettings(
                topic_id,
                dict(self._configs.get((TOPIC_RESOURCE, name), {})),
                dict(self._replicas.get(topic_id, {})),
                dict(self._directories.get(topic_id, {})),
                dict(self._leader_epochs.get(topic_id, {})),
            )
            for name, topic_id in self._topic_ids.items()
        }

    def broker_configs(self) -> dict[str, dict[str, str]]:
        """Dynamic settings by node id as text, "" for the default of all brokers."""
        return {
            name: dict(config)
            for (kind, name), config in self._configs.items()
            if kind == BROKER_RESOURCE and config
        }

    def _close_transaction(self, record: MetadataRecord) -> None:
        held, self._transaction = self._transaction, None
        if held is None:
            raise CorruptRecordError(f"{record.message.name} without a transaction")
        if record.message is END_TRANSACTION_RECORD:
            for each in held:
                self._apply(each)

    def _apply(self, record: MetadataRecord) -> None:
        replay = self._replay.get(record.message.api_key)
        if replay is not None:
            replay(record.fields)

    def _topic(self, fields: dict[str, Any]) -> None:
        name, topic_id = fields["name"], fields["topicId"]
        if name in self._topic_ids or topic_id in self._topic_names:
            raise CorruptRecordError(f"topic {name} ({topic_id}) is created twice")
        self._topic_ids[name], self._topic_names[topic_id] = topic_id, name

    def _remove_topic(self, fields: dict[str, Any]) -> None:
        topic_id = fields["topicId"]
        name = self._topic_names.pop(topic_id, None)
        if name is None:
            raise CorruptRecordError(f"topic {topic_id} is removed and was never created")
        del self._topic_ids[name]
        self._configs.pop((TOPIC_RESOURCE, name), None)
        self._replicas.pop(topic_id, None)
        self._directories.pop(topic_id, None)
        self._leader_epochs.pop(topic_id, None)

    def _config(self, fields: dict[str, Any]) -> None:
        resource = fields["resourceType"], fields["resourceName"]
        config = self._configs.setdefault(resource, {})
        if fields["value"] is None:
            config.pop(fields["name"], None)
        else:
            config[fields["name"]] = fields["value"]

    def _partition(self, fields: dict[str, Any]) -> None:
        topic_id, number = fields["topicId"], fields["partitionId"]
        if topic_id not in self._topic_names:
            raise CorruptRecordError(f"topic {topic_id} was never created")
        self._replicas.setdefault(topic_id, {})[number] = tuple(fields["replicas"])
        self._directories.setdefault(topic_id, {})[number] = tuple(fields.get("directories") or ())
        self._leader_epochs.setdefault(topic_id, {})[number] = fields["leaderEpoch"]

    def _partition_change(self, fields: dict[str, Any]) -> None:
        topic_id, number = fields["topicId"], fields["partitionId"]
        if number not in self._replicas.get(topic_id, {}):
            name = self._topic_names.get(topic_id, f"topic {topic_id}")
            raise CorruptRecordError(f"{name}-{number} changes and was never created")
        if fields["leader"] != _SAME_LEADER:
            self._leader_epochs[topic_id][number] += 1
        if fields["replicas"] is not None:
            self._replicas.setdefault(topic_id, {})[number] = tuple(fields["replicas"])
        if fields.get("directories") is not None:
            directories = self._directories.setdefault(topic_id, {})
            directories[number] = tuple(fields["directories"])

    def _feature_level(self, fields: dict[str, Any]) -> None:
        if fields["featureLevel"] == 0:
            self.feature_levels.pop(fields["name"], None)
        else:
            self.feature_levels[fields["name"]] = fields["featureLevel"]
