"""Records of the metadata log that tell nodes: brokers and controllers, who comes, goes, is fenced.

A broker registers fenced, with the log's end at that time as its epoch, is unfenced once it has
caught up, and fenced again when its heartbeats stop. FenceBroker and UnfenceBroker are what
controllers before 3.3 wrote; later ones write BrokerRegistrationChange, whose small numbers mean
"as before", "now" and "not any more".

Source: Kafka metadata/src/main/resources, ClusterControlManager; KIP-631, KIP-841, KIP-858.
"""

from __future__ import annotations

from kafkalog.messages.metadata_message import metadata_message
from kafkalog.messages.schema import Array, Field, Primitive, Struct, Versions

_INT8, _INT16, _INT32, _INT64 = Primitive.INT8, Primitive.INT16, Primitive.INT32, Primitive.INT64
_STRING, _UUID, _BOOL = Primitive.STRING, Primitive.UUID, Primitive.BOOL
_FROM_1, _FROM_2, _FROM_3, _FROM_4 = (Versions.parse(f"{first}+") for first in range(1, 5))

_ENDPOINT = Struct(
    (
        Field("name", _STRING, "the listener"),
        Field("host", _STRING, "its host"),
        Field("port", Primitive.UINT16, "its port"),
        Field("securityProtocol", _INT16, "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL"),
    )
)
_FEATURE = Struct(
    (
        Field("name", _STRING, "the feature"),
        Field("minSupportedVersion", _INT16, "lowest level the node can do"),
        Field("maxSupportedVersion", _INT16, "highest level"),
    )
)

REGISTER_BROKER_RECORD = metadata_message(
    "RegisterBrokerRecord", 0, "0-4", "a broker's process registers",
    Field("brokerId", _INT32, "its node id"),
    Field(
        "isMigratingZkBroker", _BOOL, "a ZooKeeper broker in migration",
        versions=_FROM_2, default=False, source="KIP-866",
    ),
    Field("incarnationId", _UUID, "one for each start of the process"),
    Field("brokerEpoch", _INT64, "of this registration; rises with each"),
    Field("endPoints", Array(_ENDPOINT), "where clients and brokers reach it"),
    Field("features", Array(_FEATURE), "the levels it can do"),
    Field("rack", _STRING, "its rack", nullable=Versions.parse("0+")),
    Field("fenced", _BOOL, "it may lead nothing yet", default=True),
    Field(
        "inControlledShutdown", _BOOL, "it is stopping in order",
        versions=_FROM_1, default=False, source="KIP-841",
    ),
    Field(
        "logDirs", Array(_UUID), "directory ids of its log dirs",
        versions=_FROM_3, tag=0, source="KIP-858",
    ),
    Field(
        "cordonedLogDirs", Array(_UUID), "log dirs that take no new partitions, null: not known",
        versions=_FROM_4, nullable=_FROM_4, tag=1, default_is_null=True, source="KIP-1066",
    ),
)  # fmt: skip
UNREGISTER_BROKER_RECORD = metadata_message(
    "UnregisterBrokerRecord", 1, "0", "a broker is forgotten",
    Field("brokerId", _INT32, "its node id"),
    Field("brokerEpoch", _INT64, "of the registration"),
)  # fmt: skip
FENCE_BROKER_RECORD = metadata_message(
    "FenceBrokerRecord", 7, "0", "a broker is fenced",
    Field("id", _INT32, "its node id"),
    Field("epoch", _INT64, "of the registration"),
)  # fmt: skip
UNFENCE_BROKER_RECORD = metadata_message(
    "UnfenceBrokerRecord", 8, "0", "a broker is unfenced",
    Field("id", _INT32, "its node id"),
    Field("epoch", _INT64, "of the registration"),
)  # fmt: skip
BROKER_REGISTRATION_CHANGE_RECORD = metadata_message(
    "BrokerRegistrationChangeRecord", 17, "0-3", "a broker's registration changes",
    Field("brokerId", _INT32, "its node id"),
    Field("brokerEpoch", _INT64, "of the registration"),
    Field("fenced", _INT8, "-1 unfenced, 0 as before, 1 fenced", tag=0),
    Field(
        "inControlledShutdown", _INT8, "0 as before, 1 it is stopping in order",
        versions=_FROM_1, tag=1, source="KIP-841",
    ),
    Field(
        "logDirs", Array(_UUID), "directory ids of its log dirs, none: as before",
        versions=_FROM_2, tag=2, source="KIP-858",
    ),
    Field(
        "cordonedLogDirs", Array(_UUID), "log dirs that take no new partitions, null: as before",
        versions=_FROM_3, nullable=_FROM_3, tag=3, default_is_null=True, source="KIP-1066",
    ),
)  # fmt: skip
REGISTER_CONTROLLER_RECORD = metadata_message(
    "RegisterControllerRecord", 27, "0", "a controller's process registers",
    Field("controllerId", _INT32, "its node id"),
    Field("incarnationId", _UUID, "one for each start of the process"),
    Field("zkMigrationReady", _BOOL, "it could migrate from ZooKeeper", source="KIP-866"),
    Field("endPoints", Array(_ENDPOINT), "where it is reached"),
    Field("features", Array(_FEATURE), "the levels it can do"),
)  # fmt: skip
UNREGISTER_CONTROLLER_RECORD = metadata_message(
    "UnregisterControllerRecord", 29, "0", "a controller is forgotten (4.4)",
    Field("controllerId", _INT32, "its node id"),
)  # fmt: skip
PRODUCER_IDS_RECORD = metadata_message(
    "ProducerIdsRecord", 15, "0", "a broker gets a block of producer ids",
    Field("brokerId", _INT32, "its node id"),
    Field("brokerEpoch", _INT64, "of the registration", default=-1),
    Field("nextProducerId", _INT64, "first of the next block"),
)  # fmt: skip
ZK_MIGRATION_STATE_RECORD = metadata_message(
    "ZkMigrationStateRecord", 21, "0", "how far a migration from ZooKeeper is",
    Field("zkMigrationState", _INT8, "0 none, 1 within, 2 before, 3 after it", source="KIP-866"),
    source="ZkMigrationRecord.json",
)  # fmt: skip

BROKER_MESSAGES = (
    REGISTER_BROKER_RECORD,
    UNREGISTER_BROKER_RECORD,
    FENCE_BROKER_RECORD,
    UNFENCE_BROKER_RECORD,
    BROKER_REGISTRATION_CHANGE_RECORD,
    REGISTER_CONTROLLER_RECORD,
    UNREGISTER_CONTROLLER_RECORD,
    PRODUCER_IDS_RECORD,
    ZK_MIGRATION_STATE_RECORD,
)
