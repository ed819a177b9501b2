"""THE table of views: which columns a view has, their Arrow type, whether they can be null, and
what they mean.

Everything else is derived from it: Arrow schemas, Spark schemas, the check of `columns`, the lists
in error texts, README's tables. Column names are Spark's Kafka dialect (camelCase); the change from
the package's snake_case happens here and in `spark/options.py` only.

In `records` a sentinel (-1) is null; `batches` shows the number that is on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.errors import InvalidConfigError

TIMESTAMP = pa.timestamp("us", tz="UTC")
# Milliseconds of 0001-01-01 and of the last one of 9999: what a calendar, Spark's and Python's,
# holds.
MIN_TIMESTAMP_MS = -62_135_596_800_000
MAX_TIMESTAMP_MS = 253_402_300_799_999

# Named as Spark names them when it turns its own schema into Arrow: a batch must equal that
# translation.
HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a view; `on_request` columns come only when they are named."""

    name: str
    type: pa.DataType
    nullable: bool
    meaning: str
    on_request: bool = False

    def field(self, *, nullable: bool | None = None) -> pa.Field:
        return pa.field(self.name, self.type, self.nullable if nullable is None else nullable)


def _fact(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, nullable=False, meaning=meaning)


def _maybe(name: str, type_: pa.DataType, meaning: str) -> Column:
    return Column(name, type_, nullable=True, meaning=meaning)


def _more(columns: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(Column(c.name, c.type, c.nullable, c.meaning, on_request=True) for c in columns)


TOPIC = _fact("topic", pa.string(), "topic")
PARTITION = _fact("partition", pa.int32(), "partition number")
PATH = _fact("path", pa.string(), "path of the .log file")
KIND = _fact("kind", pa.string(), "of the partition directory: live, future, delete or stray")
STATE = _fact("state", pa.string(), "live, cleaned, swap or deleted")
ENTRY = _fact("entry", pa.int64(), "number of the entry in the file, from 0")
SEGMENT_BASE_OFFSET = _fact(
    "segmentBaseOffset", pa.int64(), "base offset in the segment's file name"
)

# What mode PERMISSIVE adds to a view: the row is no record then, but a place where something is
# wrong.
ERROR = _maybe(
    "error", pa.string(), "what is wrong with the batch; the other columns are null or its place"
)

# On request beside it, so that what cannot be read can be put aside and looked at.
ERROR_BYTES = _maybe(
    "errorBytes", pa.binary(), "the bytes that cannot be read, a MiB of them at most"
)
ERROR_LENGTH = _maybe("errorLength", pa.int64(), "how many bytes that are, from the position on")

RECORDS: tuple[Column, ...] = (
    _maybe("key", pa.binary(), "record key; null and empty are different"),
    _maybe("value", pa.binary(), "record value; null is a tombstone, empty is not"),
    TOPIC,
    PARTITION,
    _fact("offset", pa.int64(), "offset of the record"),
    _maybe("timestamp", TIMESTAMP, "record timestamp; null for -1 and outside years 0001-9999"),
    _fact("timestampType", pa.int32(), "0 create time, 1 log append time, -1 none (magic 0)"),
    *_more(
        (
            _maybe("headers", HEADERS, "record headers in order; null when there is none"),
            _fact("timestampMs", pa.int64(), "record timestamp in milliseconds as stored"),
            _maybe("leaderEpoch", pa.int32(), "leader epoch of the batch"),
            _maybe("producerId", pa.int64(), "producer id of the batch"),
            _maybe("producerEpoch", pa.int16(), "producer epoch of the batch"),
            _maybe("sequence", pa.int32(), "sequence number of the record"),
            _fact("isTransactional", pa.bool_(), "written in a transaction"),
            _fact("isControl", pa.bool_(), "a control record (only with includeControl)"),
            _maybe(
                "controlType", pa.string(), "ABORT, COMMIT, LEADER_CHANGE … of a control record"
            ),
            _maybe(
                "transactionState",
                pa.string(),
                "committed, aborted or open; null outside of a transaction and for its marker",
            ),
            _fact("codec", pa.string(), "none, gzip, snappy, lz4 or zstd"),
            _fact("magic", pa.int8(), "version of the batch format"),
            _maybe("deleteHorizon", TIMESTAMP, "when compaction may drop the batch's tombstones"),
            _fact("batchBaseOffset", pa.int64(), "base offset of the batch"),
            SEGMENT_BASE_OFFSET,
            _fact("position", pa.int64(), "byte position of the batch in the file"),
            _maybe("keySize", pa.int32(), "bytes of the key"),
            _maybe("valueSize", pa.int32(), "bytes of the value"),
            PATH,
        )
    ),
)

BATCHES: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("baseOffset", pa.int64(), "base offset; of a magic 0 or 1 wrapper the last"),
    _fact("lastOffset", pa.int64(), "base offset + last offset delta"),
    _fact("recordsCount", pa.int32(), "records in the batch; -1 for a wrapper of magic 0 or 1"),
    _fact("baseTimestampMs", pa.int64(), "what deltas count from; -1 when empty or a wrapper"),
    _fact("maxTimestampMs", pa.int64(), "largest timestamp, or the append time"),
    _fact("timestampType", pa.int32(), "0 create time, 1 log append time"),
    _fact("codec", pa.string(), "none, gzip, snappy, lz4, zstd, or unknown(n)"),
    _fact("magic", pa.int8(), "version of the batch format"),
    _fact("sizeInBytes", pa.int32(), "bytes on disk, header included"),
    _fact("position", pa.int64(), "byte position in the file"),
    _fact("leaderEpoch", pa.int32(), "leader epoch, -1 none"),
    _fact("producerId", pa.int64(), "producer id, -1 none"),
    _fact("producerEpoch", pa.int16(), "producer epoch, -1 none"),
    _fact("baseSequence", pa.int32(), "sequence of the first record, -1 none"),
    _fact("lastSequence", pa.int32(), "sequence of the last record, -1 none"),
    _fact("isTransactional", pa.bool_(), "written in a transaction"),
    _fact("isControl", pa.bool_(), "holds control records"),
    _maybe("deleteHorizonMs", pa.int64(), "delete horizon in milliseconds, null when not set"),
    _fact("crc", pa.int64(), "stored checksum, unsigned"),
    _maybe("isValid", pa.bool_(), "checksum agrees; null when not checked"),
    ERROR,
    SEGMENT_BASE_OFFSET,
    PATH,
)

SEGMENTS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("baseOffset", pa.int64(), "base offset in the file name"),
    _fact("nextOffset", pa.int64(), "last offset in the segment + 1"),
    _fact("recordsCount", pa.int64(), "records in whole batches, without those in wrappers"),
    _fact("batchesCount", pa.int64(), "whole batches"),
    _fact("sizeInBytes", pa.int64(), "size of the .log file"),
    _maybe("largestTimestampMs", pa.int64(), "largest batch timestamp, null when there is none"),
    _maybe("smallestTimestampMs", pa.int64(), "smallest base timestamp, null when there is none"),
    _fact("isActive", pa.bool_(), "the segment that is appended to"),
    STATE,
    _fact("indexSize", pa.int64(), "valid bytes of the offset index"),
    _fact("timeIndexSize", pa.int64(), "valid bytes of the time index"),
    _fact("txnIndexSize", pa.int64(), "bytes of the transaction index"),
    _fact("hasSnapshot", pa.bool_(), "a producer snapshot of this base offset is there"),
    _fact("validBytes", pa.int64(), "bytes of whole, well-formed batches from the start"),
    _fact("trailingBytes", pa.int64(), "bytes behind them: a torn tail, preallocation, or damage"),
    _fact("modificationTime", TIMESTAMP, "modification time of the file"),
    _maybe("error", pa.string(), "why the walk over the headers stopped early"),
    _fact("indexState", pa.string(), "of the offset index: whole, zero-tail, stale, missing …"),
    _fact("timeIndexState", pa.string(), "of the time index, likewise"),
    KIND,
    PATH,
)

PARTITIONS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("kind", pa.string(), "live, future, delete or stray"),
    _maybe("topicId", pa.string(), "topic id of partition.metadata"),
    _maybe("directoryId", pa.string(), "directory id of the log dir"),
    _fact("logStartOffset", pa.int64(), "first offset a consumer can read"),
    _fact("logEndOffset", pa.int64(), "offset the next record will get"),
    _maybe("highWatermark", pa.int64(), "replication-offset-checkpoint"),
    _maybe(
        "lastStableOffset",
        pa.int64(),
        "first offset of the oldest open transaction, or the high watermark",
    ),
    _maybe("recoveryPoint", pa.int64(), "recovery-point-offset-checkpoint"),
    _maybe("cleanerCheckpoint", pa.int64(), "cleaner-offset-checkpoint: where compaction goes on"),
    _fact("segmentsCount", pa.int32(), "live segments"),
    _fact("sizeInBytes", pa.int64(), "bytes of the live segments' .log files"),
    _fact("hasRemoteSegments", pa.bool_(), "tiered storage holds more of it"),
    _fact("isCleanShutdown", pa.bool_(), "a broker closed it in order and has not started since"),
    _maybe("brokerEpoch", pa.int64(), "of the broker that did, as far as its marker tells"),
    _fact("logDir", pa.string(), "log dir it is in"),
    _fact("path", pa.string(), "partition directory"),
)


def _entries(*columns: Column) -> tuple[Column, ...]:
    """A view with a row for each entry of a file that is named by an offset."""
    path = _fact("path", pa.string(), "path of the file")
    return (TOPIC, PARTITION, *columns, STATE, KIND, path)


OFFSET_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    _fact("offset", pa.int64(), "an offset at or below it is found from the position on"),
    _fact("position", pa.int32(), "where a batch begins in the .log file"),
)

TIME_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    _fact("timestampMs", pa.int64(), "largest timestamp so far in the segment"),
    _fact("offset", pa.int64(), "where it was reached: later timestamps lie behind"),
)

TRANSACTION_INDEX = _entries(
    SEGMENT_BASE_OFFSET,
    ENTRY,
    _fact("producerId", pa.int64(), "whose transaction was aborted"),
    _fact("firstOffset", pa.int64(), "its first data offset, maybe in an earlier segment"),
    _fact("lastOffset", pa.int64(), "offset of the ABORT marker"),
    _fact("lastStableOffset", pa.int64(), "what it was when the marker was appended"),
)

PRODUCER_SNAPSHOT = _entries(
    _fact("snapshotOffset", pa.int64(), "the state after all offsets below this one"),
    ENTRY,
    _fact("producerId", pa.int64(), "producer id"),
    _fact("producerEpoch", pa.int16(), "its epoch"),
    _fact("lastSequence", pa.int32(), "last sequence number, -1 none at this epoch"),
    _fact("lastOffset", pa.int64(), "last offset of its last data batch, -1 none"),
    _fact("offsetDelta", pa.int32(), "that batch's last offset less its first one"),
    _fact("timestampMs", pa.int64(), "of its last batch or marker"),
    _fact("coordinatorEpoch", pa.int32(), "of its last marker, -1 none"),
    _fact("currentTxnFirstOffset", pa.int64(), "where its open transaction begins, -1 none"),
)

TRANSACTIONS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("producerId", pa.int64(), "whose transaction it is"),
    _fact("producerEpoch", pa.int16(), "its epoch, at the end that of the marker"),
    _fact("state", pa.string(), "committed, aborted or open"),
    _maybe("firstOffset", pa.int64(), "first offset of its data; null where none is left of it"),
    _maybe("lastOffset", pa.int64(), "last offset of its data"),
    _maybe("markerOffset", pa.int64(), "offset of the marker that ended it; null while open"),
    _fact("recordsCount", pa.int64(), "records of data that are left"),
    _fact("batchesCount", pa.int64(), "batches of data"),
    _fact("sizeInBytes", pa.int64(), "bytes of those batches on disk"),
    _maybe("firstTimestampMs", pa.int64(), "largest timestamp of its first batch"),
    _maybe("lastTimestampMs", pa.int64(), "largest timestamp of its last batch"),
    _maybe("markerTimestampMs", pa.int64(), "when the marker was written"),
    _maybe("durationMs", pa.int64(), "from the first batch to the marker; null while open"),
    _maybe("coordinatorEpoch", pa.int32(), "of the coordinator that ended it"),
    _fact("path", pa.string(), "partition directory"),
)

PRODUCERS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _maybe("producerId", pa.int64(), "producer id; null for all that have none, together"),
    _maybe("producerEpoch", pa.int16(), "its epoch at the end"),
    _maybe("lastSequence", pa.int32(), "last sequence number at that epoch, null without data"),
    _maybe("firstOffset", pa.int64(), "first offset of its data in the log"),
    _maybe("lastOffset", pa.int64(), "last offset of its data in the log"),
    _fact("recordsCount", pa.int64(), "records of its data, without those in wrappers"),
    _fact("batchesCount", pa.int64(), "batches of its data"),
    _fact("sizeInBytes", pa.int64(), "bytes of those batches on disk"),
    _maybe("firstTimestampMs", pa.int64(), "largest timestamp of its first batch"),
    _maybe("lastTimestampMs", pa.int64(), "of its last batch or marker"),
    _fact("committedCount", pa.int64(), "its transactions that were committed"),
    _fact("abortedCount", pa.int64(), "its transactions that were aborted"),
    _maybe("currentTxnFirstOffset", pa.int64(), "where its open transaction begins"),
    _fact("path", pa.string(), "partition directory"),
)

LEADER_EPOCHS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("epoch", pa.int32(), "leader epoch"),
    _fact("startOffset", pa.int64(), "first offset that was written in it"),
    KIND,
    _fact("path", pa.string(), "path of the leader-epoch-checkpoint"),
)

CHECKPOINTS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("checkpoint", pa.string(), "name of the file: replication-offset-checkpoint …"),
    _fact("offset", pa.int64(), "the partition's offset in it"),
    _fact("logDir", pa.string(), "log dir it is in"),
    _fact("path", pa.string(), "path of the file"),
)

MESSAGES: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    _fact("offset", pa.int64(), "offset of the record"),
    _maybe("timestamp", TIMESTAMP, "record timestamp; null for -1 and outside years 0001-9999"),
    _maybe("messageType", pa.string(), "OffsetCommit, TransactionLog, TopicRecord … or type 99"),
    _maybe("version", pa.int16(), "of the value; null for a tombstone and for an unknown type"),
    _maybe("key", pa.string(), "JSON; null for a topic without keys and for an unknown message"),
    _maybe("value", pa.string(), "JSON; null for a tombstone and for an unknown message"),
    _maybe("keyBytes", pa.binary(), "record key as it lies"),
    _maybe(
        "valueBytes",
        pa.binary(),
        "record value as it lies; null of a metadata record with a secret too",
    ),
    _maybe("error", pa.string(), "why the record cannot be decoded; unknown types are no error"),
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
    _fact("group", pa.string(), "the group"),
    _fact("topic", pa.string(), "the topic it reads"),
    _fact("partition", pa.int32(), "partition of that topic"),
    _maybe("offset", pa.int64(), "the next offset the group wants; null of a tombstone"),
    _maybe("leaderEpoch", pa.int32(), "leader epoch of the last record it read"),
    _maybe("metadata", pa.string(), "what the client wrote beside it"),
    _maybe("commitTimestampMs", pa.int64(), "when it was committed"),
    _maybe("expireTimestampMs", pa.int64(), "when it expires, where the client said so"),
    _maybe("topicId", pa.string(), "topic id, where the broker wrote it (4.1)"),
    _fact("isTombstone", pa.bool_(), "the group's offset was removed"),
    _maybe("transactionState", pa.string(), "open, committed or aborted; null outside of one"),
    _fact("offsetsPartition", pa.int32(), "partition of __consumer_offsets"),
    _fact("recordOffset", pa.int64(), "offset of the record in it"),
    _fact("recordBytes", pa.int32(), "bytes of its key and value"),
    *_more((PATH,)),
)

# Not a view of the source: the last record of each key of `__consumer_offsets`, what
# `kafkalog.spark` makes groups and their offsets of. Of a commit the message's columns are null, of
# another record most of a commit's.
LATEST_RECORDS: tuple[Column, ...] = (
    *OFFSET_COMMITS,
    *(c for c in MESSAGES if c.name in ("messageType", "key", "value", "timestampMs")),
)

# Not a view of the source: what `kafkalog.spark.verify` gives.
FINDINGS: tuple[Column, ...] = (
    _fact("id", pa.string(), "what was found; see the table of findings"),
    _fact("severity", pa.string(), "error, warning or info"),
    _fact("logDir", pa.string(), "log dir it is in"),
    _maybe("topic", pa.string(), "topic, null for a finding about a log dir"),
    _maybe("partition", pa.int32(), "partition number"),
    _maybe("segmentBaseOffset", pa.int64(), "base offset in the segment's file name"),
    _fact("path", pa.string(), "file or directory it is about"),
    _maybe("position", pa.int64(), "byte position in the file"),
    _maybe("offset", pa.int64(), "offset in the log"),
    _fact("text", pa.string(), "what exactly"),
    _fact("more", pa.int32(), "how many like it in the same file are not listed"),
)

# `group_messages` is `messages` without offset commits, of which there are many.
MESSAGE_VIEWS = ("messages", "group_messages")
OFFSET_VIEWS = ("offset_commits", "latest_offset_commits")

VIEWS: dict[str, tuple[Column, ...]] = {
    "records": RECORDS,
    "batches": BATCHES,
    "segments": SEGMENTS,
    "partitions": PARTITIONS,
    "offset_index": OFFSET_INDEX,
    "time_index": TIME_INDEX,
    "transaction_index": TRANSACTION_INDEX,
    "producer_snapshot": PRODUCER_SNAPSHOT,
    "leader_epochs": LEADER_EPOCHS,
    "checkpoints": CHECKPOINTS,
    "messages": MESSAGES,
    "group_messages": MESSAGES,
    "offset_commits": OFFSET_COMMITS,
    "latest_offset_commits": OFFSET_COMMITS,
    "transactions": TRANSACTIONS,
    "producers": PRODUCERS,
}


def view_columns(view: str) -> tuple[Column, ...]:
    """The columns of a view in order; InvalidConfigError names the views there are."""
    columns = VIEWS.get(view)
    if columns is not None:
        return columns
    allowed = ", ".join(VIEWS)
    raise InvalidConfigError(f"view '{view}' is unknown; available: {allowed}")


def default_columns(view: str) -> tuple[str, ...]:
    """Names of the columns a view has when none are asked for."""
    return tuple(c.name for c in view_columns(view) if not c.on_request)


def select_columns(
    view: str, names: Sequence[str], *, with_error: bool = False
) -> tuple[Column, ...]:
    """The columns `names` of a view in the asked order, spelt as in the table; names match without
    case.

    `with_error` allows the columns of mode PERMISSIVE too: `error`, `errorBytes`, `errorLength`.
    InvalidConfigError names what is unknown or asked for twice, and lists what is there.
    """
    known = {c.name.lower(): c for c in view_columns(view)}
    if with_error:
        for extra in (ERROR, ERROR_BYTES, ERROR_LENGTH):
            known.setdefault(extra.name.lower(), extra)
    chosen: dict[str, Column] = {}
    for name in names:
        column = known.get(name.lower())
        if column is None:
            allowed = ", ".join(c.name for c in known.values())
            raise InvalidConfigError(
                f"column '{name}' is unknown in view '{view}'; available: {allowed}"
            )
        if column.name in chosen:
            raise InvalidConfigError(f"column '{name}' is asked for twice")
        chosen[column.name] = column
    if not chosen:
        raise InvalidConfigError(f"no column of view '{view}' is asked for")
    return tuple(chosen.values())


def arrow_schema(columns: Iterable[Column], *, all_nullable: bool = False) -> pa.Schema:
    """Arrow schema of columns; `all_nullable` for mode PERMISSIVE, where a bad batch's row has only
    its place."""
    return pa.schema([c.field(nullable=True if all_nullable else None) for c in columns])
