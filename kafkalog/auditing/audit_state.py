"""What one audit saw, as far as a later one compares itself with it (`audit --since`): directories
with their segments as columns, the settings of topics, findings.

Kept in the run's directory, as Parquet:

    partitions.parquet  a row a partition directory; of its segments the offsets, sizes and times
                        from when on retention takes each, as lists
    settings.parquet    topic, key, value: what is not Kafka's default
    findings.parquet    a row a finding; sinceMs: the first audit of an unbroken row that had it

The document that `audit --json` wrote has the same, of settings the most important ones alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audit_run import AuditRun
from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.row_tables import (
    column_of_lists,
    lists_array,
    read_table_of,
    table_of,
    table_of_columns,
)
from kafkalog.auditing.sound_partitions import due_columns
from kafkalog.errors import InvalidConfigError
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.retention_forecast import NEVER

PARTITIONS_FILE = "partitions.parquet"
SETTINGS_FILE = "settings.parquet"
FINDINGS_FILE = "findings.parquet"

Row = Mapping[str, Any]
# Of each topic the settings that are not Kafka's default, by their dotted keys.
Settings = Mapping[str, Mapping[str, str]]

_INT64, _TEXT, _NUMBERS = pa.int64(), pa.string(), pa.large_list(pa.int64())
_DIRECTORIES = pa.schema(
    [
        ("logDir", _TEXT), ("topic", _TEXT), ("partition", _INT64), ("kind", _TEXT),
        ("path", _TEXT), ("bytes", _INT64), ("logStartOffset", _INT64), ("logEndOffset", _INT64),
    ]
)  # fmt: skip
_LISTS = ("baseOffsets", "segmentBytes", "dueMs")
_PARTITIONS = pa.schema([*_DIRECTORIES, *(pa.field(name, _NUMBERS) for name in _LISTS)])
_SETTINGS = pa.schema([(name, _TEXT) for name in ("topic", "key", "value")])
_FINDINGS = pa.schema(
    [
        ("id", _TEXT), ("severity", _TEXT), ("logDir", _TEXT), ("topic", _TEXT),
        ("partition", _INT64), ("segmentBaseOffset", _INT64), ("path", _TEXT), ("text", _TEXT),
        ("sinceMs", _INT64),
    ]
)  # fmt: skip
# Columns of _FINDINGS in which NEVER stands for nothing.
_PLACES = ("partition", "segmentBaseOffset")
_DEFAULTS = LogConfig().to_properties()


class Directory(NamedTuple):
    """A partition directory, in the order of _DIRECTORIES; `bytes` are all of it."""

    log_dir: str
    topic: str
    partition: int
    kind: str
    path: str
    bytes: int
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class SegmentColumns:
    """The live segments of all directories one after the other, `counts` of each; int64 all.
    `due_ms`: from when on retention takes each if nothing is appended, NEVER for never.
    """

    counts: np.ndarray
    base_offsets: np.ndarray
    sizes: np.ndarray
    due_ms: np.ndarray

    @property
    def is_sound(self) -> bool:
        """Whether the columns are of as many segments as are counted."""
        total = int(self.counts.sum())
        columns = (self.base_offsets, self.sizes, self.due_ms)
        return bool((self.counts >= 0).all()) and all(len(each) == total for each in columns)


@dataclass(frozen=True, slots=True)
class AuditState:
    """`name`: of the run, or the path of its document; `known_keys`: the settings it tells of, None
    for all; `findings`: rows as in the document, with `sinceMs` where it is known.
    """

    name: str
    now_ms: int
    directories: Sequence[Directory]
    segments: SegmentColumns
    settings: Settings
    findings: Sequence[Row]
    known_keys: frozenset[str] | None = None


def state_of(run: AuditRun, name: str, findings: Sequence[Row]) -> AuditState:
    """What this audit saw; `findings`: those of its document."""
    return AuditState(
        name,
        run.now_ms,
        [_directory(partition) for partition in run.partitions],
        _segments(run.partitions),
        _settings(run.partitions),
        findings,
    )


def _directory(partition: AuditedPartition) -> Directory:
    return Directory(
        partition.log_dir,
        partition.topic,
        partition.partition,
        str(partition.kind),
        partition.path,
        partition.size_in_bytes,
        partition.log_start_offset,
        partition.log_end_offset,
    )


def _segments(partitions: Sequence[AuditedPartition]) -> SegmentColumns:
    columns = [*due_columns(partitions)]
    none = np.empty(0, np.int64)
    return SegmentColumns(
        numbers(len(bases) for bases, _, _ in columns),
        *(np.concatenate([none, *each]) for each in zip(*columns, strict=True))
        if columns
        else (none, none, none),
    )


def numbers(values: Iterable[int]) -> np.ndarray:
    """An int64 array."""
    return np.fromiter(values, np.int64)


def _settings(partitions: Iterable[AuditedPartition]) -> Settings:
    """Of each topic those of its first directory, as the document has them."""
    first: dict[str, LogConfig] = {}
    for partition in partitions:
        first.setdefault(partition.topic, partition.config)
    return {topic: _not_default(config) for topic, config in first.items()}


def _not_default(config: LogConfig) -> dict[str, str]:
    # What has no source has Kafka's default. The limit in force is the one that counts.
    given = {key.removeprefix("internal."): value for key, value in config.given().items()}
    return {key: value for key, value in given.items() if _DEFAULTS.get(key) != value}


def default_of(key: str) -> str:
    """Kafka's own value of a setting, empty where it has none."""
    return _DEFAULTS.get(key, "")


def write_state(path: Path, state: AuditState) -> None:
    """Into the directory of a run; OSError, or UnicodeEncodeError for a path that is not UTF-8."""
    segments = state.segments
    own = ([row[place] for row in state.directories] for place in range(len(_DIRECTORIES)))
    table = table_of_columns(own, _DIRECTORIES)
    columns = (segments.base_offsets, segments.sizes, segments.due_ms)
    for name, column in zip(_LISTS, columns, strict=True):
        table = table.append_column(name, lists_array(segments.counts, column))
    _write(path / PARTITIONS_FILE, table)
    settings = [
        {"topic": topic, "key": key, "value": value}
        for topic, own in sorted(state.settings.items())
        for key, value in own.items()
    ]
    _write(path / SETTINGS_FILE, table_of(settings, _SETTINGS))
    findings = (_kept(name, state.findings) for name in _FINDINGS.names)
    _write(path / FINDINGS_FILE, table_of_columns(findings, _FINDINGS))


def _write(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _kept(name: str, findings: Sequence[Row]) -> list[Any]:
    """A column of _FINDINGS."""
    column = [row[name] for row in findings]
    return [NEVER if value is None else value for value in column] if name in _PLACES else column


def read_state(path: Path, name: str, now_ms: int) -> AuditState:
    """Of the run in this directory. InvalidConfigError where it does not have it, or not whole."""
    table = _table(path / PARTITIONS_FILE, _PARTITIONS)
    lists = [column_of_lists(table.column(each)) for each in _LISTS]
    segments = SegmentColumns(lists[0][0], *(numbers for _, numbers in lists))
    if not segments.is_sound:
        raise InvalidConfigError("lists of segments differ in length", path=str(path))
    plain = [table.column(each).to_pylist() for each in _DIRECTORIES.names]
    directories = list(map(Directory, *plain))
    settings: dict[str, dict[str, str]] = {directory.topic: {} for directory in directories}
    for row in _table(path / SETTINGS_FILE, _SETTINGS).to_pylist():
        settings.setdefault(row["topic"], {})[row["key"]] = row["value"]
    return AuditState(name, now_ms, directories, segments, settings, read_findings(path))


def read_findings(path: Path) -> Sequence[Row]:
    """Of the run in this directory, as the document has them; errors as above."""
    rows: list[dict[str, Any]] = _table(path / FINDINGS_FILE, _FINDINGS).to_pylist()
    for row in rows:
        row |= {name: None for name in _PLACES if row[name] == NEVER}
    return rows


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = read_table_of(path, schema)
    except (OSError, pa.ArrowException) as error:
        raise InvalidConfigError(f"cannot be read: {error}", path=str(path)) from None
    if table is None:
        raise InvalidConfigError("is of another version of kafkalog", path=str(path))
    return table


def narrowed(state: AuditState, is_meant: Sequence[bool]) -> AuditState:
    """Only the directories that are meant, and what is said of their topics."""
    mask = np.array(is_meant, bool)
    of_segments = np.repeat(mask, state.segments.counts)
    directories = [d for d, meant in zip(state.directories, is_meant, strict=True) if meant]
    topics = {directory.topic for directory in directories}
    places = {(d.log_dir, d.topic, d.partition) for d in directories}
    log_dirs = {directory.log_dir for directory in directories} | {""}
    columns = {f.name: getattr(state.segments, f.name) for f in fields(state.segments)}
    counts = columns.pop("counts")[mask]
    return AuditState(
        state.name,
        state.now_ms,
        directories,
        SegmentColumns(counts, **{name: column[of_segments] for name, column in columns.items()}),
        {topic: own for topic, own in state.settings.items() if topic in topics},
        [row for row in state.findings if _is_about(row, places, topics, log_dirs)],
        state.known_keys,
    )


def _is_about(
    row: Row, places: set[tuple[str, str, int]], topics: set[str], log_dirs: set[str]
) -> bool:
    if row["topic"] is None:
        return row["logDir"] in log_dirs
    if row["partition"] is None:
        return row["topic"] in topics
    return (row["logDir"], row["topic"], row["partition"]) in places
