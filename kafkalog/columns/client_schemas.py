"""THE columns of the topics that programs beside the broker keep: MirrorMaker 2."""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable, on_request
from kafkalog.columns.schemas import PARTITION, PATH, TOPIC


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
        *on_request(
            (
                nullable(
                    "transactionState",
                    pa.string(),
                    "open, committed or aborted; null outside of one",
                ),
                PATH,
            )
        ),
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
