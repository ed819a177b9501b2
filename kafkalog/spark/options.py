"""THE table of data source options: name, what it takes, and what it means. Which views take it
their rows in `reading.views` say.

From it come the parser, the error texts and README's list. Option names are matched without case,
as everywhere in Spark. The change from Spark's camelCase to the package's snake_case happens here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kafkalog.columns.column import Column
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.selection import EARLIEST, LATEST, PartitionSelection
from kafkalog.reading.views import VIEWS, default_columns, select_columns, view_named
from kafkalog.spark.option_values import (
    Option,
    parse_assign,
    parse_count,
    parse_ending,
    parse_flag,
    parse_hex,
    parse_isolation,
    parse_json_paths,
    parse_key,
    parse_mode,
    parse_name_set,
    parse_names,
    parse_numbers,
    parse_pattern,
    parse_replicas,
    parse_starting,
    parse_text,
    parse_timestamp,
    parse_version,
)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Parsed options of one load."""

    paths: tuple[str, ...]
    view: str
    column_names: tuple[str, ...]
    columns_are_named: bool
    mode: ReadMode
    verify_checksums: bool
    include_control: bool
    selection: PartitionSelection
    row_filter: RowFilter
    min_partitions: int | None
    max_bytes_per_partition: int | None
    max_offsets_per_trigger: int | None
    max_batch_bytes: int

    @property
    def is_permissive(self) -> bool:
        return self.mode == ReadMode.PERMISSIVE

    def request(self, columns: tuple[Column, ...], schema: pa.Schema) -> ReadRequest:
        """What each task is asked for."""
        return ReadRequest(
            columns,
            schema,
            self.mode,
            self.verify_checksums,
            self.include_control,
            self.row_filter,
            self.max_batch_bytes,
        )


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Options as Spark hands them over → values; InvalidConfigError for what is unknown, malformed
    or contradictory."""
    given = _known(options)
    values = {name: OPTIONS[name].parse(OPTIONS[name], text) for name, text in given.items()}
    view = values.get("view", "records")
    row = view_named(view)
    for name in values:
        if view not in (views := views_taking(name)):
            raise InvalidConfigError(
                f"option {name} is for view {', '.join(sorted(views))}, not for view '{view}'"
            )
    mode = values.get("mode", ReadMode.FAILFAST)
    _refuse_contradictions(values)
    return SourceOptions(
        paths=_paths(values),
        view=view,
        column_names=_column_names(view, values, with_error=mode == ReadMode.PERMISSIVE),
        columns_are_named="columns" in values,
        mode=mode,
        verify_checksums=values.get("verifyChecksums", row.checks_checksums),
        include_control=values.get("includeControl", False),
        selection=PartitionSelection(
            topics=values.get("subscribe"),
            partitions=values.get("assign"),
            topic_pattern=values.get("subscribePattern"),
            starting_offsets=values.get("startingOffsets", EARLIEST),
            ending_offsets=values.get("endingOffsets", LATEST),
            starting_timestamp=values.get("startingTimestamp"),
            ending_timestamp=values.get("endingTimestamp"),
            read_committed=values.get("isolationLevel", False),
            fail_on_data_loss=values.get("failOnDataLoss", True),
            bears_damage=mode != ReadMode.FAILFAST,
            file_glob=values.get("pathGlobFilter"),
            remote_dirs=values.get("remoteDir", ()),
            all_replicas=values.get("replicas", False),
        ),
        row_filter=_row_filter(values),
        min_partitions=values.get("minPartitions"),
        max_bytes_per_partition=values.get("maxBytesPerPartition"),
        max_offsets_per_trigger=values.get("maxOffsetsPerTrigger"),
        max_batch_bytes=check_max_batch_bytes(values.get("maxBatchBytes", MAX_BATCH_BYTES)),
    )


def views_taking(option: str) -> tuple[str, ...]:
    """The views that an option is for: those whose rows name it, or all where none does."""
    return tuple(view.name for view in VIEWS.values() if option in view.options) or tuple(VIEWS)


# Of each of these at most one can be meant.
_EXCLUDING = (
    ("subscribe", "assign", "subscribePattern"),
    ("startingOffsets", "startingTimestamp"),
    ("endingOffsets", "endingTimestamp"),
    ("key", "keyHex"),
)


def _refuse_contradictions(values: Mapping[str, Any]) -> None:
    for group in _EXCLUDING:
        given = [name for name in group if name in values]
        if len(given) > 1:
            raise InvalidConfigError(f"options {' and '.join(given)} exclude each other")


def _row_filter(values: Mapping[str, Any]) -> RowFilter:
    row_filter = RowFilter()
    for name in ("producerId", "leaderEpoch"):
        if name in values:
            row_filter = row_filter.with_number(name, Condition.one_of(values[name]))
    for name in ("key", "keyHex"):
        if name in values:
            row_filter = row_filter.with_keys(frozenset({values[name]}))
    return row_filter


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """The options under the table's spelling."""
    known = {name.lower(): name for name in OPTIONS}
    given: dict[str, str] = {}
    for name, text in options.items():
        # A table's options come twice, the second time behind this prefix; its path as a location.
        lower = name.lower().removeprefix("option.")
        if lower == "location":
            given.setdefault("path", text)
            continue
        if lower in known:
            given[known[lower]] = text
        elif lower not in _SPARK_OWN:
            raise InvalidConfigError(f"option '{name}' is unknown; available: {', '.join(OPTIONS)}")
    return given


def _paths(values: Mapping[str, Any]) -> tuple[str, ...]:
    if "path" in values and "paths" in values:
        raise InvalidConfigError("option path and several paths of load() exclude each other")
    paths: tuple[str, ...] = values.get("paths", values.get("path", ()))
    if not paths:
        raise InvalidConfigError("a path is needed: a log dir, partition directory or .log file")
    return tuple(_local(path) for path in paths)


def _local(path: str) -> str:
    """`file:/logs` and `file:///logs` → `/logs`: a table's path comes back from Spark as a URI."""
    return unquote(urlsplit(path).path) if path.startswith("file:/") else path


def _column_names(view: str, values: Mapping[str, Any], *, with_error: bool) -> tuple[str, ...]:
    """Names of `columns`, or the view's default ones; `includeHeaders` and mode PERMISSIVE add
    theirs."""
    named: tuple[str, ...] | None = values.get("columns")
    names = default_columns(view) if named is None else named
    chosen = [column.name for column in select_columns(view, names, with_error=with_error)]
    if "includeHeaders" in values and named is not None:
        if values["includeHeaders"] != ("headers" in chosen):
            raise InvalidConfigError("options columns and includeHeaders contradict each other")
    elif values.get("includeHeaders"):
        chosen.append("headers")
    if with_error and "error" not in chosen:
        chosen.append("error")
    return tuple(chosen)


_TABLE = (
    Option(
        "path",
        "paths, comma separated",
        "log dirs, partition directories, .log files, globs",
        parse_names,
    ),
    Option("paths", "a JSON list of paths", "what load() with a list sends", parse_json_paths),
    Option(
        "view",
        "a view's name",
        "which rows: " + ", ".join(VIEWS) + " (default records)",
        parse_text,
    ),
    Option("columns", "column names, comma separated", "only these are decoded", parse_names),
    Option("subscribe", "topics, comma separated", "topics to read (default all)", parse_name_set),
    Option("assign", 'JSON {"topic": [0, 1]}', "partitions to read", parse_assign),
    Option("subscribePattern", "a regular expression", "topics of these names", parse_pattern),
    Option(
        "startingOffsets",
        'earliest or JSON {"topic": {"0": 23, "1": -2}}',
        "first offset of each partition; earliest is the log start offset",
        parse_starting,
    ),
    Option(
        "endingOffsets",
        'latest, highWatermark or JSON {"topic": {"0": 50, "1": -1}}',
        "end offset of each partition, excluded",
        parse_ending,
    ),
    Option(
        "startingTimestamp",
        "milliseconds since 1970",
        "from the first record at or above it; where there is none nothing is read",
        parse_timestamp,
    ),
    Option(
        "endingTimestamp",
        "milliseconds since 1970",
        "up to the first record at or above it; where there is none all is read",
        parse_timestamp,
    ),
    Option(
        "isolationLevel",
        "read_uncommitted or read_committed",
        "read_committed ends at the last stable offset and leaves aborted data out",
        parse_isolation,
    ),
    Option("key", "a key as text", "only records of this key", parse_key),
    Option("keyHex", "a key in hex", "only records of this key", parse_hex),
    Option(
        "producerId",
        "producer ids, comma separated",
        "only what these producers wrote",
        parse_numbers,
    ),
    Option(
        "leaderEpoch",
        "leader epochs, comma separated",
        "only what was written in these epochs",
        parse_numbers,
    ),
    Option(
        "minPartitions",
        "a number",
        "at least so many tasks, where batches allow it",
        parse_count,
    ),
    Option(
        "maxBytesPerPartition",
        "bytes",
        "of the log a task reads about so many at most (default 64 MiB; of many GiB up to 256 MiB "
        "where neither keys, values, headers nor checksums are asked for)",
        parse_count,
    ),
    Option(
        "maxOffsetsPerTrigger",
        "a number",
        "so many offsets a batch of a stream, over all partitions",
        parse_count,
    ),
    Option(
        "failOnDataLoss",
        "true or false",
        "offsets that are proven to be missing, and one to start or go on at that the log does not"
        " have, are an error (default true)",
        parse_flag,
    ),
    Option("includeHeaders", "true or false", "add column headers", parse_flag),
    Option("includeControl", "true or false", "control records are rows too", parse_flag),
    Option("mode", "FAILFAST, PERMISSIVE or DROPMALFORMED", "what a bad batch does", parse_mode),
    Option(
        "verifyChecksums",
        "true or false",
        "check CRCs (default true, false for batches)",
        parse_flag,
    ),
    Option(
        "maxBatchBytes",
        "bytes",
        "a batch of more, stored or decompressed, is not read (default 64 MiB)",
        parse_count,
    ),
    Option(
        "pathGlobFilter",
        "a glob",
        "only segments whose .log file has such a name",
        parse_text,
    ),
    Option(
        "remoteDir",
        "directories, comma separated",
        "remote storage with the older segments of tiered partitions, laid out as by Kafka's"
        " LocalTieredStorage; read in front of those on the broker's disk",
        parse_names,
    ),
    Option(
        "replicas",
        "all",
        "of a partition that is there more than once, as replicas of several brokers are, read"
        " every directory (default: refused)",
        parse_replicas,
    ),
    Option(
        "kafkaVersion",
        "4.1 to 4.4",
        "whose rules; logs are read the same by all of them, so it is checked and changes nothing",
        parse_version,
    ),
)
OPTIONS: dict[str, Option] = {option.name: option for option in _TABLE}

# What Spark's own catalog puts beside a table's options.
_SPARK_OWN = frozenset({"serialization.format", "provider", "owner"})
