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
lines of checkpoints that `log_numbers.LogNumbers` has. What other code wrote does not count.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kafkalog.errors import CorruptKeptLogsError
from kafkalog.log.log_numbers import (
    COUNTED,
    DIGEST_BYTES,
    TABLES,
    I64s,
    LogColumns,
    NamedLogs,
    SegmentNumbers,
    packed_logs,
)

LOGS_FILE = "logs.npz"
_MOST_HEADER_BYTES = 4096


class KeptLogs:
    """The logs of a run, by the path of their directory."""

    def __init__(self, arrays: dict[str, NDArray[np.generic]] | None = None) -> None:
        """`arrays` of a file; CorruptKeptLogsError where they do not fit each other."""
        self._arrays = packed_logs([]) if arrays is None else arrays
        try:
            self._paths = _texts(self._arrays, "paths")
            self._topic_ids = _texts(self._arrays, "topic_ids")
            self._digests = self._arrays["digests"].tobytes()
            self._ends = {
                name: np.cumsum(self._arrays[f"counts.{name}"], dtype=np.int64) for name in COUNTED
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
        for table, fields in TABLES.items():
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
        return self._hex_digests[place]

    @cached_property
    def _hex_digests(self) -> list[str]:
        digits, size = self._digests.hex(), 2 * DIGEST_BYTES
        return [digits[first : first + size] for first in range(0, len(digits), size)]

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
        columns = (self._arrays[f"{table}.{field}"][own].tolist() for field in TABLES[table])
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

    @cached_property
    def first_offsets(self) -> list[int]:
        """Of each log the base of its first segment."""
        bases: list[int] = self._arrays["segment.base_offset"][self._segment_ends[:-1]].tolist()
        return bases

    @cached_property
    def log_end_offsets(self) -> list[int]:
        """Of each log."""
        ends: list[int] = self._arrays["log.log_end_offset"].tolist()
        return ends

    @cached_property
    def _snapshot_ends(self) -> list[int]:
        return [0, *self._ends["snapshot"].tolist()]

    def snapshot_offsets(self, place: int) -> tuple[int, ...]:
        """Of the producer snapshots of one log, ascending."""
        first, end = self._snapshot_ends[place : place + 2]
        return tuple(self._arrays["snapshot.offset"][first:end].tolist()) if first < end else ()

    def column(self, table: str, field: str) -> NDArray[np.generic]:
        """A column of all logs, as it is kept: of `log`, `segment`, `slice`, `producer`,
        `snapshot`.
        """
        return self._arrays[f"{table}.{field}"]

    def columns(self, places: Sequence[int] | I64s) -> LogColumns:
        """The numbers of some logs."""
        counts = (self.counts(name, places) for name in COUNTED)
        return LogColumns(*(self._rows(table, places) for table in TABLES), *counts)

    def named(self, places: Sequence[int]) -> NamedLogs:
        """Some logs with their names."""
        return NamedLogs(
            [self._paths[place] for place in places],
            [self._topic_ids[place] for place in places],
            [self.digest(place) for place in places],
            self.columns(places),
        )

    def _rows(self, table: str, places: Sequence[int] | I64s) -> I64s:
        at, fields = self.rows(table, places), TABLES[table]
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
    arrays = {"code": np.frombuffer(code.encode(), np.uint8), **packed_logs(logs)}
    with zipfile.ZipFile(run_path / LOGS_FILE, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, (1, 0), allow_pickle=False)


def chosen_logs(logs: NamedLogs, numbers: Sequence[int]) -> NamedLogs:
    """Some of them."""
    return KeptLogs(packed_logs([logs])).named(numbers)


def joined_logs(known: KeptLogs, read: Sequence[NamedLogs]) -> KeptLogs:
    """Those that are known, and what was read just now, which counts where both have a log."""
    paths = {path for some in read for path in some.paths}
    others = [place for place, path in enumerate(known.paths) if path not in paths]
    return KeptLogs(packed_logs([known.named(others), *read]))


def _texts(arrays: dict[str, NDArray[np.generic]], name: str) -> list[str]:
    ends = arrays[f"{name}.ends"].tolist()
    data, first, found = arrays[name].tobytes(), 0, []
    for end in ends:
        if not first <= end <= len(data):
            raise CorruptKeptLogsError(f"{name} end in no order")
        found.append(data[first:end].decode())
        first = end
    return found
