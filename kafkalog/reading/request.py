"""What is wanted of a read, and what it left out. Light to import: no kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from kafkalog.columns.column import Column, arrow_schema
from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.reading.conditions import EVERYTHING, RowFilter

_MOST_PATHS = 3


class ReadMode(StrEnum):
    """What happens to a batch that cannot be read; Spark's words."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


def read_mode(text: str) -> ReadMode:
    """A mode in any case; InvalidConfigError for one that is not there."""
    if text.upper() not in ReadMode.__members__:
        raise InvalidConfigError(f"mode '{text}' is not one of {', '.join(ReadMode)}")
    return ReadMode(text.upper())


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What is wanted of each split: the columns, under the names and nullability of `schema`, and
    how to treat damage. A batch of more than `max_batch_bytes`, stored or decompressed, is not
    read. `remote_cache_bytes`: what the process may keep of remote storage; None: what its
    environment says. `key_filter_dir`: where filters of keys are kept, None for nowhere."""

    columns: tuple[Column, ...]
    schema: pa.Schema
    mode: ReadMode = ReadMode.FAILFAST
    verify_checksums: bool = True
    include_control: bool = False
    row_filter: RowFilter = EVERYTHING
    max_batch_bytes: int = MAX_BATCH_BYTES
    remote_cache_bytes: int | None = None
    key_filter_dir: str | None = None

    @classmethod
    def of(
        cls,
        columns: tuple[Column, ...],
        *,
        mode: ReadMode = ReadMode.FAILFAST,
        verify_checksums: bool = True,
        include_control: bool = False,
        row_filter: RowFilter = EVERYTHING,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        remote_cache_bytes: int | None = None,
        key_filter_dir: str | None = None,
    ) -> ReadRequest:
        """A request under the table's own schema."""
        schema = arrow_schema(columns, all_nullable=mode == ReadMode.PERMISSIVE)
        return cls(
            columns, schema, mode, verify_checksums, include_control, row_filter, max_batch_bytes,
            remote_cache_bytes, key_filter_dir,
        )  # fmt: skip

    @property
    def checks_batches(self) -> bool:
        """Whether the view `batches` needs more than headers: what is wrong with a batch is asked
        for, or decides whether it is left out.
        """
        decides = self.mode == ReadMode.DROPMALFORMED
        is_asked = any(name == "isValid" or name.startswith("error") for name in self.names)
        return self.verify_checksums and (decides or is_asked)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


@dataclass(slots=True)
class ReadCounts:
    """What was left out; filled while the iterator is used up.

    dropped_batches: bad ones, by their file. skipped_batches: those whose headers said that no
    wanted row is in them; skipped_bytes are those of them that were not read. keyless_bytes: those
    that were not read because no wanted key is in them. records, wanted_records: decoded, and kept
    of them.
    """

    dropped_batches: Counter[str] = field(default_factory=Counter)
    skipped_batches: int = 0
    skipped_bytes: int = 0
    keyless_bytes: int = 0
    records: int = 0
    wanted_records: int = 0

    def drop(self, path: str, batches: int = 1) -> None:
        """So many bad ones of a file are left out."""
        self.dropped_batches[path] += batches

    def describe_dropped(self, what: str) -> str:
        """How many, of which files: a few of them by name, as a log can have thousands."""
        paths = sorted(self.dropped_batches)
        more = f" and {len(paths) - _MOST_PATHS} more files" if len(paths) > _MOST_PATHS else ""
        named = ", ".join(paths[:_MOST_PATHS]) + more
        return f"left out {self.dropped_batches.total()} malformed {what} of {named}"

    def describe(self) -> str:
        """What was skipped, as a line of a log."""
        keyless = f", and {self.keyless_bytes} that hold no key" if self.keyless_bytes else ""
        return (
            f"{self.skipped_batches} batches skipped by their headers, {self.skipped_bytes} bytes"
            f" of them not read{keyless}; {self.wanted_records} of {self.records} records kept"
        )
