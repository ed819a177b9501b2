"""THE columns of the topics that programs beside the broker keep: Kafka Connect,
MirrorMaker 2, Schema Registry, Kafka Streams."""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable, on_request
from kafkalog.columns.schemas import PARTITION, PATH, TOPIC

_STATE = nullable(
    "transactionState", pa.string(), "open, committed or aborted; null outside of one"
)


def _records(*columns: Column) -> tuple[Column, ...]:
    """A view with a row for each record."""
    return (
        TOPIC,
        PARTITION,
        not_null("offset", pa.int64(), "offset of the record"),
        nullable("timestamp", TIMESTAMP, "record timestamp; null outside years 0001-9999"),
        *columns,
        not_null("isTombstone", pa.bool_(), "the record has a key and no value"),
        not_null("isLatest", pa.bool_(), "no later committed record of the partition has its key"),
        nullable("error", pa.string(), "why the record cannot be decoded"),
        *on_request((_STATE, PATH)),
    )


_CONNECTOR = nullable("connector", pa.string(), "name of the connector")
_TASK = nullable("task", pa.int32(), "number of the task")

CONNECT_OFFSETS = _records(
    _CONNECTOR,
    nullable("sourcePartition", pa.string(), "JSON: which part of its source"),
    nullable("sourceOffset", pa.string(), "JSON: how far it is there; null of a tombstone"),
)

CONNECT_CONFIGS = _records(
    nullable(
        "recordType",
        pa.string(),
        "connector, task, commit, target-state, tasks-fencing, restart-connector, logger-cluster "
        "or session-key",
    ),
    _CONNECTOR,
    _TASK,
    nullable("logger", pa.string(), "name of the logger, of type logger-cluster"),
    nullable("targetState", pa.string(), "STARTED, PAUSED or STOPPED"),
    nullable("tasksCount", pa.int32(), "how many tasks, of types commit and tasks-fencing"),
    nullable(
        "config",
        pa.string(),
        "JSON: the properties of a connector or task, of other types the value; what looks secret "
        "is (redacted)",
    ),
)

CONNECT_STATUS = _records(
    nullable("recordType", pa.string(), "connector, task, or topic that a connector uses"),
    _CONNECTOR,
    _TASK,
    nullable("state", pa.string(), "RUNNING, PAUSED, FAILED …"),
    nullable("workerId", pa.string(), "host and port of the worker"),
    nullable("generation", pa.int32(), "generation of the group of workers"),
    nullable("pluginVersion", pa.string(), "version of the connector, where the worker wrote it"),
    nullable("trace", pa.string(), "stack trace of what failed"),
    nullable("usedTopic", pa.string(), "the topic, of type topic"),
    nullable("discoverTimestampMs", pa.int64(), "since when it is known, of type topic"),
)

_VERSION = nullable("version", pa.int16(), "of the value")
_UPSTREAM = nullable("upstreamOffset", pa.int64(), "offset in the source cluster")
_DOWNSTREAM = nullable("downstreamOffset", pa.int64(), "offset in the target cluster")

MIRROR_CHECKPOINTS = _records(
    nullable("group", pa.string(), "the consumer group"),
    nullable("targetTopic", pa.string(), "the topic's name in the target cluster"),
    nullable("targetPartition", pa.int32(), "its partition, in both clusters"),
    _UPSTREAM,
    _DOWNSTREAM,
    nullable("metadata", pa.string(), "what the group's client wrote beside its offset"),
    _VERSION,
)

MIRROR_HEARTBEATS = _records(
    nullable("sourceClusterAlias", pa.string(), "the source cluster"),
    nullable("targetClusterAlias", pa.string(), "the target cluster"),
    nullable("heartbeatMs", pa.int64(), "when, by the clock of the connector"),
    _VERSION,
)

MIRROR_OFFSET_SYNCS = _records(
    nullable("sourceTopic", pa.string(), "the topic's name in the source cluster"),
    nullable("sourcePartition", pa.int32(), "its partition, in both clusters"),
    _UPSTREAM,
    _DOWNSTREAM,
)

SCHEMA_REGISTRY = _records(
    nullable("keyType", pa.string(), "SCHEMA, CONFIG, MODE, DELETE_SUBJECT …"),
    nullable("subject", pa.string(), "the subject; null of what is for all"),
    nullable("version", pa.int32(), "of the schema; of DELETE_SUBJECT the last one deleted"),
    nullable("schemaId", pa.int32(), "the id that stands in records"),
    nullable("schemaGuid", pa.string(), "the GUID that stands in headers, of its own or computed"),
    nullable("schemaType", pa.string(), "AVRO, PROTOBUF, JSON"),
    nullable("schema", pa.string(), "the schema"),
    nullable("schemaReferences", pa.string(), "JSON: the schemas it refers to; null without"),
    nullable("value", pa.string(), "JSON: the value of what is no schema"),
    not_null(
        "isDeleted", pa.bool_(), "softly or by a tombstone; of a schema also by its subject later"
    ),
)

# -- Kafka Streams ---------------------------------------------------------------------------------


def _streams_records(*columns: Column) -> tuple[Column, ...]:
    """The same of topics that may be large: which record is the latest is for `latest_by_key`."""
    return (
        TOPIC,
        PARTITION,
        not_null("offset", pa.int64(), "offset of the record"),
        nullable("timestamp", TIMESTAMP, "record timestamp, which is the value's in a store"),
        nullable(
            "applicationId",
            pa.string(),
            "id of the application; null where the name leaves it open",
        ),
        *columns,
        nullable("value", pa.binary(), "value; null is a tombstone"),
        not_null("isTombstone", pa.bool_(), "the record has no value"),
        nullable("error", pa.string(), "why the record cannot be decoded"),
        *on_request(
            (
                nullable("recordKey", pa.binary(), "the record's whole key"),
                _STATE,
                PATH,
            )
        ),
    )


STREAMS_CHANGELOGS = _streams_records(
    nullable("store", pa.string(), "name of the store; null where the topic's name leaves it open"),
    nullable(
        "storeType",
        pa.string(),
        "key-value, window or session, by the form of the partition's first keys; null without any",
    ),
    nullable("key", pa.binary(), "key, without what the store puts behind it"),
    nullable("windowStartMs", pa.int64(), "start of the window or session"),
    nullable("windowEndMs", pa.int64(), "end of the session, included; of a window not kept"),
    nullable("sequence", pa.int32(), "number of the record among those of its key and window"),
)

STREAMS_REPARTITIONS = _streams_records(
    nullable("name", pa.string(), "name of the repartition; null where the topic's leaves it open"),
    nullable("key", pa.binary(), "key"),
)
