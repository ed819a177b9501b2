"""THE table of views: a row a view, all that anybody has to know of it.

Who adds a view adds its columns to `columns.schemas`, a module of this room that plans and reads it
(a `view_reader.ViewReader`), a function below that imports it, and a row. The data source, the
Python API, `kafkalog sql`, the pushing of conditions, the error texts and the documents' tables
come from the row.

Light to import: a reader, and the kernels that it needs, is imported when it is first asked for, so
that a process that only looks up a schema does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkalog.columns import client_schemas, schemas
from kafkalog.columns.column import Column
from kafkalog.columns.selection import choose_columns
from kafkalog.errors import InvalidConfigError

if TYPE_CHECKING:
    from kafkalog.reading.view_reader import ViewReader


@dataclass(frozen=True, slots=True)
class View:
    """One view.

    row: what a row of it is. reader: imports what plans and reads it. options: those of the data
    source that it takes beside the ones for all views. pushed: columns whose comparisons with a
    literal the reader decides, exactly; of others its rows are to be filtered again.
    checks_checksums: whether it does unless told otherwise. every_kind: its rows are files, those
    of directories that are deleted, moved or stray too; otherwise only live ones are read, and
    those named by the caller.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    reader: Callable[[], ViewReader[Any]]
    options: tuple[str, ...] = ()
    pushed: tuple[str, ...] = ("topic", "partition")
    checks_checksums: bool = False
    every_kind: bool = False


# -- readers ---------------------------------------------------------------------------------------


def _records() -> ViewReader[Any]:
    from kafkalog.reading.split_views import RECORDS_READER

    return RECORDS_READER


def _batches() -> ViewReader[Any]:
    from kafkalog.reading.split_views import BATCHES_READER

    return BATCHES_READER


def _segments() -> ViewReader[Any]:
    from kafkalog.reading.log_views import SEGMENTS_READER

    return SEGMENTS_READER


def _partitions() -> ViewReader[Any]:
    from kafkalog.reading.log_views import PARTITIONS_READER

    return PARTITIONS_READER


def _entries() -> ViewReader[Any]:
    from kafkalog.reading.entry_views import ENTRIES_READER

    return ENTRIES_READER


def _messages() -> ViewReader[Any]:
    from kafkalog.reading.message_views import MESSAGES_READER

    return MESSAGES_READER


def _offset_commits() -> ViewReader[Any]:
    from kafkalog.reading.consumer_offsets.view import OFFSET_COMMITS_READER

    return OFFSET_COMMITS_READER


def _client_topics() -> ViewReader[Any]:
    from kafkalog.reading.client_views import CLIENT_READER

    return CLIENT_READER


def _streams_topics() -> ViewReader[Any]:
    from kafkalog.reading.streams_views import STREAMS_READER

    return STREAMS_READER


def _producers() -> ViewReader[Any]:
    from kafkalog.reading.producer_views import PRODUCERS_READER

    return PRODUCERS_READER


# -- options that readers of a kind take -----------------------------------------------------------

# Of what replicas have in common.
_OF_LOGS = ("failOnDataLoss", "replicas")
# Of what is in batches.
_OF_BATCHES = (*_OF_LOGS, "startingOffsets", "endingOffsets", "verifyChecksums", "maxBatchBytes")
# Of splits: where they end, how large they are, and what of them is wanted.
_OF_SPLITS = (
    *_OF_BATCHES, "startingTimestamp", "endingTimestamp", "isolationLevel", "producerId",
    "leaderEpoch", "minPartitions", "maxBytesPerPartition", "pathGlobFilter",
)  # fmt: skip
_OF_REMOTE = ("remoteDir", "remoteLayout", "remoteKey", "remoteCacheBytes")
_OF_PRODUCERS = (*_OF_LOGS, *_OF_REMOTE)
_OF_RECORDS = (
    *_OF_SPLITS, *_OF_REMOTE, "key", "keyHex", "keyFilterDir", "includeHeaders",
    "includeControl", "maxOffsetsPerTrigger",
)  # fmt: skip

# -- the table -------------------------------------------------------------------------------------

_TABLE = (
    View(
        "records", "a record", schemas.RECORDS, _records, _OF_RECORDS,
        ("topic", "partition", "offset", "timestamp", "timestampMs", "key", "leaderEpoch",
         "producerId", "producerEpoch", "isTransactional", "isControl"),
        checks_checksums=True,
    ),
    View(
        "batches", "a record batch, or a legacy entry", schemas.BATCHES, _batches,
        (*_OF_SPLITS, *_OF_REMOTE),
        ("topic", "partition", "baseOffset", "lastOffset", "recordsCount", "baseTimestampMs",
         "maxTimestampMs", "sizeInBytes", "position", "leaderEpoch", "producerId", "producerEpoch",
         "baseSequence", "isTransactional", "isControl", "magic"),
    ),
    View(
        "segments", "a segment", schemas.SEGMENTS, _segments, ("pathGlobFilter", *_OF_REMOTE),
        every_kind=True,
    ),
    View(
        "partitions", "a partition directory", schemas.PARTITIONS, _partitions, _OF_REMOTE,
        every_kind=True,
    ),
    View(
        "offset_index", "an entry of an offset index", schemas.OFFSET_INDEX, _entries,
        _OF_REMOTE, every_kind=True,
    ),
    View(
        "time_index", "an entry of a time index", schemas.TIME_INDEX, _entries, _OF_REMOTE,
        every_kind=True,
    ),
    View(
        "transaction_index", "an entry of a transaction index", schemas.TRANSACTION_INDEX,
        _entries, _OF_REMOTE, every_kind=True,
    ),
    View(
        "producer_snapshot", "a producer in a snapshot", schemas.PRODUCER_SNAPSHOT, _entries,
        every_kind=True,
    ),
    View(
        "leader_epochs", "an epoch of a leader-epoch-checkpoint", schemas.LEADER_EPOCHS, _entries,
        every_kind=True,
    ),
    View(
        # A checkpoint has lines of partitions that are not there: nothing is pushed.
        "checkpoints", "a line of a log dir's checkpoint", schemas.CHECKPOINTS, _entries,
        pushed=(), every_kind=True,
    ),
    View(
        "messages", "a record of an internal topic, decoded", schemas.MESSAGES, _messages,
        _OF_SPLITS, checks_checksums=True,
    ),
    View(
        "group_messages", "the same without offset commits, of which there are many",
        schemas.MESSAGES, _messages, _OF_SPLITS, checks_checksums=True,
    ),
    View(
        # Its topic and partition are those that the group reads.
        "offset_commits", "an offset commit, or a tombstone of one", schemas.OFFSET_COMMITS,
        _offset_commits, _OF_BATCHES, pushed=(), checks_checksums=True,
    ),
    View(
        "latest_offset_commits", "an offset commit in force at the end of the log",
        schemas.OFFSET_COMMITS, _offset_commits, _OF_BATCHES, pushed=(), checks_checksums=True,
    ),
    View(
        "connect_offsets", "an offset of a source connector of Kafka Connect",
        client_schemas.CONNECT_OFFSETS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "connect_configs", "a record of Kafka Connect's config topic, without its secrets",
        client_schemas.CONNECT_CONFIGS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "connect_status", "a record of Kafka Connect's status topic",
        client_schemas.CONNECT_STATUS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "mirror_checkpoints", "a checkpoint of MirrorMaker 2",
        client_schemas.MIRROR_CHECKPOINTS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "mirror_heartbeats", "a heartbeat of MirrorMaker 2",
        client_schemas.MIRROR_HEARTBEATS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "mirror_offset_syncs", "an offset sync of MirrorMaker 2",
        client_schemas.MIRROR_OFFSET_SYNCS, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "schema_registry", "a record of Schema Registry's topic `_schemas`",
        client_schemas.SCHEMA_REGISTRY, _client_topics, _OF_BATCHES, checks_checksums=True,
    ),
    View(
        "streams_changelogs", "a record of a changelog of Kafka Streams, the window out of its key",
        client_schemas.STREAMS_CHANGELOGS, _streams_topics, (*_OF_SPLITS, "applicationId"),
        checks_checksums=True,
    ),
    View(
        "streams_repartitions", "a record of a repartition topic of Kafka Streams",
        client_schemas.STREAMS_REPARTITIONS, _streams_topics, (*_OF_SPLITS, "applicationId"),
        checks_checksums=True,
    ),
    View("transactions", "a transaction", schemas.TRANSACTIONS, _producers, _OF_PRODUCERS),
    View("producers", "a producer", schemas.PRODUCERS, _producers, _OF_PRODUCERS),
)  # fmt: skip

VIEWS: dict[str, View] = {view.name: view for view in _TABLE}

# Narrow views of SQL: name → view and columns. They leave keys, values and headers on the disk.
NARROW_VIEWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "record_offsets": ("records", ("topic", "partition", "offset", "timestamp", "timestampMs")),
    "record_keys": (
        "records",
        ("key", "topic", "partition", "offset", "timestamp", "keySize", "valueSize"),
    ),
}

# -- looking it up ---------------------------------------------------------------------------------


def view_named(name: str, *, beside: Sequence[str] = ()) -> View:
    """The row of a view; InvalidConfigError names the views there are, and those `beside` them."""
    view = VIEWS.get(name)
    if view is None:
        known = ", ".join((*VIEWS, *beside))
        raise InvalidConfigError(f"view '{name}' is unknown; available: {known}")
    return view


def view_columns(view: str) -> tuple[Column, ...]:
    """The columns of a view in order."""
    return view_named(view).columns


def default_columns(view: str) -> tuple[str, ...]:
    """Names of the columns a view has when none are asked for."""
    return tuple(c.name for c in view_columns(view) if not c.on_request)


def select_columns(
    view: str, names: Sequence[str], *, with_error: bool = False
) -> tuple[Column, ...]:
    """Columns of a view by their names, see `choose_columns`."""
    return choose_columns(view, view_columns(view), names, with_error=with_error)
