"""The state machine of the metadata log: THE interpreter of its records, for the settings of a
cluster, for its history and for what a start makes of it.

 Topic, RemoveTopic       a topic with its id; removing it forgets its settings, so that one created
                          anew under the same name begins without
 Partition, …Change       replicas, leaders, log dirs (`metadata_topics`)
 Config                   a setting of a topic or broker; null removes it
 RegisterBroker, …        who is registered: only of those anything can change
 FeatureLevel             a level; 0 removes it
 Begin … End, Abort       what is between counts at End, and is forgotten at Abort or if neither
                          comes: a controller that takes over aborts it
 control records          elections and voters of the quorum

A record that contradicts the ones before it (a topic removed that was never created) means that
something is missing in front of it: an error, not a guess. What is not understood is counted; who
cannot go on without such a type names it as needed. Who wants more than the state at the end gets
each record when it counts.

Source: Kafka MetadataBatchLoader, TopicsDelta, ConfigurationsDelta, FeaturesDelta,
ClusterControlManager; KIP-868.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from kafkalog.errors import CorruptRecordError, UnsupportedMessageVersionError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.cluster_settings import KNOWN_FEATURES, TopicSettings
from kafkalog.log.metadata_topics import MetadataTopics, PartitionEvent
from kafkalog.messages.cluster_metadata import (
    ABORT_TRANSACTION_RECORD,
    BEGIN_TRANSACTION_RECORD,
    BROKER_RESOURCE,
    CONFIG_RECORD,
    END_TRANSACTION_RECORD,
    FEATURE_LEVEL_RECORD,
    NO_OP_RECORD,
    REMOVE_TOPIC_RECORD,
    TOPIC_RECORD,
    TOPIC_RESOURCE,
    MetadataRecord,
    RawRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kafkalog.messages.kraft_control import decode_kraft_control

Context = TypeVar("Context")
Fields = dict[str, Any]
Events = Sequence[PartitionEvent]
Note = Callable[[MetadataRecord, Events, Context], None]
NoteControl = Callable[[ControlRecordType, Fields, Context], None]


class AppendedRecord(Protocol):
    """What a record has to say of itself; `control_type` is None for data."""

    @property
    def control_type(self) -> ControlRecordType | None: ...
    @property
    def value(self) -> bytes | None: ...


# API keys of the records that settings of topics and brokers, and levels of features, come from:
# one of an unknown version may be a setting that would be missed.
SETTINGS_RECORDS = frozenset(
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
)
UNKNOWN_CONTROL = "control record of an unknown type"
# A controller that has nothing to say writes this twice a second: of most logs it is nearly all.
_NO_OP = encode_metadata_record(NO_OP_RECORD, 0, {})
# Control records that say something; the others frame a snapshot.
_NOTED = (
    ControlRecordType.LEADER_CHANGE,
    ControlRecordType.KRAFT_VOTERS,
    ControlRecordType.KRAFT_VERSION,
)


class MetadataState(Generic[Context]):
    """Fed with the records of a snapshot, then with those of the log behind it, in order.

    note, note_control: called for each record when it counts, with what became of partitions, and
    with the context it was appended with. needed: types whose unknown versions are an error.
    """

    def __init__(
        self,
        note: Note[Context] | None = None,
        note_control: NoteControl[Context] | None = None,
        needed: Collection[int] = (),
    ) -> None:
        self._undecoded: Counter[str] = Counter()
        self.feature_levels: dict[str, int] = {}
        self.topics = MetadataTopics()
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._brokers: set[int] = set()
        self._held: list[tuple[MetadataRecord, Context]] | None = None
        self._note, self._note_control, self._needed = note, note_control, needed
        self._replay: Mapping[str, Callable[[Fields], Events | None]] = {
            "TopicRecord": self.topics.create,
            "RemoveTopicRecord": self._remove_topic,
            "PartitionRecord": lambda f: [self.topics.create_partition(f)],
            "PartitionChangeRecord": lambda f: [self.topics.change_partition(f)],
            "ClearElrRecord": self.topics.clear_eligible_leaders,
            "ConfigRecord": self._config,
            "FeatureLevelRecord": self._feature_level,
            "RegisterBrokerRecord": lambda f: self._brokers.add(f["brokerId"]),
            "BrokerRegistrationChangeRecord": lambda f: self._check_broker(f["brokerId"]),
            "FenceBrokerRecord": lambda f: self._check_broker(f["id"]),
            "UnfenceBrokerRecord": lambda f: self._check_broker(f["id"]),
            "UnregisterBrokerRecord": self._unregister,
        }

    def append(self, record: AppendedRecord, context: Context) -> None:
        """Apply a record, or hold it back in its transaction.

        CorruptRecordError if it cannot be decoded or contradicts what was before,
        UnsupportedMessageVersionError if it is of a needed type and not known.
        """
        kind = record.control_type
        if kind is None:
            if record.value != _NO_OP:
                self._data(decode_metadata_record(record.value), context)
        elif kind is ControlRecordType.UNKNOWN:
            self._undecoded[UNKNOWN_CONTROL] += 1
        elif kind in _NOTED:
            fields = decode_kraft_control(kind, record.value or b"")
            if self._note_control is not None:
                self._note_control(kind, fields, context)

    def unread(self) -> dict[str, int]:
        """What is not known: records that stayed bytes, by type and version, and features in force
        that no release has which is known here. A node ends itself at either.
        """
        unknown = self.feature_levels.keys() - KNOWN_FEATURES
        features = {f"FeatureLevelRecord {n} level {self.feature_levels[n]}": 1 for n in unknown}
        return dict(self._undecoded) | features

    @property
    def has_open_transaction(self) -> bool:
        """Whether a transaction has begun whose end is not there."""
        return self._held is not None

    def topic_settings(self) -> dict[str, TopicSettings]:
        """The topics that exist now, by name."""
        return {
            name: self._settings(topic_id, name) for topic_id, name in self.topics.names.items()
        }

    def broker_configs(self) -> dict[str, dict[str, str]]:
        """Dynamic settings by node id as text, "" for the default of all brokers."""
        return {
            name: dict(config)
            for (kind, name), config in self._configs.items()
            if kind == BROKER_RESOURCE and config
        }

    def _settings(self, topic_id: str, name: str) -> TopicSettings:
        partitions = self.topics.partitions[topic_id].items()
        return TopicSettings(
            topic_id,
            dict(self._configs.get((TOPIC_RESOURCE, name), {})),
            {number: tuple(state["replicas"]) for number, state in partitions},
            {number: tuple(state["directories"]) for number, state in partitions},
            {number: state["leaderEpoch"] for number, state in partitions},
        )

    def _data(self, record: MetadataRecord | RawRecord, context: Context) -> None:
        # Of a release that is not known here: passed over and counted, unless whoever asks cannot
        # do without records of its type.
        if isinstance(record, RawRecord):
            if record.api_key in self._needed:
                raise UnsupportedMessageVersionError(f"{record.name} is not known")
            self._undecoded[record.name] += 1
        # Records of a transaction are held back: a controller that takes over in its middle aborts
        # it, and then none of them has ever counted.
        elif record.message is BEGIN_TRANSACTION_RECORD:
            if self._held is not None:
                raise CorruptRecordError("a transaction begins within another")
            self._held = []
        elif record.message in (END_TRANSACTION_RECORD, ABORT_TRANSACTION_RECORD):
            held, self._held = self._held, None
            if held is None:
                raise CorruptRecordError(f"{record.message.name} without a transaction")
            if record.message is END_TRANSACTION_RECORD:
                for each, of_each in held:
                    self._apply(each, of_each)
        elif self._held is not None:
            self._held.append((record, context))
        else:
            self._apply(record, context)

    def _apply(self, record: MetadataRecord, context: Context) -> None:
        replay = self._replay.get(record.message.name)
        events = None if replay is None else replay(record.fields)
        if self._note is not None:
            self._note(record, events or (), context)

    def _remove_topic(self, fields: Fields) -> Events:
        name = self.topics.names.get(fields["topicId"], "")
        # With its settings: a topic that is created anew under the same name begins without any.
        events = self.topics.remove(fields)
        self._configs.pop((TOPIC_RESOURCE, name), None)
        return events

    def _config(self, fields: Fields) -> None:
        resource = fields["resourceType"], fields["resourceName"]
        config = self._configs.setdefault(resource, {})
        if fields["value"] is None:
            config.pop(fields["name"], None)
        else:
            config[fields["name"]] = fields["value"]

    def _feature_level(self, fields: Fields) -> None:
        if fields["featureLevel"] == 0:
            self.feature_levels.pop(fields["name"], None)
        else:
            self.feature_levels[fields["name"]] = fields["featureLevel"]

    def _check_broker(self, node: int) -> None:
        if node not in self._brokers:
            raise CorruptRecordError(f"broker {node} changes and never registered")

    def _unregister(self, fields: Fields) -> None:
        self._check_broker(fields["brokerId"])
        self._brokers.discard(fields["brokerId"])
