"""What the last audit of the same read of each partition, in the run's `scans.parquet`.

    path, digest       a row a partition; the digest is that of its directory, empty where nothing
                       of that is kept
    scan               a packed text (`packed_text`): see known_scan
    directory          another one, of what known_directory keeps; empty of a sound log
    topic_id, snapshots, log, segments, slices, producers
                       of a sound log in its place (`sound_facts`), of others empty

The texts are unpacked one by one, as they are asked for. Rows that hold go into the next run's file
as they are. Which code wrote the numbers the schema's metadata says: another one's do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_scan import UNREADABLE, code_digest
from kafkalog.auditing.number_lists import NumberLists
from kafkalog.auditing.packed_text import pack_text, unpack_text
from kafkalog.auditing.row_tables import numbers_array, read_table_of, table_of
from kafkalog.auditing.sound_columns import SoundColumns
from kafkalog.auditing.sound_facts import (
    SEGMENT_NUMBERS,
    SLICE_NUMBERS,
    LogNumbers,
    SoundFacts,
    segment_infos,
)
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import KnownDirectory, known_directory

SCANS_FILE = "scans.parquet"
_ROWS_AT_ONCE = 512

_NUMBERS = ("snapshots", "log", "segments", "slices", "producers")
_SCHEMA = pa.schema(
    [
        ("path", pa.large_string()), ("digest", pa.large_string()),
        ("directory", pa.large_binary()), ("scan", pa.large_binary()),
        ("topic_id", pa.large_string()),
        *((name, pa.large_list(pa.int64())) for name in _NUMBERS),
    ]
)  # fmt: skip
_COMPRESSION = {
    "path": "zstd", "digest": "none", "directory": "none", "scan": "none", "topic_id": "zstd",
    **{f"{name}.list.element": "zstd" for name in _NUMBERS},
}  # fmt: skip
_CODE = b"code"
_LOG_END = LogNumbers._fields.index("log_end_offset")
_NOT_SOUND = SoundFacts((), (), (), ())


class KeptScans(Mapping[str, KnownDirectory]):
    """The rows of a run: what was seen of each partition directory, by its path."""

    def __init__(self, table: pa.Table | None = None) -> None:
        # In one piece: taking rows out of many pieces puts these together each time.
        self._table = (table_of((), _SCHEMA) if table is None else table).combine_chunks()
        column = self._table.column
        self._places = {path: n for n, path in enumerate(column("path").to_pylist())}
        self._digests: list[str] = column("digest").to_pylist()
        self._directories, self._scans = column("directory"), column("scan")
        is_own = (self._table.schema.metadata or {}).get(_CODE) == code_digest().encode()
        self._logs = NumberLists(column("log")) if is_own else None
        self._topic_ids: list[str | None] = column("topic_id").to_pylist()
        self._snapshots = NumberLists(column("snapshots"))
        self._segments = NumberLists(column("segments"))
        self._slices, self._producers = (NumberLists(column(n)) for n in ("slices", "producers"))
        self._is_sound = self._sound_rows()

    def _sound_rows(self) -> list[bool]:
        """Which rows are of sound logs, with numbers that can be theirs."""
        if self._logs is None:
            return [False] * len(self._places)
        segments, slices = self._segments.counts, self._slices.counts
        is_whole = (segments > 0) & (segments % SEGMENT_NUMBERS == 0)
        is_log = self._logs.counts == len(LogNumbers._fields)
        found: list[bool] = (is_log & is_whole & (slices % SLICE_NUMBERS == 0)).tolist()
        return found

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, path: str) -> KnownDirectory:
        """KeyError also of what cannot be understood."""
        place = self._places[path]
        if self._is_sound[place] and self._logs is not None:
            return KnownDirectory(
                digest=self._digests[place],
                topic_id=self._topic_ids[place],
                segments=segment_infos(path, self._segments.rows(place, SEGMENT_NUMBERS)),
                log_end_offset=self._logs[place][_LOG_END],
                snapshot_offsets=tuple(self._snapshots[place]),
            )
        try:
            row = json.loads(unpack_text(self._directories[place].as_py()))
            directory = KnownDirectory.from_row(row)
        except UNREADABLE:
            raise KeyError(path) from None
        if directory.digest != self._digests[place]:
            raise KeyError(path)
        return directory

    def has_seen(self, path: str, digest: str) -> bool:
        """Whether a directory with this digest was seen there."""
        place = self._places.get(path)
        return place is not None and digest != "" and self._digests[place] == digest

    def sound_place(self, path: str) -> int | None:
        """Where the row of a log is that nothing was wrong with, None of any other."""
        place = self._places.get(path)
        return place if place is not None and self._is_sound[place] else None

    def sound_columns(self, places: Sequence[int]) -> SoundColumns:
        """The numbers of the sound logs at these places."""
        assert self._logs is not None, "there are sound ones"  # noqa: S101
        at = np.array(places, np.int64)
        segments, counts = self._segments.some(at)
        slices, slice_counts = self._slices.some(at)
        return SoundColumns(
            self._logs.some(at)[0].reshape(-1, len(LogNumbers._fields)),
            segments.reshape(-1, SEGMENT_NUMBERS),
            counts // SEGMENT_NUMBERS,
            slices.reshape(-1, SLICE_NUMBERS),
            slice_counts // SLICE_NUMBERS,
        )

    def producers(self, place: int) -> list[int]:
        """When each producer of the log at a place wrote last that its broker knows."""
        return self._producers[place]

    def scan(self, path: str) -> bytes:
        """What was read of a partition, packed; nothing of one that is not there."""
        place = self._places.get(path)
        return b"" if place is None else self._scans[place].as_py() or b""

    def tables(self, places: list[int]) -> Iterator[pa.Table]:
        """The rows at these places, some at once."""
        ordered = numbers_array(sorted(places))
        for first in range(0, len(ordered), _ROWS_AT_ONCE):
            yield self._table.take(ordered[first : first + _ROWS_AT_ONCE])

    def place(self, path: str) -> int:
        """Where a partition's row is, which is there."""
        return self._places[path]


class NextScans:
    """The rows of the run that goes on, whose partitions are known by `known`: written as they
    come, so that they are not held twice.
    """

    def __init__(self, known: KeptScans) -> None:
        self._known = known
        self._holding: list[int] = []
        self._rows: list[dict[str, Any]] = []
        self._problem: UnicodeEncodeError | None = None
        self._sink = pa.BufferOutputStream()
        # With checksums: a digit that flips on its way would be another number, and taken for what
        # is on disk. The texts are packed already.
        self._writer = pq.ParquetWriter(
            self._sink, _SCHEMA.with_metadata({_CODE: code_digest()}),
            compression=_COMPRESSION,
            use_dictionary=False, write_page_checksum=True,
        )  # fmt: skip

    def add(self, audited: AuditedPartition, inventory: PartitionInventory) -> AuditedPartition:
        """Take the partition's scan; the partition without it."""
        if audited.is_carried:
            self._holding.append(self._known.place(audited.path))
        if not audited.scan:
            return audited
        if not audited.is_carried:
            self._rows.append(_row(audited, inventory))
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._write()
        return replace(audited, scan=b"", sound=None)

    def finish(self) -> pa.Buffer:
        """The file `scans.parquet`; to be called once. UnicodeEncodeError: a path is not UTF-8."""
        self._write()
        if self._problem is not None:
            raise self._problem
        for table in self._known.tables(self._holding):
            self._writer.write_table(table)
        self._writer.close()
        return self._sink.getvalue()

    def _write(self) -> None:
        if not self._rows:
            return
        try:
            self._writer.write_table(table_of(self._rows, _SCHEMA))
        except UnicodeEncodeError as error:  # the run is not kept, and goes on
            self._problem = error
        self._rows = []


def _row(audited: AuditedPartition, inventory: PartitionInventory) -> dict[str, Any]:
    directory, sound = known_directory(inventory), audited.sound
    if directory is None or sound is None:
        sound = _NOT_SOUND
    is_text = directory is not None and not sound.log
    return {
        "path": audited.path,
        "digest": "" if directory is None else directory.digest,
        "directory": pack_text(json.dumps(directory.to_row()) if directory and is_text else ""),
        "scan": audited.scan,
        "topic_id": inventory.topic_id,
        "snapshots": inventory.snapshot_offsets if sound.log else (),
        "log": sound.log,
        "segments": sound.segments,
        "slices": sound.slices,
        "producers": sound.producers,
    }


def read_scans(run_path: Path) -> KeptScans | None:
    """Those of a run, None if it has none; OSError or pyarrow's own for a file that is no good."""
    path = run_path / SCANS_FILE
    if not path.exists():
        return None
    kept = KeptScans(read_table_of(path, _SCHEMA))  # none of another version
    # What reading took beside the table, half as much again and more, is given back at once.
    pa.default_memory_pool().release_unused()
    return kept
