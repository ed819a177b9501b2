"""The facts of logs that nothing is wrong with, as numbers that an audit keeps for later runs.

Most logs of a disk are of this kind: live and whole, written without transactions, never compacted,
no offset missing, nothing beside their files that a broker would not make. They differ in sizes,
offsets and times alone. The file `logs.npz` of a run holds these in columns, each in as few bytes
as its numbers need. It is a zip of numpy's arrays, not compressed, with zip's checksums:

    code, digests              bytes: whose numbers these are; 32 of each directory's digest
    paths, topic_ids           texts one behind the other, with their ends
    log.*, segment.*, slice.*  a column a field of LogNumbers, SegmentNumbers and SliceNumbers
    producers, snapshots       numbers; `counts.*`: how many of each kind belong to each log

A log's facts hold as long as its directory's digest (`known_directory`) is the same, and for the
lines of checkpoints that LogNumbers has. What another version of the code wrote does not count.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kafkalog.errors import CorruptKeptLogsError

LOGS_FILE = "logs.npz"
# In place of what is not there.
NONE = -1
DIGEST_BYTES = 32
_MOST_HEADER_BYTES = 4096

I64s = NDArray[np.int64]


class LogNumbers(NamedTuple):
    """Of a whole log; NONE for a line of a checkpoint, or leader epochs, that are not there."""

    now_ms: int
    expiration_ms: int
    recovery_point: int
    checkpointed_high_watermark: int
    checkpointed_log_start: int
    log_start_offset: int
    log_end_offset: int
    newest_leader_epoch: int
    committed_bytes: int
    oldest_timestamp_ms: int
    newest_timestamp_ms: int
    log_bytes: int
    index_bytes: int
    snapshot_bytes: int
    other_bytes: int


class SegmentNumbers(NamedTuple):
    """Of a segment, as SegmentInfo, SegmentFacts and SegmentStatistics have them. `codec`: its
    place in CODEC_NAMES, NONE without batches; `time_file_bytes`: of the time index with its zeros;
    `offset_index`, `time_index`: places in INDEX_CONDITIONS, NONE where that was not seen.
    """

    base_offset: int
    next_offset: int
    size_in_bytes: int
    mtime_ns: int
    inode: int
    offset_index_bytes: int
    time_index_bytes: int
    has_snapshot: int
    indexed_timestamp_ms: int
    valid_bytes: int
    batches_count: int
    records_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    first_timestamp_ms: int
    largest_timestamp_ms: int
    largest_timestamp_offset: int
    largest_timestamp_position: int
    codec: int
    codec_bytes: int
    index_bytes: int
    time_file_bytes: int
    offset_index: int
    time_index: int


class SliceNumbers(NamedTuple):
    """The fields of a TimeSlice."""

    from_ms: int
    to_ms: int
    closed_bytes: int
    active_bytes: int
    records: int


_TABLES: dict[str, tuple[str, ...]] = {
    "log": LogNumbers._fields,
    "segment": SegmentNumbers._fields,
    "slice": SliceNumbers._fields,
    "producer": ("last_timestamp_ms",),
    "snapshot": ("offset",),
}
# Of each log one row of the first table, and so many as are counted of the others.
_COUNTED = tuple(_TABLES)[1:]


class LogColumns(NamedTuple):
    """Of l logs: logs int64[l, LogNumbers], segments int64[s, SegmentNumbers], slices
    int64[t, SliceNumbers]; producers int64[p, 1]: when each that a broker knows wrote last;
    snapshots int64[n, 1]: offsets of producer snapshots; of each of the last four how many belong
    to each log, int64[l].
    """

    logs: I64s
    segments: I64s
    slices: I64s
    producers: I64s
    snapshots: I64s
    segment_counts: I64s
    slice_counts: I64s
    producer_counts: I64s
    snapshot_counts: I64s


class NamedLogs(NamedTuple):
    """Logs with what they are called: of each the path of its directory, its topic id, empty
    without one, and its digest in hexadecimal.
    """

    paths: Sequence[str]
    topic_ids: Sequence[str]
    digests: Sequence[str]
    columns: LogColumns

    def chosen(self, numbers: Sequence[int]) -> NamedLogs:
        """Some of them."""
        logs = KeptLogs(_packed([self]))
        return logs.named(numbers)


class KeptLogs:
    """The logs of a run, by the path of their directory."""

    def __init__(self, arrays: dict[str, NDArray[np.generic]] | None = None) -> None:
        """`arrays` of a file; CorruptKeptLogsError where they do not fit each other."""
        self._arrays = _packed([]) if arrays is None else arrays
        try:
            self._paths = _texts(self._arrays, "paths")
            self._topic_ids = _texts(self._arrays, "topic_ids")
            self._digests = self._arrays["digests"].tobytes()
            self._ends = {
                name: np.cumsum(self._arrays[f"counts.{name}"], dtype=np.int64) for name in _COUNTED
            }
            self._check()
        except (KeyError, UnicodeDecodeError) as error:
            raise CorruptKeptLogsError(f"not as it was written: {error}") from None
        self._segment_ends: list[int] = [0, *self._ends["segment"].tolist()]
        self._segment_columns = [self._arrays[f"segment.{n}"] for n in SegmentNumbers._fields]
        self._places = {path: place for place, path in enumerate(self._paths)}

    def _check(self) -> None:
        count = len(self._paths)
        sizes = {"log": count}
        is_one = len(self._topic_ids) == count and len(self._digests) == count * DIGEST_BYTES
        for name, ends in self._ends.items():
            counts = self._arrays[f"counts.{name}"]
            least = name == "segment"  # each log has at least one
            is_one &= len(ends) == count and (not count or int(counts.min()) >= least)
            sizes[name] = int(ends[-1]) if count else 0
        for table, fields in _TABLES.items():
            for field in fields:
                column = self._arrays[f"{table}.{field}"]
                is_one &= column.dtype.kind in "iu" and column.shape == (sizes[table],)
        if not is_one:
            raise CorruptKeptLogsError("its columns are not of the same logs")

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._places

    @property
    def paths(self) -> Sequence[str]:
        """Of all directories, in the order of their places."""
        return self._paths

    def place(self, path: str) -> int | None:
        """Which row is that of a directory; None of one that is not here."""
        return self._places.get(path)

    def digest(self, place: int) -> str:
        """Of the directory as it was."""
        return self._digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES].hex()

    def topic_id(self, place: int) -> str | None:
        """As the directory has it; None without one."""
        return self._topic_ids[place] or None

    def segments(self, place: int) -> list[SegmentNumbers]:
        """Those of one log, in the order of their offsets."""
        return [SegmentNumbers._make(row) for row in self.of_log("segment", place)]

    def of_log(self, table: str, place: int) -> list[tuple[int, ...]]:
        """The rows of a table that are of one log."""
        end = int(self._ends[table][place]) if table in self._ends else place + 1
        count = int(self._arrays[f"counts.{table}"][place]) if table in self._ends else 1
        own = slice(end - count, end)
        columns = (self._arrays[f"{table}.{field}"][own].tolist() for field in _TABLES[table])
        return list(zip(*columns, strict=True))

    def segment(self, place: int, number: int, count: int | None = None) -> list[int]:
        """The first `count` of SegmentNumbers, or all, of one of them, counted from the first or,
        below 0, from the end; IndexError.
        """
        ends = self._segment_ends[place : place + 2]
        at = range(*ends)[number]
        return [column.item(at) for column in self._segment_columns[:count]]

    def segments_count(self, place: int) -> int:
        """How many a log has."""
        return self._segment_ends[place + 1] - self._segment_ends[place]

    def counts(self, table: str, places: Sequence[int] | I64s) -> I64s:
        """How many rows of `segment`, `slice`, `producer` or `snapshot` each of some logs has."""
        return self._arrays[f"counts.{table}"][np.asarray(places, np.int64)].astype(np.int64)

    def rows(self, table: str, places: Sequence[int] | I64s) -> I64s:
        """Which rows of a table (of `column`) are of some logs, in the order of these."""
        logs = np.asarray(places, np.int64)
        if table not in self._ends:
            return logs
        counts = self.counts(table, logs)
        firsts = self._ends[table][logs] - np.cumsum(counts)
        rows: I64s = np.repeat(firsts, counts) + np.arange(counts.sum())
        return rows

    def values(self, table: str, field: str, rows: I64s) -> I64s:
        """A field of some rows of a table."""
        return self._arrays[f"{table}.{field}"][rows].astype(np.int64)

    @cached_property
    def newest_mtimes_ns(self) -> list[int]:
        """Of each log that of the `.log` file that was written last."""
        column, ends = self._arrays["segment.mtime_ns"], self._segment_ends
        newest: list[int] = np.maximum.reduceat(column, ends[:-1]).tolist() if len(self) else []
        return newest

    def snapshot_offsets(self, place: int) -> tuple[int, ...]:
        """Of the producer snapshots of one log, ascending."""
        end = int(self._ends["snapshot"][place])
        first = end - int(self._arrays["counts.snapshot"][place])
        return tuple(self._arrays["snapshot.offset"][first:end].tolist())

    def column(self, table: str, field: str) -> NDArray[np.generic]:
        """A column of all logs, as it is kept: of `log`, `segment`, `slice`, `producer`,
        `snapshot`.
        """
        return self._arrays[f"{table}.{field}"]

    def columns(self, places: Sequence[int] | I64s) -> LogColumns:
        """The numbers of some logs."""
        counts = (self.counts(name, places) for name in _COUNTED)
        return LogColumns(*(self._rows(table, places) for table in _TABLES), *counts)

    def named(self, places: Sequence[int]) -> NamedLogs:
        """Some logs with their names."""
        return NamedLogs(
            [self._paths[place] for place in places],
            [self._topic_ids[place] for place in places],
            [self.digest(place) for place in places],
            self.columns(places),
        )

    def _rows(self, table: str, places: Sequence[int] | I64s) -> I64s:
        at, fields = self.rows(table, places), _TABLES[table]
        # Each field lies in one piece: rules go by columns.
        found = np.empty((len(fields), at.size), np.int64)
        for row, field in zip(found, fields, strict=True):
            row[:] = self._arrays[f"{table}.{field}"][at]
        return found.T


def read_kept_logs(run_path: Path, code: str) -> KeptLogs | None:
    """Those of a run, None if it has none of this code (`code_digest`); OSError, and
    CorruptKeptLogsError for a file that is no good.
    """
    path = run_path / LOGS_FILE
    try:
        with zipfile.ZipFile(path) as file:
            if _array(file, "code").tobytes() != code.encode():
                return None
            names = [info.filename.removesuffix(".npy") for info in file.infolist()]
            return KeptLogs({name: _array(file, name) for name in names})
    except FileNotFoundError:
        return None
    # What a damaged zip raises is not said anywhere; of these all were seen.
    except (zipfile.BadZipFile, ValueError, KeyError, NotImplementedError, EOFError) as error:
        raise CorruptKeptLogsError(str(error), path=str(path)) from None
    except CorruptKeptLogsError as error:
        raise CorruptKeptLogsError(error.reason, path=str(path)) from None


def _array(file: zipfile.ZipFile, name: str) -> NDArray[np.generic]:
    """A column, of no more bytes than the file has."""
    info = file.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"{name} is compressed")
    data = file.read(info)
    start = io.BytesIO(data)
    if npy.read_magic(start) != (1, 0):
        raise ValueError(f"{name} is of another version")
    shape, _, dtype = npy.read_array_header_1_0(start, _MOST_HEADER_BYTES)
    if len(shape) != 1 or dtype.kind not in "iu":
        raise ValueError(f"{name} is no column of numbers")
    # No more than what is there: a buffer that is too short is a ValueError.
    return np.frombuffer(data, dtype, shape[0], start.tell())


def write_kept_logs(run_path: Path, code: str, logs: Sequence[NamedLogs]) -> None:
    """All logs of a run. OSError; UnicodeEncodeError: a path is not UTF-8."""
    arrays = {"code": np.frombuffer(code.encode(), np.uint8), **_packed(logs)}
    with zipfile.ZipFile(run_path / LOGS_FILE, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, (1, 0), allow_pickle=False)


def joined_logs(known: KeptLogs, read: Sequence[NamedLogs]) -> KeptLogs:
    """Those that are known, and what was read just now, which counts where both have a log."""
    paths = {path for some in read for path in some.paths}
    others = [place for place, path in enumerate(known.paths) if path not in paths]
    return KeptLogs(_packed([known.named(others), *read]))


def _packed(logs: Sequence[NamedLogs]) -> dict[str, NDArray[np.generic]]:
    digests = b"".join(bytes.fromhex(digest) for some in logs for digest in some.digests)
    arrays: dict[str, NDArray[np.generic]] = {"digests": np.frombuffer(digests, np.uint8)}
    for name, texts in (
        ("paths", [path for some in logs for path in some.paths]),
        ("topic_ids", [topic_id for some in logs for topic_id in some.topic_ids]),
    ):
        data = [text.encode() for text in texts]
        arrays[name] = np.frombuffer(b"".join(data), np.uint8)
        arrays[f"{name}.ends"] = _narrow([np.cumsum([len(text) for text in data], dtype=np.int64)])
    for number, (table, fields) in enumerate(_TABLES.items()):
        for place, field in enumerate(fields):
            arrays[f"{table}.{field}"] = _narrow([some.columns[number][:, place] for some in logs])
    for number, name in enumerate(_COUNTED, len(_TABLES)):
        arrays[f"counts.{name}"] = _narrow([some.columns[number] for some in logs])
    return arrays


def _narrow(parts: Sequence[I64s]) -> NDArray[np.generic]:
    """The numbers one part behind the other, in the fewest bytes."""
    whole = [part for part in parts if part.size]
    if not whole:
        return np.empty(0, np.int8)
    least, most = min(int(p.min()) for p in whole), max(int(p.max()) for p in whole)
    kind = np.promote_types(np.min_scalar_type(least), np.min_scalar_type(most))
    return np.concatenate(whole).astype(kind if kind.kind in "iu" else np.int64)


def _texts(arrays: dict[str, NDArray[np.generic]], name: str) -> list[str]:
    ends = arrays[f"{name}.ends"].tolist()
    data, first, found = arrays[name].tobytes(), 0, []
    for end in ends:
        if not first <= end <= len(data):
            raise CorruptKeptLogsError(f"{name} end in no order")
        found.append(data[first:end].decode())
        first = end
    return found
