"""What the last audit of the same read of each partition, in the run's `scans.parquet`.

    path, directory, scan    a row a partition: see known_directory and known_scan

Rows that hold go into the next run's file as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafkalog.auditing.audited_partition import AuditedPartition
from kafkalog.auditing.known_scan import UNREADABLE
from kafkalog.log.inventory import PartitionInventory
from kafkalog.log.known_directory import KnownDirectory, known_directory

SCANS_FILE = "scans.parquet"

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

    def next_table(
        self,
        partitions: Sequence[AuditedPartition],
        inventories: Iterable[PartitionInventory],
    ) -> pa.Table:
        """The rows of the run that these are of, whose partitions were known by these scans."""
        holding: list[int] = []
        rows: list[dict[str, str]] = []
        for audited, inventory in zip(partitions, inventories, strict=True):
            if audited.is_carried:
                holding.append(self._places[audited.path])
            elif audited.scan:
                directory = known_directory(inventory)
                text = "" if directory is None else json.dumps(directory.to_row())
                rows.append({"path": audited.path, "directory": text, "scan": audited.scan})
        old = self._table.take(pa.array(holding, pa.int64()))
        return pa.concat_tables([old, pa.Table.from_pylist(rows, schema=_SCHEMA)])


def read_scans(run_path: Path) -> KeptScans | None:
    """Those of a run, None if it has none; OSError or pyarrow's own for a file that is no good."""
    path = run_path / SCANS_FILE
    if not path.exists():
        return None
    return KeptScans(pq.read_table(path, schema=_SCHEMA, page_checksum_verification=True))


def write_scans(run_path: Path, table: pa.Table) -> None:
    """OSError if they cannot be written. With checksums: a digit that flips on its way would be
    another number, and taken for what is on disk.
    """
    pq.write_table(
        table, run_path / SCANS_FILE,
        compression="zstd", use_dictionary=False, write_page_checksum=True,
    )  # fmt: skip


def _directory(text: str | None) -> KnownDirectory | None:
    """None of what cannot be understood."""
    if not text:
        return None
    try:
        return KnownDirectory.from_row(json.loads(text))
    except UNREADABLE:
        return None
