"""THE table of data source options: name, what it takes, and what it means. Which views take it
their rows in `reading.views` say.

From it come the parser, the error texts and the documents' list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.options import Option
from kafkalog.reading.option_values import (
    parse_assign,
    parse_bytes,
    parse_count,
    parse_directory,
    parse_ending,
    parse_hex,
    parse_json_paths,
    parse_key_files,
    parse_name_set,
    parse_names,
    parse_numbers,
    parse_pattern,
    parse_starting,
    parse_text,
    parse_timestamp,
    parse_version,
)
from kafkalog.reading.request import ReadMode
from kafkalog.reading.selection import EARLIEST, LATEST
from kafkalog.reading.views import VIEWS
from kafkalog.remote.layouts import LAYOUTS

# The one view of the source that is not in `views`: its rows are of whole log dirs together, see
# `function_views`.
OPEN_TRANSACTIONS = "open_transactions"


def _option(
    name: str, takes: str, does: str, parse: Callable[[str], Any], *, default: Any = None
) -> Option:
    """An option for the views whose rows name it, or for all where none does."""
    takers = tuple(view.name for view in VIEWS.values() if name in view.options)
    return Option(name, takes, does, takers or tuple(VIEWS), parse, default=default)


def _choice(name: str, words: dict[str, Any], does: str, *, default: Any = None) -> Option:
    """An option that takes one of some words, and what each of them means."""
    *others, last = words
    takes = f"{', '.join(others)} or {last}" if others else last
    option = _option(name, takes, does, words.__getitem__, default=default)
    return replace(option, words=tuple(words))


_FLAG = {"true": True, "false": False}

_TABLE = (
    _option(
        "path", "paths, comma separated", "log dirs, partition directories, .log files, globs",
        parse_names,
    ),
    _option("paths", "a JSON list of paths", "what load() with a list sends", parse_json_paths),
    _option(
        "view", "a view's name",
        f"which rows: {', '.join((*VIEWS, OPEN_TRANSACTIONS))} (default records)", parse_text,
        default="records",
    ),
    _option("columns", "column names, comma separated", "only these are decoded", parse_names),
    _option("subscribe", "topics, comma separated", "topics to read (default all)", parse_name_set),
    _option("assign", 'JSON {"topic": [0, 1]}', "partitions to read", parse_assign),
    _option("subscribePattern", "a regular expression", "topics of these names", parse_pattern),
    _option(
        "startingOffsets", 'earliest, latest or JSON {"topic": {"0": 23, "1": -2}}',
        "first offset of each partition: earliest (-2) is the log start offset; latest (-1), for"
        " streams alone, where the log ends when the query begins", parse_starting,
        default=EARLIEST,
    ),
    _option(
        "endingOffsets", 'latest, highWatermark or JSON {"topic": {"0": 50, "1": -1}}',
        "end offset of each partition, excluded", parse_ending, default=LATEST,
    ),
    _option(
        "startingTimestamp", "milliseconds since 1970",
        "from the first record at or above it; where there is none nothing is read",
        parse_timestamp,
    ),
    _option(
        "endingTimestamp", "milliseconds since 1970",
        "up to the first record at or above it; where there is none all is read", parse_timestamp,
    ),
    _choice(
        "isolationLevel", {"read_uncommitted": False, "read_committed": True},
        "read_committed ends at the last stable offset and leaves aborted data out", default=False,
    ),
    _option("key", "a key as text", "only records of this key", str.encode),
    _option("keyHex", "a key in hex", "only records of this key", parse_hex),
    _option(
        "keyFilterDir", "a directory",
        "where it is kept which keys closed segments can hold: a read by key leaves out what others"
        " found to hold none of them, and keeps it of the rest (default: nothing is kept)",
        parse_directory,
    ),
    _option(
        "producerId", "producer ids, comma separated", "only what these producers wrote",
        parse_numbers,
    ),
    _option(
        "leaderEpoch", "leader epochs, comma separated", "only what was written in these epochs",
        parse_numbers,
    ),
    _option(
        "minPartitions", "a number", "at least so many tasks, where batches allow it", parse_count
    ),
    _option(
        "maxBytesPerPartition", "bytes",
        "of the log a task reads about so many at most (default 64 MiB; up to 256 MiB where as "
        "many tasks are left as twice the cores of the machine that plans)",
        parse_count,
    ),
    _option(
        "maxOffsetsPerTrigger", "a number",
        "so many offsets a batch of a stream, over all partitions", parse_count,
    ),
    _choice(
        "failOnDataLoss", _FLAG,
        "offsets that are proven to be missing, and one to start or go on at that the log does not"
        " have, are an error (default true)",
        default=True,
    ),
    _choice("includeHeaders", _FLAG, "add column headers"),
    _choice("includeControl", _FLAG, "control records are rows too", default=False),
    _choice(
        "mode", {str(mode): mode for mode in ReadMode}, "what a bad batch does",
        default=ReadMode.FAILFAST,
    ),
    # The default is the view's.
    _choice("verifyChecksums", _FLAG, "check CRCs (default true, false for batches)"),
    _option(
        "maxBatchBytes", "bytes",
        "a batch of more, stored or decompressed, is not read (default 64 MiB)", parse_count,
        default=MAX_BATCH_BYTES,
    ),
    _option(
        "pathGlobFilter", "a glob", "only segments whose .log file has such a name", parse_text
    ),
    _option(
        "remoteDir", "directories or URIs, comma separated",
        "remote storage with the older segments of tiered partitions, which are read in front of"
        " those on the broker's disk: objects of Aiven's plug-in, of Kafka's LocalTieredStorage, or"
        " plain copies of segments",
        parse_names, default=(),
    ),
    _option(
        "remoteLayout", " or ".join((", ".join(LAYOUTS[:-1]), LAYOUTS[-1])),
        "how remoteDir is laid out (default: found out by looking); without remoteDir: the paths"
        " themselves are remote storage, read without a log dir", parse_text,
    ),
    _option(
        "remoteKey", "ID=FILE, comma separated",
        "RSA keys in PEM that open the data keys of encrypted segments, by the ids that manifests"
        " name", parse_key_files, default=(),
    ),
    _option(
        "remoteCacheBytes", "bytes",
        "how much a process keeps of what it read of remote storage and buckets, and how much of a"
        " scan may be ahead (default: KAFKALOG_REMOTE_CACHE_BYTES in its environment, or 64 MiB;"
        " 0 keeps nothing)", parse_bytes,
    ),
    _choice(
        "replicas", {"all": True},
        "of a partition that is there more than once, as replicas of several brokers are, read"
        " every directory (default: refused)",
        default=False,
    ),
    _option(
        "applicationId", "application ids, comma separated",
        "applications of Kafka Streams: where their internal topics' names leave open which part is"
        " the application's and which the store's", parse_name_set, default=frozenset(),
    ),
    _option(
        "kafkaVersion", "4.1 to 4.4",
        "whose rules; logs are read the same by all of them, so it is checked and changes nothing",
        parse_version,
    ),
    Option(
        "now", "milliseconds since 1970", "the time that ages are computed for (default the clock)",
        (OPEN_TRANSACTIONS,), parse_timestamp,
    ),
)  # fmt: skip
OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}
