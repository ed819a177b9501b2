"""What the last audit of the same read of each partition, in the run's `scans.parquet`.

    path, digest       a row a partition; the digest is that of `directory`, empty where that is
    directory, scan    packed texts (`packed_text`): see known_directory and known_scan

The texts are unpacked one by one, as they are asked for. Rows that hold go into the next run's file
as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_scan import UNREADABLE
from kafkalog.auditing.packed_text import pack_text, unpack_text
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import KnownDirectory, known_directory

SCANS_FILE = "scans.parquet"
_ROWS_AT_ONCE = 512

_SCHEMA = pa.schema(
    [
        ("path", pa.large_string()), ("digest", pa.large_string()),
        ("directory", pa.large_binary()), ("scan", pa.large_binary()),
    ]
)  # fmt: skip


class KeptScans(Mapping[str, KnownDirectory]):
    """The rows of a run: what was seen of each partition directory, by its path."""

    def __init__(self, table: pa.Table | None = None) -> None:
        # In one piece: taking rows out of many pieces puts these together each time.
        self._table = (_SCHEMA.empty_table() if table is None else table).combine_chunks()
        paths = self._table.column("path").to_pylist()
        self._places = {path: place for place, path in enumerate(paths)}
        self._directories = self._table.column("directory")
        self._digests = self._table.column("digest")
        self._scans = self._table.column("scan")

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, path: str) -> KnownDirectory:
        """KeyError also of what cannot be understood."""
        place = self._places[path]
        try:
            row = json.loads(unpack_text(self._directories[place].as_py()))
            directory = KnownDirectory.from_row(row)
        except UNREADABLE:
            raise KeyError(path) from None
        if directory.digest != self._digests[place].as_py():
            raise KeyError(path)
        return directory

    def has_seen(self, path: str, digest: str) -> bool:
        """Whether a directory with this digest was seen there."""
        place = self._places.get(path)
        return place is not None and digest != "" and self._digests[place].as_py() == digest

    def scan(self, path: str) -> bytes:
        """What was read of a partition, packed; nothing of one that is not there."""
        place = self._places.get(path)
        return b"" if place is None else self._scans[place].as_py() or b""

    def tables(self, places: list[int]) -> Iterator[pa.Table]:
        """The rows at these places, some at once."""
        ordered = pa.array(sorted(places), pa.int64())
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
        self._rows: list[dict[str, str | bytes]] = []
        self._problem: UnicodeEncodeError | None = None
        self._sink = pa.BufferOutputStream()
        # With checksums: a digit that flips on its way would be another number, and taken for what
        # is on disk. The texts are packed already.
        self._writer = pq.ParquetWriter(
            self._sink, _SCHEMA,
            compression={"path": "zstd", "digest": "none", "directory": "none", "scan": "none"},
            use_dictionary=False, write_page_checksum=True,
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
            self._rows.append(
                {
                    "path": audited.path,
                    "digest": "" if directory is None else directory.digest,
                    "directory": pack_text(text),
                    "scan": audited.scan,
                }
            )
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._write()
        return replace(audited, scan=b"")

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
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_SCHEMA))
        except UnicodeEncodeError as error:  # the run is not kept, and goes on
            self._problem = error
        self._rows = []


def read_scans(run_path: Path) -> KeptScans | None:
    """Those of a run, None if it has none; OSError or pyarrow's own for a file that is no good."""
    path = run_path / SCANS_FILE
    if not path.exists():
        return None
    if not pq.read_schema(path).equals(_SCHEMA):
        return KeptScans()  # of another version
    return KeptScans(pq.read_table(path, page_checksum_verification=True))
