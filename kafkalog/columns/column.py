"""A column of a view or table: its name, its Arrow type, whether it can be null, what it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
# Milliseconds of 0001-01-01 and of the last one of 9999: what a calendar, Spark's and Python's,
# holds.
MIN_TIMESTAMP_MS = -62_135_596_800_000
MAX_TIMESTAMP_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Column:
    """One column; one that is `on_request` comes only when it is named."""

    name: str
    type: pa.DataType
    nullable: bool
    meaning: str
    on_request: bool = False

    def field(self, *, nullable: bool | None = None) -> pa.Field:
        return pa.field(self.name, self.type, self.nullable if nullable is None else nullable)


def not_null(name: str, type_: pa.DataType, meaning: str) -> Column:
    """A column that has a value in every row."""
    return Column(name, type_, nullable=False, meaning=meaning)


def nullable(name: str, type_: pa.DataType, meaning: str) -> Column:
    """A column that can be null."""
    return Column(name, type_, nullable=True, meaning=meaning)


def on_request(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The same columns, which come only when they are named."""
    return tuple(replace(column, on_request=True) for column in columns)


def arrow_schema(columns: Iterable[Column], *, all_nullable: bool = False) -> pa.Schema:
    """Arrow schema of columns; `all_nullable` for mode PERMISSIVE, where a bad batch's row has only
    its place."""
    return pa.schema([c.field(nullable=True if all_nullable else None) for c in columns])
