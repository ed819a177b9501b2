"""THE columns of the views: their Arrow types, whether they can be null, and what they mean.

Everything else is derived from them: Arrow schemas, Spark schemas, the check of `columns`, the
lists in error texts, the documents' tables. Column names are Spark's Kafka dialect (camelCase); the
change from the package's snake_case happens here and in `reading.source_options` only. Which view
has which columns, and what reads it, is in `reading.views`.

In `records` a sentinel (-1) is null; `batches` shows the number that is on the disk.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable, on_request

# Named as Spark names them when it turns its own schema into Arrow: a batch must equal that
# translation.
HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)

TOPIC = not_null("topic", pa.string(), "topic")
PARTITION = not_null("partition", pa.int32(), "partition number")
PATH = not_null("path", pa.string(), "path of the .log file")
KIND = not_null("kind", pa.string(), "of the partition directory: live, future, delete or stray")
STATE = not_null("state", pa.string(), "live, cleaned, swap or deleted")
ENTRY = not_null("entry", pa.int64(), "number of the entry in the file, from 0")
SEGMENT_BASE_OFFSET = not_null(
    "segmentBaseOffset", pa.int64(), "base offset in the segment's file name"
)

# What mode PERMISSIVE adds to a view: the row is no record then, but a place where something is
# wrong.
ERROR = nullable(
    "error", pa.string(), "what is wrong with the batch; the other columns are null or its place"
)

# On request beside it, so that what cannot be read can be put aside and looked at.
ERROR_BYTES = nullable(
    "errorBytes", pa.binary(), "the bytes that cannot be read, a MiB of them at most"
)
ERROR_LENGTH = nullable("errorLength", pa.int64(), "how many bytes that are, from the position on")

RECORDS: tuple[Column, ...] = (
    nullable("key", pa.binary(), "record key; null and empty are different"),
    nullable("value", pa.binary(), "record value; null is a tombstone, empty is not"),
    TOPIC,
    PARTITION,
    not_null("offset", pa.int64(), "offset of the record"),
    nullable("timestamp", TIMESTAMP, "record timestamp; null for -1 and outside years 0001-9999"),
    not_null("timestampType", pa.int32(), "0 create time, 1 log append time, -1 none (magic 0)"),
    *on_request(
        (
            nullable("headers", HEADERS, "record headers in order; null when there is none"),
            not_null("timestampMs", pa.int64(), "record timestamp in milliseconds as stored"),
            nullable("leaderEpoch", pa.int32(), "leader epoch of the batch"),
            nullable("producerId", pa.int64(), "producer id of the batch"),
            nullable("producerEpoch", pa.int16(), "producer epoch of the batch"),
            nullable("sequence", pa.int32(), "sequence number of the record"),
            not_null("isTransactional", pa.bool_(), "written in a transaction"),
            not_null("isControl", pa.bool_(), "a control record (only with includeControl)"),
            nullable(
                "controlType", pa.string(), "ABORT, COMMIT, LEADER_CHANGE … of a control record"
            ),
            nullable(
                "transactionState",
                pa.string(),
                "committed, aborted or open; null outside of a transaction and for its marker",
            ),
            not_null("codec", pa.string(), "none, gzip, snappy, lz4 or zstd"),
            not_null("magic", pa.int8(), "version of the batch format"),
            nullable("deleteHorizon", TIMESTAMP, "when compaction may drop the batch's tombstones"),
            not_null("batchBaseOffset", pa.int64(), "base offset of the batch"),
            SEGMENT_BASE_OFFSET,
            not_null("position", pa.int64(), "byte position of the batch in the file"),
            nullable("keySize", pa.int32(), "bytes of the key"),
            nullable("valueSize", pa.int32(), "bytes of the value"),
            PATH,
        )
    ),
)

BATCHES: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("baseOffset", pa.int64(), "base offset; of a magic 0 or 1 wrapper the last"),
    not_null("lastOffset", pa.int64(), "base offset + last offset delta"),
    not_null("recordsCount", pa.int32(), "records in the batch; -1 for a wrapper of magic 0 or 1"),
    not_null("baseTimestampMs", pa.int64(), "what deltas count from; -1 when empty or a wrapper"),
    not_null("maxTimestampMs", pa.int64(), "largest timestamp, or the append time"),
    not_null("timestampType", pa.int32(), "0 create time, 1 log append time"),
    not_null("codec", pa.string(), "none, gzip, snappy, lz4, zstd, or unknown(n)"),
    not_null("magic", pa.int8(), "version of the batch format"),
    not_null("sizeInBytes", pa.int32(), "bytes on disk, header included"),
    not_null("position", pa.int64(), "byte position in the file"),
    not_null("leaderEpoch", pa.int32(), "leader epoch, -1 none"),
    not_null("producerId", pa.int64(), "producer id, -1 none"),
    not_null("producerEpoch", pa.int16(), "producer epoch, -1 none"),
    not_null("baseSequence", pa.int32(), "sequence of the first record, -1 none"),
    not_null("lastSequence", pa.int32(), "sequence of the last record, -1 none"),
    not_null("isTransactional", pa.bool_(), "written in a transaction"),
    not_null("isControl", pa.bool_(), "holds control records"),
    nullable("deleteHorizonMs", pa.int64(), "delete horizon in milliseconds, null when not set"),
    not_null("crc", pa.int64(), "stored checksum, unsigned"),
    nullable("isValid", pa.bool_(), "checksum agrees; null when not checked"),
    ERROR,
    SEGMENT_BASE_OFFSET,
    PATH,
)

SEGMENTS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("baseOffset", pa.int64(), "base offset in the file name"),
    not_null("nextOffset", pa.int64(), "last offset in the segment + 1"),
    not_null("recordsCount", pa.int64(), "records in whole batches, without those in wrappers"),
    not_null("batchesCount", pa.int64(), "whole batches"),
    not_null("sizeInBytes", pa.int64(), "size of the .log file"),
    nullable("largestTimestampMs", pa.int64(), "largest batch timestamp, null when there is none"),
    nullable("smallestTimestampMs", pa.int64(), "smallest base timestamp, null when there is none"),
    not_null("isActive", pa.bool_(), "the segment that is appended to"),
    STATE,
    not_null("indexSize", pa.int64(), "valid bytes of the offset index"),
    not_null("timeIndexSize", pa.int64(), "valid bytes of the time index"),
    not_null("txnIndexSize", pa.int64(), "bytes of the transaction index"),
    not_null("hasSnapshot", pa.bool_(), "a producer snapshot of this base offset is there"),
    not_null("validBytes", pa.int64(), "bytes of whole, well-formed batches from the start"),
    not_null(
        "trailingBytes", pa.int64(), "bytes behind them: a torn tail, preallocation, or damage"
    ),
    not_null("modificationTime", TIMESTAMP, "modification time of the file"),
    nullable("error", pa.string(), "why the walk over the headers stopped early"),
    not_null("indexState", pa.string(), "of the offset index: whole, zero-tail, stale, missing …"),
    not_null("timeIndexState", pa.string(), "of the time index, likewise"),
    KIND,
    PATH,
)

PARTITIONS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("kind", pa.string(), "live, future, delete or stray"),
    nullable("topicId", pa.string(), "topic id of partition.metadata"),
    nullable("directoryId", pa.string(), "directory id of the log dir"),
    not_null("logStartOffset", pa.int64(), "first offset a consumer can read"),
    not_null("logEndOffset", pa.int64(), "offset the next record will get"),
    nullable("highWatermark", pa.int64(), "replication-offset-checkpoint"),
    nullable(
        "lastStableOffset",
        pa.int64(),
        "first offset of the oldest open transaction, or the high watermark",
    ),
    nullable("recoveryPoint", pa.int64(), "recovery-point-offset-checkpoint"),
    nullable(
        "cleanerCheckpoint", pa.int64(), "cleaner-offset-checkpoint: where compaction goes on"
    ),
    not_null("segmentsCount", pa.int32(), "live segments"),
    not_null("sizeInBytes", pa.int64(), "bytes of the live segments' .log files"),
    not_null("hasRemoteSegments", pa.bool_(), "tiered storage holds more of it"),
    not_null(
        "isCleanShutdown", pa.bool_(), "a broker closed it in order and has not started since"
    ),
    nullable("brokerEpoch", pa.int64(), "of the broker that did, where its marker has it"),
    not_null("logDir", pa.string(), "log dir it is in"),
    not_null("path", pa.string(), "partition directory"),
)


def _entries(*columns: Column) -> tuple[Column, ...]:
    """A view with a row for each entry of a file that is named by an offset."""
    path = not_null("path", pa.string(), "path of the file")
    return (TOPIC, PARTITION, *columns, STATE, KIND, path)


OFFSET_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    not_null("offset", pa.int64(), "an offset at or below it is found from the position on"),
    not_null("position", pa.int32(), "where a batch begins in the .log file"),
)

TIME_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    not_null("timestampMs", pa.int64(), "largest timestamp so far in the segment"),
    not_null("offset", pa.int64(), "where it was reached: later timestamps lie behind"),
)

TRANSACTION_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    not_null("producerId", pa.int64(), "whose transaction was aborted"),
    not_null("firstOffset", pa.int64(), "its first data offset, maybe in an earlier segment"),
    not_null("lastOffset", pa.int64(), "offset of the ABORT marker"),
    not_null("lastStableOffset", pa.int64(), "what it was when the marker was appended"),
)

PRODUCER_SNAPSHOT = _entries(
    not_null("snapshotOffset", pa.int64(), "the state after all offsets below this one"),
    ENTRY,
    not_null("producerId", pa.int64(), "producer id"),
    not_null("producerEpoch", pa.int16(), "its epoch"),
    not_null("lastSequence", pa.int32(), "last sequence number, -1 none at this epoch"),
    not_null("lastOffset", pa.int64(), "last offset of its last data batch, -1 none"),
    not_null("offsetDelta", pa.int32(), "that batch's last offset less its first one"),
    not_null("timestampMs", pa.int64(), "of its last batch or marker"),
    not_null("coordinatorEpoch", pa.int32(), "of its last marker, -1 none"),
    not_null("currentTxnFirstOffset", pa.int64(), "where its open transaction begins, -1 none"),
)

TRANSACTIONS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("producerId", pa.int64(), "whose transaction it is"),
    not_null("producerEpoch", pa.int16(), "its epoch, at the end that of the marker"),
    not_null("state", pa.string(), "committed, aborted or open"),
    nullable("firstOffset", pa.int64(), "first offset of its data; null where none is left of it"),
    nullable("lastOffset", pa.int64(), "last offset of its data"),
    nullable("markerOffset", pa.int64(), "offset of the marker that ended it; null while open"),
    not_null("recordsCount", pa.int64(), "records of data that are left"),
    not_null("batchesCount", pa.int64(), "batches of data"),
    not_null("sizeInBytes", pa.int64(), "bytes of those batches on disk"),
    nullable("firstTimestampMs", pa.int64(), "largest timestamp of its first batch"),
    nullable("lastTimestampMs", pa.int64(), "largest timestamp of its last batch"),
    nullable("markerTimestampMs", pa.int64(), "when the marker was written"),
    nullable("durationMs", pa.int64(), "from the first batch to the marker; null while open"),
    nullable("coordinatorEpoch", pa.int32(), "of the coordinator that ended it"),
    not_null("path", pa.string(), "partition directory"),
)

PRODUCERS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    nullable("producerId", pa.int64(), "producer id; null for all that have none, together"),
    nullable("producerEpoch", pa.int16(), "its epoch at the end"),
    nullable("lastSequence", pa.int32(), "last sequence number at that epoch, null without data"),
    nullable("firstOffset", pa.int64(), "first offset of its data in the log"),
    nullable("lastOffset", pa.int64(), "last offset of its data in the log"),
    not_null("recordsCount", pa.int64(), "records of its data, without those in wrappers"),
    not_null("batchesCount", pa.int64(), "batches of its data"),
    not_null("sizeInBytes", pa.int64(), "bytes of those batches on disk"),
    nullable("firstTimestampMs", pa.int64(), "largest timestamp of its first batch"),
    nullable("lastTimestampMs", pa.int64(), "of its last batch or marker"),
    not_null("committedCount", pa.int64(), "its transactions that were committed"),
    not_null("abortedCount", pa.int64(), "its transactions that were aborted"),
    nullable("currentTxnFirstOffset", pa.int64(), "where its open transaction begins"),
    not_null("path", pa.string(), "partition directory"),
)

LEADER_EPOCHS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("epoch", pa.int32(), "leader epoch"),
    not_null("startOffset", pa.int64(), "first offset that was written in it"),
    KIND,
    not_null("path", pa.string(), "path of the leader-epoch-checkpoint"),
)

CHECKPOINTS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("checkpoint", pa.string(), "name of the file: replication-offset-checkpoint …"),
    not_null("offset", pa.int64(), "the partition's offset in it"),
    not_null("logDir", pa.string(), "log dir it is in"),
    not_null("path", pa.string(), "path of the file"),
)

MESSAGES: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("offset", pa.int64(), "offset of the record"),
    nullable("timestamp", TIMESTAMP, "record timestamp; null for -1 and outside years 0001-9999"),
    nullable("messageType", pa.string(), "OffsetCommit, TransactionLog, TopicRecord … or type 99"),
    nullable("version", pa.int16(), "of the value; null for a tombstone and for an unknown type"),
    nullable("key", pa.string(), "JSON; null for a topic without keys and for an unknown message"),
    nullable("value", pa.string(), "JSON; null for a tombstone and for an unknown message"),
    nullable("keyBytes", pa.binary(), "record key as it lies"),
    nullable(
        "valueBytes",
        pa.binary(),
        "record value as it lies; null of a metadata record with a secret too",
    ),
    nullable("error", pa.string(), "why the record cannot be decoded; unknown types are no error"),
    *(
        column
        for column in RECORDS
        if column.name
        in (
            "timestampMs", "leaderEpoch", "producerId", "producerEpoch", "isTransactional",
            "batchBaseOffset", "segmentBaseOffset", "position", "path",
        )
    ),
)  # fmt: skip

OFFSET_COMMITS: tuple[Column, ...] = (
    not_null("group", pa.string(), "the group"),
    not_null("topic", pa.string(), "the topic it reads"),
    not_null("partition", pa.int32(), "partition of that topic"),
    nullable("offset", pa.int64(), "the next offset the group wants; null of a tombstone"),
    nullable("leaderEpoch", pa.int32(), "leader epoch of the last record it read"),
    nullable("metadata", pa.string(), "what the client wrote beside it"),
    nullable("commitTimestampMs", pa.int64(), "when it was committed"),
    nullable("expireTimestampMs", pa.int64(), "when it expires, where the client said so"),
    nullable("topicId", pa.string(), "topic id, where the broker wrote it (4.1)"),
    not_null("isTombstone", pa.bool_(), "the group's offset was removed"),
    nullable("transactionState", pa.string(), "open, committed or aborted; null outside of one"),
    not_null("offsetsPartition", pa.int32(), "partition of __consumer_offsets"),
    not_null("recordOffset", pa.int64(), "offset of the record in it"),
    not_null("recordBytes", pa.int32(), "bytes of its key and value"),
    *on_request((PATH,)),
)

# Not a view of the source: the last record of each key of `__consumer_offsets`, what
# `kafkalog.spark` makes groups and their offsets of. Of a commit the message's columns are null, of
# another record most of a commit's. Beside `error` is what is known of one that cannot be read.
LATEST_RECORDS: tuple[Column, ...] = (
    *OFFSET_COMMITS,
    *(c for c in MESSAGES if c.name in ("messageType", "key", "value", "timestampMs")),
    ERROR,
)

# Not a view of the source: what `kafkalog.spark.verify` gives.
FINDINGS: tuple[Column, ...] = (
    not_null("id", pa.string(), "what was found; see the table of findings"),
    not_null("severity", pa.string(), "error, warning or info"),
    not_null("logDir", pa.string(), "log dir it is in"),
    nullable("topic", pa.string(), "topic, null for a finding about a log dir"),
    nullable("partition", pa.int32(), "partition number"),
    nullable("segmentBaseOffset", pa.int64(), "base offset in the segment's file name"),
    not_null("path", pa.string(), "file or directory it is about"),
    nullable("position", pa.int64(), "byte position in the file"),
    nullable("offset", pa.int64(), "offset in the log"),
    not_null("text", pa.string(), "what exactly"),
    not_null("more", pa.int32(), "how many like it in the same file are not listed"),
)
