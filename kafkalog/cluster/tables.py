"""The tables of one cluster, fed with the records of its metadata log: what `MetadataState` says
happened becomes rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkalog.cluster.moments import Moment, Row
from kafkalog.cluster.nodes import Brokers, Controllers
from kafkalog.cluster.partitions import Topics
from kafkalog.cluster.rights import Acls, DelegationTokens, ScramCredentials
from kafkalog.cluster.settings import ClientQuotas, Configs, Features
from kafkalog.format.control_record import ControlRecordType
from kafkalog.log.metadata_records import MetadataLogRecord
from kafkalog.log.metadata_state import Events, MetadataState
from kafkalog.messages.cluster_metadata import MetadataRecord

KRAFT_VERSION = "kraft.version"

Fields = dict[str, Any]


class ClusterTables:
    """Each table by its name; `state` is what holds now."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.controllers = Controllers()
        self.topics = Topics()
        self.configs = Configs()
        self.features = Features()
        self.client_quotas = ClientQuotas()
        self.acls = Acls()
        self.scram = ScramCredentials()
        self.tokens = DelegationTokens()
        self.state: MetadataState[Moment] = MetadataState(self._note, self._note_control)
        self._rows_of = self._table()

    def append(self, record: MetadataLogRecord, moment: Moment) -> None:
        """A record, which happened at that moment. KafkaLogError as of `MetadataState.append`."""
        self.state.append(record, moment)

    @property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each table, in the order of their offsets."""
        return {
            "brokers": self.brokers.rows,
            "controllers": self.controllers.rows,
            "partition_changes": self.topics.changes,
            "topics": self.topics.spans.rows,
            "configs": self.configs.spans.rows,
            "features": self.features.spans.rows,
            "client_quotas": self.client_quotas.spans.rows,
            "acls": self.acls.spans.rows,
            "scram": self.scram.spans.rows,
            "tokens": self.tokens.spans.rows,
        }

    def _note_control(self, kind: ControlRecordType, fields: Fields, moment: Moment) -> None:
        if kind is ControlRecordType.LEADER_CHANGE:
            self.controllers.elected(fields, moment)
        elif kind is ControlRecordType.KRAFT_VOTERS:
            self.controllers.voters(fields, moment)
        elif kind is ControlRecordType.KRAFT_VERSION:
            self.features.hold(KRAFT_VERSION, fields["kRaftVersion"], moment)

    def _note(self, record: MetadataRecord, events: Events, moment: Moment) -> None:
        tell = self._rows_of.get(record.message.name)
        if tell is not None:
            tell(record.fields, moment)
        elif record.message.name == "RemoveTopicRecord":
            name = self.topics.remove(record.fields, events, moment)
            self.configs.forget_topic(name, moment)
        else:
            self.topics.note(events, moment)

    def _table(self) -> dict[str, Callable[[Fields, Moment], None]]:
        brokers = self.brokers
        return {
            "RegisterBrokerRecord": brokers.register,
            "BrokerRegistrationChangeRecord": brokers.change,
            "FenceBrokerRecord": lambda f, m: brokers.fence(f["id"], m, is_fenced=True),
            "UnfenceBrokerRecord": lambda f, m: brokers.fence(f["id"], m, is_fenced=False),
            "UnregisterBrokerRecord": brokers.unregister,
            "RegisterControllerRecord": self.controllers.registered,
            "UnregisterControllerRecord": self.controllers.unregistered,
            "TopicRecord": self.topics.create,
            "ConfigRecord": self.configs.set,
            "FeatureLevelRecord": self.features.set,
            "ClientQuotaRecord": self.client_quotas.set,
            "AccessControlEntryRecord": self.acls.add,
            "RemoveAccessControlEntryRecord": self.acls.remove,
            "UserScramCredentialRecord": self.scram.set,
            "RemoveUserScramCredentialRecord": self.scram.remove,
            "DelegationTokenRecord": self.tokens.set,
            "RemoveDelegationTokenRecord": self.tokens.remove,
        }
