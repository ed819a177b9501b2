"""THE table of the cluster's own tables: what its metadata log, or its ZooKeeper, says over time.

The same columns whatever they were read from: `source` tells, and `offset` orders the rows of one
source (of the metadata log the record's offset, of ZooKeeper the transaction's zxid). What a source
does not know is null. Tables of states (those with `endOffset`) have a row for each span in which
something held: from `offset` on up to `endOffset`, which is null where it still holds at the end,
so what was in force at any place is `offset <= x AND (endOffset IS NULL OR endOffset > x)`.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable

# Named as Spark names it when it turns its own schema into Arrow.
NODES = pa.list_(pa.field("element", pa.int32()))
TEXTS = pa.list_(pa.field("element", pa.string()))

METADATA_LOG = "metadata log"
METADATA_SNAPSHOT = "metadata snapshot"
QUORUM_STATE = "quorum-state"
ZOOKEEPER_LOG = "zookeeper log"
ZOOKEEPER_SNAPSHOT = "zookeeper snapshot"


# Where a row comes from; last columns of each table.
_PLACE = (
    not_null(
        "source",
        pa.string(),
        f"{METADATA_LOG}, {METADATA_SNAPSHOT}, {QUORUM_STATE}, {ZOOKEEPER_LOG} or "
        f"{ZOOKEEPER_SNAPSHOT}",
    ),
    nullable("clusterId", pa.string(), "id of the cluster, as far as it is known"),
    nullable(
        "znode", pa.string(), "path of the node in ZooKeeper, chroot included; null elsewhere"
    ),
    not_null("path", pa.string(), "file the row was read from"),
)

_WHEN = (
    nullable("timestamp", TIMESTAMP, "when; null outside years 0001-9999 and where not known"),
    nullable("timestampMs", pa.int64(), "the same in milliseconds as stored"),
    not_null("offset", pa.int64(), "of the record in the metadata log; the zxid in ZooKeeper"),
)

_SPAN = (
    *_WHEN,
    nullable("endTimestamp", TIMESTAMP, "when it ended, null where it still holds"),
    nullable("endTimestampMs", pa.int64(), "the same in milliseconds as stored"),
    nullable("endOffset", pa.int64(), "of the record or transaction that ended it"),
)

BROKERS: tuple[Column, ...] = (
    not_null("brokerId", pa.int32(), "node id of the broker"),
    not_null(
        "event",
        pa.string(),
        "registered, changed, fenced, unfenced, controlled-shutdown, unregistered; in ZooKeeper "
        "registered, changed, closed (by the broker), expired (its session), deleted",
    ),
    *_WHEN,
    nullable("brokerEpoch", pa.int64(), "of the registration, rises with each; czxid in ZooKeeper"),
    nullable("incarnationId", pa.string(), "one for each start of the process; null in ZooKeeper"),
    nullable("sessionId", pa.int64(), "ZooKeeper session that holds the registration"),
    not_null("isReturn", pa.bool_(), "an earlier registration had the same id"),
    nullable("endpoints", pa.string(), "LISTENER://host:port, comma separated"),
    nullable("rack", pa.string(), "rack"),
    nullable("isFenced", pa.bool_(), "after the event; null in ZooKeeper"),
    nullable("inControlledShutdown", pa.bool_(), "after the event; null in ZooKeeper"),
    nullable("logDirs", TEXTS, "directory ids of its log dirs; null in ZooKeeper"),
    *_PLACE,
)

CONTROLLERS: tuple[Column, ...] = (
    nullable("controllerId", pa.int32(), "node id of the controller; null while there is none"),
    not_null(
        "event",
        pa.string(),
        "elected, voters (the quorum changed), registered, unregistered (a controller's process), "
        "quorum-state (what this disk's member promised); in ZooKeeper elected, closed, expired or "
        "deleted: gone",
    ),
    *_WHEN,
    nullable("controllerEpoch", pa.int32(), "epoch of the election, null where it is not known"),
    nullable("sessionId", pa.int64(), "ZooKeeper session that holds the controllership"),
    nullable("voters", NODES, "voters of the quorum; null in ZooKeeper"),
    nullable("votedId", pa.int32(), "whom the member voted for in the epoch of its quorum-state"),
    nullable("incarnationId", pa.string(), "of a registered process: one for each start"),
    nullable("endpoints", pa.string(), "of a registered process: LISTENER://host:port"),
    nullable("kraftEpoch", pa.int32(), "epoch of a KRaft controller that writes to ZooKeeper"),
    *_PLACE,
)

PARTITION_CHANGES: tuple[Column, ...] = (
    not_null("topic", pa.string(), "topic"),
    nullable("topicId", pa.string(), "topic id, null before there were any"),
    not_null("partition", pa.int32(), "partition number"),
    not_null("event", pa.string(), "created, changed or deleted"),
    *_WHEN,
    nullable("leader", pa.int32(), "leader after the change, -1 none"),
    nullable("leaderEpoch", pa.int32(), "leader epoch after the change"),
    nullable("partitionEpoch", pa.int32(), "partition epoch; the version of the node in ZooKeeper"),
    nullable("controllerEpoch", pa.int32(), "epoch of the controller that decided it (ZooKeeper)"),
    nullable("isr", NODES, "in-sync replicas after the change"),
    nullable("replicas", NODES, "assigned replicas, the preferred leader first"),
    nullable("addingReplicas", NODES, "that a reassignment adds"),
    nullable("removingReplicas", NODES, "that a reassignment removes"),
    nullable("eligibleLeaderReplicas", NODES, "not in sync, and may lead without losing records"),
    nullable("lastKnownElr", NODES, "eligible ones before the last in-sync replica was lost"),
    nullable("directories", TEXTS, "directory ids of the replicas' log dirs, in their order"),
    nullable(
        "leaderRecoveryState", pa.int32(), "0 recovered, 1 recovering from an unclean election"
    ),
    nullable("previousLeader", pa.int32(), "leader before the change, null where it is not known"),
    nullable("isrJoined", NODES, "that came into the in-sync replicas by the change"),
    nullable("isrLeft", NODES, "that left them by it"),
    nullable(
        "isUnclean",
        pa.bool_(),
        "the new leader may lack records that were committed: it was not in sync",
    ),
    *_PLACE,
)

TOPICS: tuple[Column, ...] = (
    not_null("topic", pa.string(), "topic"),
    nullable("topicId", pa.string(), "topic id, null before there were any"),
    *_SPAN,
    nullable("deletionRequestedMs", pa.int64(), "when its deletion was asked for (ZooKeeper)"),
    not_null("partitionsCount", pa.int32(), "partitions at the end"),
    nullable("replicationFactor", pa.int32(), "replicas of partition 0 at the end"),
    *_PLACE,
)

CONFIGS: tuple[Column, ...] = (
    not_null("entityType", pa.string(), "topic, broker, user, client-id, user/client-id, ip …"),
    nullable("entity", pa.string(), "its name, of a pair USER/CLIENT; null is the default of all"),
    not_null("key", pa.string(), "name of the setting"),
    nullable("value", pa.string(), "its value; secrets are (redacted)"),
    *_SPAN,
    *_PLACE,
)

FEATURES: tuple[Column, ...] = (
    not_null("feature", pa.string(), "metadata.version, kraft.version, transaction.version …"),
    not_null("level", pa.int32(), "its finalized level"),
    *_SPAN,
    *_PLACE,
)

CLIENT_QUOTAS: tuple[Column, ...] = (
    not_null("entityType", pa.string(), "user, client-id, user/client-id or ip"),
    not_null("entity", pa.string(), "its name, of a pair USER/CLIENT; <default> is all others"),
    not_null("key", pa.string(), "producer_byte_rate, consumer_byte_rate, request_percentage …"),
    not_null("value", pa.float64(), "how much"),
    *_SPAN,
    *_PLACE,
)

ACLS: tuple[Column, ...] = (
    not_null("resourceType", pa.string(), "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID …"),
    not_null("resourceName", pa.string(), "name or prefix, * is all"),
    not_null("patternType", pa.string(), "LITERAL or PREFIXED"),
    not_null("principal", pa.string(), "as User:alice"),
    not_null("host", pa.string(), "host, * is all"),
    not_null("operation", pa.string(), "READ, WRITE, ALL …"),
    not_null("permissionType", pa.string(), "ALLOW or DENY"),
    *_SPAN,
    *_PLACE,
)

SCRAM: tuple[Column, ...] = (
    not_null("user", pa.string(), "user"),
    not_null("mechanism", pa.string(), "SCRAM-SHA-256 or SCRAM-SHA-512"),
    not_null("iterations", pa.int32(), "rounds of hashing"),
    not_null("credential", pa.string(), "salt and keys, which are secrets: (redacted)"),
    *_SPAN,
    *_PLACE,
)

TOKENS: tuple[Column, ...] = (
    not_null("tokenId", pa.string(), "id of a delegation token; its secret is not in the log"),
    not_null("owner", pa.string(), "principal it stands for"),
    not_null("requester", pa.string(), "principal that asked for it"),
    not_null("renewers", pa.string(), "principals that may renew it, comma separated"),
    not_null("issueTimestampMs", pa.int64(), "when it was issued"),
    not_null("maxTimestampMs", pa.int64(), "when it cannot be renewed any more"),
    not_null("expirationTimestampMs", pa.int64(), "when it ends unless it is renewed"),
    *_SPAN,
    *_PLACE,
)

# Of the consumers that kept their offsets in ZooKeeper, to Kafka 1.x.
OLD_CONSUMER_OFFSETS: tuple[Column, ...] = (
    not_null("group", pa.string(), "consumer group"),
    not_null("topic", pa.string(), "topic"),
    not_null("partition", pa.int32(), "partition number"),
    nullable("committedOffset", pa.int64(), "next offset to read; null where it was deleted"),
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
