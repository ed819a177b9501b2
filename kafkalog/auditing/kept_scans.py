"""What the last audit of the same read of each partition, in two files of its run.

    logs.npz         of logs that nothing is wrong with: numbers (`log.kept_logs`)
    scans.parquet    path, digest; digest is that of the directory, empty where nothing is kept of
                     that; scan: a packed text (`packed_text`), see known_scan; directory: another
                     one, of what known_directory keeps, empty where logs.npz has it

The texts are unpacked one by one, as they are asked for. What holds goes into the next run's files
as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_scan import UNREADABLE
from kafkalog.auditing.packed_text import pack_text, unpack_text
from kafkalog.auditing.row_tables import numbers_array, read_table_of, table_of
from kafkalog.auditing.sound_facts import SoundFacts, sound_directory
from kafkalog.auditing.sound_partitions import SoundPartition
from kafkalog.code_digest import code_digest
from kafkalog.log.group_files import Moment
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.kept_logs import LOGS_FILE, KeptLogs, joined_logs, read_kept_logs, write_kept_logs
from kafkalog.log.known_directory import KnownDirectory, known_directory
from kafkalog.log.log_numbers import (
    I64s,
    LogColumns,
    LogNumbers,
    NamedLogs,
    SegmentNumbers,
    SliceNumbers,
)
from kafkalog.log.small_logs import SmallLogs

SCANS_FILE = "scans.parquet"
_ROWS_AT_ONCE = 512

_SCHEMA = pa.schema(
    [
        ("path", pa.large_string()), ("digest", pa.large_string()),
        ("directory", pa.large_binary()), ("scan", pa.large_binary()),
    ]
)  # fmt: skip
_COMPRESSION = {"path": "zstd", "digest": "none", "directory": "none", "scan": "none"}


class KeptScans(Mapping[str, KnownDirectory]):
    """What a run kept: what was seen of each partition directory, by its path; and of small logs
    that it did not know what this run has read of many at once (`small_logs`). `read_now`: these;
    `run_path`: where the files are, None once they are not all.
    """

    def __init__(
        self,
        logs: KeptLogs | None = None,
        table: pa.Table | None = None,
        run_path: Path | None = None,
    ) -> None:
        self._logs = KeptLogs() if logs is None else logs
        self._small: SmallLogs | None = None
        self.read_now: frozenset[str] = frozenset()
        self.run_path = run_path
        # In one piece: taking rows out of many pieces puts these together each time.
        self._table = (table_of((), _SCHEMA) if table is None else table).combine_chunks()
        column = self._table.column
        self._places = {path: n for n, path in enumerate(column("path").to_pylist())}
        self._digests: list[str] = column("digest").to_pylist()
        self._directories, self._scans = column("directory"), column("scan")

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    @property
    def logs(self) -> KeptLogs:
        """Of the logs that nothing is wrong with."""
        if self._small is not None and (found := self._small.found):
            self._logs = joined_logs(self._logs, found)
            self.read_now |= {path for some in found for path in some.paths}
            found.clear()
            self.run_path = None
        return self._logs

    def small_logs(self, moment: Moment) -> SmallLogs:
        """What reads those that are not known; what it has found by then is in `logs`."""
        self._small = SmallLogs(self._knows, moment)
        return self._small

    def _knows(self, path: str, digest: str) -> bool:
        return self._has_seen(self._logs, path, digest)

    @property
    def _paths(self) -> dict[str, None]:
        return dict.fromkeys((*self.logs.paths, *self._places))

    def __getitem__(self, path: str) -> KnownDirectory:
        """KeyError also of what cannot be understood."""
        place = self.logs.place(path)
        if place is not None:
            return sound_directory(self.logs, place, path)
        text = self._places[path]
        try:
            row = json.loads(unpack_text(self._directories[text].as_py()))
            directory = KnownDirectory.from_row(row)
        except UNREADABLE:
            raise KeyError(path) from None
        if directory.digest != self._digests[text]:
            raise KeyError(path)
        return directory

    def has_seen(self, path: str, digest: str) -> bool:
        """Whether a directory with this digest was seen there."""
        return self._has_seen(self.logs, path, digest)

    def _has_seen(self, logs: KeptLogs, path: str, digest: str) -> bool:
        if (place := logs.place(path)) is not None:
            return digest != "" and logs.digest(place) == digest
        text = self._places.get(path)
        return text is not None and digest != "" and self._digests[text] == digest

    def scan(self, path: str) -> bytes:
        """What was read of a partition, packed; nothing of one that is not there."""
        place = self._places.get(path)
        return b"" if place is None else self._scans[place].as_py() or b""

    def tables(self, paths: Sequence[str]) -> Iterator[pa.Table]:
        """The texts of these partitions, some at once."""
        places = (place for path in paths if (place := self._places.get(path)) is not None)
        ordered = numbers_array(sorted(places))
        for first in range(0, len(ordered), _ROWS_AT_ONCE):
            yield self._table.take(ordered[first : first + _ROWS_AT_ONCE])


class NextScans:
    """What the run that goes on keeps, whose partitions are known by `known`: written as it comes,
    so that it is not held twice.
    """

    def __init__(self, known: KeptScans) -> None:
        self._known = known
        self._holding: list[str] = []
        self._has_new = False
        self._rows: list[dict[str, Any]] = []
        self._sound: list[tuple[AuditedPartition, PartitionInventory]] = []
        self._logs: list[NamedLogs] = []
        self._problem: UnicodeEncodeError | None = None
        self._sink = pa.BufferOutputStream()
        # With checksums: a digit that flips on its way would be another number, and taken for what
        # is on disk. The texts are packed already.
        self._writer = pq.ParquetWriter(
            self._sink, _SCHEMA, compression=_COMPRESSION, use_dictionary=False,
            write_page_checksum=True,
        )  # fmt: skip

    def add(self, audited: AuditedPartition, inventory: PartitionInventory) -> AuditedPartition:
        """Take the partition's scan; the partition without it."""
        if audited.is_carried or isinstance(audited, SoundPartition):
            self._holding.append(audited.path)
        if not audited.scan:
            return audited
        if not audited.is_carried:
            self._rows.append(_row(audited, inventory))
            if audited.sound is not None:
                self._sound.append((audited, inventory))
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._pack()
        return replace(audited, scan=b"", sound=None)

    def write(self, run_path: Path) -> None:
        """The files; to be called once. OSError; UnicodeEncodeError: a path is not UTF-8."""
        self._pack()
        if self._problem is not None:
            raise self._problem
        if (run := self._known.run_path) is not None and self._keeps_all:
            self._writer.close()
            for name in (SCANS_FILE, LOGS_FILE):
                copyfile(run / name, run_path / name)
            return
        for table in self._known.tables(self._holding):
            self._writer.write_table(table)
        self._writer.close()
        (run_path / SCANS_FILE).write_bytes(self._sink.getvalue())
        logs = self._known.logs
        places = [place for path in self._holding if (place := logs.place(path)) is not None]
        write_kept_logs(run_path, code_digest(), [*self._logs, logs.named(places)])

    @property
    def _keeps_all(self) -> bool:
        """Whether it is what the earlier run kept, and nothing else."""
        return not self._has_new and len(self._holding) == len(self._known)

    def _pack(self) -> None:
        if not self._rows:
            return
        self._has_new = True
        try:
            self._writer.write_table(table_of(self._rows, _SCHEMA))
        except UnicodeEncodeError as error:  # the run is not kept, and goes on
            self._problem = error
        if self._sound:
            self._logs.append(_named_logs(self._sound))
        self._rows, self._sound = [], []


def _row(audited: AuditedPartition, inventory: PartitionInventory) -> dict[str, Any]:
    directory = known_directory(inventory)
    is_text = directory is not None and audited.sound is None
    return {
        "path": audited.path,
        "digest": "" if directory is None else directory.digest,
        "directory": pack_text(json.dumps(directory.to_row()) if directory and is_text else ""),
        "scan": audited.scan,
    }


def _named_logs(sound: Sequence[tuple[AuditedPartition, PartitionInventory]]) -> NamedLogs:
    facts = [audited.sound for audited, _ in sound if audited.sound is not None]
    inventories = [inventory for _, inventory in sound]
    return NamedLogs(
        [inventory.path for inventory in inventories],
        [inventory.topic_id or "" for inventory in inventories],
        [inventory.digest for inventory in inventories],
        _columns(facts, [inventory.snapshot_offsets for inventory in inventories]),
    )


def _columns(facts: Sequence[SoundFacts], snapshots: Sequence[Sequence[int]]) -> LogColumns:
    segments, segment_counts = _table([f.segments for f in facts], len(SegmentNumbers._fields))
    slices, slice_counts = _table([f.slices for f in facts], len(SliceNumbers._fields))
    producers, producer_counts = _table([f.producers for f in facts], 1)
    offsets, snapshot_counts = _table(snapshots, 1)
    return LogColumns(
        _table([f.log for f in facts], len(LogNumbers._fields))[0],
        segments, slices, producers, offsets,
        segment_counts, slice_counts, producer_counts, snapshot_counts,
    )  # fmt: skip


def _table(rows: Sequence[Sequence[int]], width: int) -> tuple[I64s, I64s]:
    """Numbers of each log in rows of so many, and how many rows that are."""
    numbers = np.array([number for row in rows for number in row], np.int64)
    counts = np.array([len(row) // width for row in rows], np.int64)
    return numbers.reshape(-1, width), counts


def read_scans(run_path: Path) -> KeptScans | None:
    """Those of a run, None if it has none; OSError, CorruptKeptLogsError or pyarrow's own for a
    file that is no good.
    """
    path = run_path / SCANS_FILE
    if not path.exists():
        return None
    logs = read_kept_logs(run_path, code_digest())
    # What another version wrote is not taken over as it is.
    own_path = None if logs is None else run_path
    kept = KeptScans(logs, read_table_of(path, _SCHEMA), own_path)
    # What reading took beside the table, half as much again and more, is given back at once.
    pa.default_memory_pool().release_unused()
    return kept
