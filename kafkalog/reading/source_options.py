"""Options of one load of the data source: from what Spark hands over to values.

The table is `option_table`. Option names are matched without case, as everywhere in Spark. The
change from Spark's camelCase to the package's snake_case happens here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from kafkalog.columns.column import Column
from kafkalog.errors import InvalidConfigError
from kafkalog.format.limits import check_max_batch_bytes
from kafkalog.options import Option, did_you_mean
from kafkalog.reading.conditions import Condition, RowFilter
from kafkalog.reading.option_table import OPEN_TRANSACTIONS, OPTIONS
from kafkalog.reading.request import ReadMode, ReadRequest
from kafkalog.reading.selection import PartitionSelection
from kafkalog.reading.views import default_columns, select_columns, view_named

# What Spark's own catalog puts beside a table's options.
_SPARK_OWN = frozenset({"serialization.format", "provider", "owner"})


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
    remote_cache_bytes: int | None
    key_filter_dir: str | None

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
            self.remote_cache_bytes,
            self.key_filter_dir,
        )


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Options as Spark hands them over → values; InvalidConfigError for what is unknown, malformed
    or contradictory."""
    values = option_values(options)

    def value(name: str) -> Any:
        return values.get(name, OPTIONS[name].default)

    view = view_named(value("view"), beside=(OPEN_TRANSACTIONS,))
    for name in values:
        if view.name not in (takers := OPTIONS[name].takers):
            views = ", ".join(sorted(takers))
            raise InvalidConfigError(
                f"option {name} is for view {views}, not for view '{view.name}'"
            )
    _refuse_contradictions(values)
    mode = value("mode")
    return SourceOptions(
        paths=paths_of(values),
        view=view.name,
        column_names=_column_names(view.name, values, with_error=mode == ReadMode.PERMISSIVE),
        columns_are_named="columns" in values,
        mode=mode,
        verify_checksums=values.get("verifyChecksums", view.checks_checksums),
        include_control=value("includeControl"),
        selection=PartitionSelection(
            topics=value("subscribe"),
            partitions=value("assign"),
            topic_pattern=value("subscribePattern"),
            starting_offsets=value("startingOffsets"),
            ending_offsets=value("endingOffsets"),
            starting_timestamp=value("startingTimestamp"),
            ending_timestamp=value("endingTimestamp"),
            read_committed=value("isolationLevel"),
            fail_on_data_loss=value("failOnDataLoss"),
            bears_damage=mode != ReadMode.FAILFAST,
            file_glob=value("pathGlobFilter"),
            remote_dirs=value("remoteDir"),
            remote_layout=value("remoteLayout"),
            remote_keys=value("remoteKey"),
            all_replicas=value("replicas"),
            applications=value("applicationId"),
        ),
        row_filter=_row_filter(values),
        min_partitions=value("minPartitions"),
        max_bytes_per_partition=value("maxBytesPerPartition"),
        max_offsets_per_trigger=value("maxOffsetsPerTrigger"),
        max_batch_bytes=check_max_batch_bytes(value("maxBatchBytes")),
        remote_cache_bytes=value("remoteCacheBytes"),
        key_filter_dir=value("keyFilterDir"),
    )


def option_values(options: Mapping[str, str]) -> dict[str, Any]:
    """What each option that is given means, under the table's spelling."""
    return {name: _value(OPTIONS[name], text) for name, text in _known(options).items()}


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


def _value(option: Option, text: str) -> Any:
    """What the text of an option means; InvalidConfigError says what the option takes."""
    try:
        return option.value(text)
    except ValueError as error:
        because = f": {error}" if str(error) and not option.words else ""
        raise InvalidConfigError(
            f"option {option.name} takes {option.takes}, not '{text}'{because}"
        ) from None


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
            near = did_you_mean(name, OPTIONS)
            available = near or f"; available: {', '.join(OPTIONS)}"
            raise InvalidConfigError(f"option '{name}' is unknown{available}")
    return given


def paths_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths among the values of options; InvalidConfigError where there are none."""
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
