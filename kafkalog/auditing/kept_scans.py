"""What the last audit of the same read of each partition, in the run's `scans.parquet`.

    path, directory, scan    a row a partition: see known_directory and known_scan

Rows that hold go into the next run's file as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_scan import UNREADABLE
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import KnownDirectory, known_directory

SCANS_FILE = "scans.parquet"
_ROWS_AT_ONCE = 512

_SCHEMA = pa.schema([(name, pa.large_string()) for name in ("path", "directory", "scan")])


class KeptScans:
    """The rows of a run, by partition directory; empty texts for what is not there."""

    def __init__(self, table: pa.Table | None = None) -> None:
        self._table = _SCHEMA.empty_table() if table is None else table
        paths = self._table.column("path").to_pylist()
        self._places = {path: place for place, path in enumerate(paths)}
        texts = self._table.column("directory").to_pylist()
        seen = zip(paths, map(_directory, texts), strict=True)
        self.directories: Mapping[str, KnownDirectory] = {
            path: directory for path, directory in seen if directory is not None
        }

    def scan(self, path: str) -> str:
        """What was read of a partition."""
        place = self._places.get(path)
        text = "" if place is None else self._table.column("scan")[place].as_py()
        return text or ""

    def rows(self, places: Sequence[int]) -> pa.Table:
        """The rows at these places."""
        return self._table.take(pa.array(places, pa.int64()))

    def place(self, path: str) -> int:
        """Where a partition's row is, which is there."""
        return self._places[path]


class NextScans:
    """The rows of the run that goes on, whose partitions are known by `known`: packed as they come,
    for the texts of some thousand partitions are most of what an audit would hold.
    """

    def __init__(self, known: KeptScans) -> None:
        self._known = known
        self._holding: list[int] = []
        self._rows: list[dict[str, str]] = []
        self._problem: UnicodeEncodeError | None = None
        self._sink = pa.BufferOutputStream()
        # With checksums: a digit that flips on its way would be another number, and taken for what
        # is on disk.
        self._writer = pq.ParquetWriter(
            self._sink, _SCHEMA,
            compression="zstd", use_dictionary=False, write_page_checksum=True,
        )  # fmt: skip

    def add(self, audited: AuditedPartition, inventory: PartitionInventory) -> AuditedPartition:
        """Take the partition's scan; the partition without it."""
        if audited.is_carried:
            self._holding.append(self._known.place(audited.path))
        if not audited.scan:
            return audited
        if not audited.is_carried:
            directory = known_directory(inventory)
            text = "" if directory is None else json.dumps(directory.to_row())
            self._rows.append({"path": audited.path, "directory": text, "scan": audited.scan})
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._pack()
        return replace(audited, scan="")

    def finish(self) -> pa.Buffer:
        """The file `scans.parquet`; to be called once. UnicodeEncodeError: a path is not UTF-8."""
        self._pack()
        if self._problem is not None:
            raise self._problem
        for first in range(0, len(self._holding), _ROWS_AT_ONCE):
            self._writer.write_table(self._known.rows(self._holding[first : first + _ROWS_AT_ONCE]))
        self._writer.close()
        return self._sink.getvalue()

    def _pack(self) -> None:
        if not self._rows:
            return
        try:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_SCHEMA))
        except UnicodeEncodeError as error:  # the run is not kept, and goes on
            self._problem = error
        self._rows = []


def read_scans(run_path: Path) -> KeptScans | None:
    """Those of a run, None if it has none; OSError or pyarrow's own for a file that is no good."""
    path = run_path / SCANS_FILE
    if not path.exists():
        return None
    return KeptScans(pq.read_table(path, schema=_SCHEMA, page_checksum_verification=True))


def _directory(text: str | None) -> KnownDirectory | None:
    """None of what cannot be understood."""
    if not text:
        return None
    try:
        return KnownDirectory.from_row(json.loads(text))
    except UNREADABLE:
        return None
