"""THE table of the cluster's own tables: what its metadata log, or its ZooKeeper, told over time.

The same columns whatever they were read from: `source` tells, and `offset` orders the rows of one
source (of the metadata log the record's offset, of ZooKeeper the transaction's zxid). What a source
does not know is null. Tables of states (those with `endOffset`) have a row for each span in which
something held: from `offset` on up to `endOffset`, which is null where it still holds at the end,
so what was in force at any place is `offset <= x AND (endOffset IS NULL OR endOffset > x)`.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.schemas import TIMESTAMP, Column

# Named as Spark names it when it turns its own schema into Arrow.
NODES = pa.list_(pa.field("element", pa.int32()))
TEXTS = pa.list_(pa.field("element", pa.string()))

METADATA_LOG = "metadata log"
METADATA_SNAPSHOT = "metadata snapshot"
QUORUM_STATE = "quorum-state"
ZOOKEEPER_LOG = "zookeeper log"
ZOOKEEPER_SNAPSHOT = "zookeeper snapshot"


def _fact(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, nullable=False, meaning=meaning)


def _maybe(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, nullable=True, meaning=meaning)


# Where a row comes from; last columns of each table.
_PLACE = (
    _fact(
        "source",
        pa.string(),
        f"{METADATA_LOG}, {METADATA_SNAPSHOT}, {QUORUM_STATE}, {ZOOKEEPER_LOG} or "
        f"{ZOOKEEPER_SNAPSHOT}",
    ),
    _maybe("clusterId", pa.string(), "id of the cluster, as far as it is told"),
    _maybe("znode", pa.string(), "path of the node in ZooKeeper, chroot included; null elsewhere"),
    _fact("path", pa.string(), "file the row was read from"),
)

_WHEN = (
    _maybe("timestamp", TIMESTAMP, "when; null outside years 0001-9999 and where it is not told"),
    _maybe("timestampMs", pa.int64(), "the same in milliseconds as stored"),
    _fact("offset", pa.int64(), "of the record in the metadata log; the zxid in ZooKeeper"),
)

_SPAN = (
    *_WHEN,
    _maybe("endTimestamp", TIMESTAMP, "when it ended, null where it still holds"),
    _maybe("endTimestampMs", pa.int64(), "the same in milliseconds as stored"),
    _maybe("endOffset", pa.int64(), "of the record or transaction that ended it"),
)

BROKERS: tuple[Column, ...] = (
    _fact("brokerId", pa.int32(), "node id of the broker"),
    _fact(
        "event",
        pa.string(),
        "registered, changed, fenced, unfenced, controlled-shutdown, unregistered; in ZooKeeper "
        "registered, changed, closed (by the broker), expired (its session), deleted",
    ),
    *_WHEN,
    _maybe("brokerEpoch", pa.int64(), "of the registration, rises with each; czxid in ZooKeeper"),
    _maybe("incarnationId", pa.string(), "one for each start of the process; null in ZooKeeper"),
    _maybe("sessionId", pa.int64(), "ZooKeeper session that holds the registration"),
    _fact("isReturn", pa.bool_(), "an earlier registration had the same id"),
    _maybe("endpoints", pa.string(), "LISTENER://host:port, comma separated"),
    _maybe("rack", pa.string(), "rack"),
    _maybe("isFenced", pa.bool_(), "after the event; null in ZooKeeper"),
    _maybe("inControlledShutdown", pa.bool_(), "after the event; null in ZooKeeper"),
    _maybe("logDirs", TEXTS, "directory ids of its log dirs; null in ZooKeeper"),
    *_PLACE,
)

CONTROLLERS: tuple[Column, ...] = (
    _maybe("controllerId", pa.int32(), "node id of the controller; null while nobody is"),
    _fact(
        "event",
        pa.string(),
        "elected, voters (the quorum changed), registered, unregistered (a controller's process), "
        "quorum-state (what this disk's member promised); in ZooKeeper elected, closed, expired or "
        "deleted: gone",
    ),
    *_WHEN,
    _maybe("controllerEpoch", pa.int32(), "epoch of the election, null where it is not told"),
    _maybe("sessionId", pa.int64(), "ZooKeeper session that holds the controllership"),
    _maybe("voters", NODES, "voters of the quorum; null in ZooKeeper"),
    _maybe("votedId", pa.int32(), "whom the member voted for in the epoch of its quorum-state"),
    _maybe("incarnationId", pa.string(), "of a registered process: one for each start"),
    _maybe("endpoints", pa.string(), "of a registered process: LISTENER://host:port"),
    _maybe("kraftEpoch", pa.int32(), "epoch of a KRaft controller that writes to ZooKeeper"),
    *_PLACE,
)

PARTITION_CHANGES: tuple[Column, ...] = (
    _fact("topic", pa.string(), "topic"),
    _maybe("topicId", pa.string(), "topic id, null before there were any"),
    _fact("partition", pa.int32(), "partition number"),
    _fact("event", pa.string(), "created, changed or deleted"),
    *_WHEN,
    _maybe("leader", pa.int32(), "leader after the change, -1 none"),
    _maybe("leaderEpoch", pa.int32(), "leader epoch after the change"),
    _maybe("partitionEpoch", pa.int32(), "partition epoch; the version of the node in ZooKeeper"),
    _maybe("controllerEpoch", pa.int32(), "epoch of the controller that decided it (ZooKeeper)"),
    _maybe("isr", NODES, "in-sync replicas after the change"),
    _maybe("replicas", NODES, "assigned replicas, the preferred leader first"),
    _maybe("addingReplicas", NODES, "that a reassignment adds"),
    _maybe("removingReplicas", NODES, "that a reassignment removes"),
    _maybe("eligibleLeaderReplicas", NODES, "not in sync, and may lead without losing records"),
    _maybe("lastKnownElr", NODES, "that were such before nobody was left"),
    _maybe("directories", TEXTS, "directory ids of the replicas' log dirs, in their order"),
    _maybe("leaderRecoveryState", pa.int32(), "0 recovered, 1 recovering from an unclean election"),
    _maybe("previousLeader", pa.int32(), "leader before the change, null where it is not told"),
    _maybe("isrJoined", NODES, "that came into the in-sync replicas by the change"),
    _maybe("isrLeft", NODES, "that left them by it"),
    _maybe(
        "isUnclean",
        pa.bool_(),
        "the new leader may lack records that were committed: it was not in sync",
    ),
    *_PLACE,
)

TOPICS: tuple[Column, ...] = (
    _fact("topic", pa.string(), "topic"),
    _maybe("topicId", pa.string(), "topic id, null before there were any"),
    *_SPAN,
    _maybe("deletionRequestedMs", pa.int64(), "when its deletion was asked for (ZooKeeper)"),
    _fact("partitionsCount", pa.int32(), "partitions at the end"),
    _maybe("replicationFactor", pa.int32(), "replicas of partition 0 at the end"),
    *_PLACE,
)

CONFIGS: tuple[Column, ...] = (
    _fact("entityType", pa.string(), "topic, broker, user, client-id, user/client-id, ip …"),
    _maybe("entity", pa.string(), "its name, of a pair USER/CLIENT; null is the default of all"),
    _fact("key", pa.string(), "name of the setting"),
    _maybe("value", pa.string(), "its value; secrets are (redacted)"),
    *_SPAN,
    *_PLACE,
)

FEATURES: tuple[Column, ...] = (
    _fact("feature", pa.string(), "metadata.version, kraft.version, transaction.version …"),
    _fact("level", pa.int32(), "its finalized level"),
    *_SPAN,
    *_PLACE,
)

CLIENT_QUOTAS: tuple[Column, ...] = (
    _fact("entityType", pa.string(), "user, client-id, user/client-id or ip"),
    _fact("entity", pa.string(), "its name, of a pair USER/CLIENT; <default> is all others"),
    _fact("key", pa.string(), "producer_byte_rate, consumer_byte_rate, request_percentage …"),
    _fact("value", pa.float64(), "how much"),
    *_SPAN,
    *_PLACE,
)

ACLS: tuple[Column, ...] = (
    _fact("resourceType", pa.string(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID …"),
    _fact("resourceName", pa.string(), "name or prefix, * is all"),
    _fact("patternType", pa.string(), "LITERAL or PREFIXED"),
    _fact("principal", pa.string(), "as User:alice"),
    _fact("host", pa.string(), "host, * is all"),
    _fact("operation", pa.string(), "READ, WRITE, ALL …"),
    _fact("permissionType", pa.string(), "ALLOW or DENY"),
    *_SPAN,
    *_PLACE,
)

SCRAM: tuple[Column, ...] = (
    _fact("user", pa.string(), "user"),
    _fact("mechanism", pa.string(), "SCRAM-SHA-256 or SCRAM-SHA-512"),
    _fact("iterations", pa.int32(), "rounds of hashing"),
    _fact("credential", pa.string(), "salt and keys, which are secrets: (redacted)"),
    *_SPAN,
    *_PLACE,
)

TOKENS: tuple[Column, ...] = (
    _fact("tokenId", pa.string(), "id of a delegation token; its secret is not in the log"),
    _fact("owner", pa.string(), "principal it stands for"),
    _fact("requester", pa.string(), "principal that asked for it"),
    _fact("renewers", pa.string(), "principals that may renew it, comma separated"),
    _fact("issueTimestampMs", pa.int64(), "when it was issued"),
    _fact("maxTimestampMs", pa.int64(), "when it cannot be renewed any more"),
    _fact("expirationTimestampMs", pa.int64(), "when it ends unless it is renewed"),
    *_SPAN,
    *_PLACE,
)

# Of the consumers that kept their offsets in ZooKeeper, to Kafka 1.x.
OLD_CONSUMER_OFFSETS: tuple[Column, ...] = (
    _fact("group", pa.string(), "consumer group"),
    _fact("topic", pa.string(), "topic"),
    _fact("partition", pa.int32(), "partition number"),
    _maybe("committedOffset", pa.int64(), "next offset to read; null where it was deleted"),
    *_WHEN,
    *_PLACE,
)

CLUSTER_TABLES: dict[str, tuple[Column, ...]] = {
    "brokers": BROKERS,
    "controllers": CONTROLLERS,
    "partition_changes": PARTITION_CHANGES,
    "topics": TOPICS,
    "configs": CONFIGS,
    "features": FEATURES,
    "client_quotas": CLIENT_QUOTAS,
    "acls": ACLS,
    "scram": SCRAM,
    "tokens": TOKENS,
}
