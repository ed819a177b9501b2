"""A table of SQL as the Arrow dataset that DuckDB asks.

DuckDB calls `scanner(columns=…, filter=…)` for each mention of the table in a query and reads what
comes as a stream. A filter that it handed over it does not apply again: here it is applied to the
rows, exactly, whatever the reader could leave out by its comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from kafkalog.duckdb.expressions import asked_by
from kafkalog.reading.pushing import Comparison


class RowSource(Protocol):
    """Rows of one table."""

    @property
    def schema(self) -> pa.Schema:
        """All columns, in the order that people see."""

    def read(
        self, columns: Sequence[str], comparisons: Sequence[Comparison]
    ) -> Iterator[pa.RecordBatch]:
        """Rows with these columns, in this order. What does not meet the comparisons may be left
        out and may be there. Everything that can fail fails here or while iterating."""


@dataclass
class Failures:
    """What a source raised: DuckDB raises an error of its own in which only the text is left."""

    first: BaseException | None = None

    def note(self, error: BaseException) -> None:
        if self.first is None and not isinstance(error, GeneratorExit):
            self.first = error

    def take(self) -> BaseException | None:
        """The first since it was asked last."""
        error, self.first = self.first, None
        return error


class TableDataset(ds.Dataset):  # type: ignore[misc] # pyarrow has no types
    """DuckDB asks `isinstance`, then for `schema`, and calls `scanner`; nothing else works."""

    def __init__(self, source: RowSource, failures: Failures) -> None:
        self._source = source
        self._failures = failures
        self._columns = _cheapest_first(source.schema)

    @property
    def schema(self) -> pa.Schema:
        """The cheapest column first, since DuckDB asks for the first one where a query names none
        (`count(*)`)."""
        return self._columns

    def scanner(
        self, columns: Sequence[str] | None = None, filter: Any = None, **_: object
    ) -> _Scanner:
        """A stream of these columns of the rows that pass the filter."""
        names = self._columns.names if columns is None else list(columns)
        schema = pa.schema([self._columns.field(name) for name in names])
        rows = self._rows(names, schema, filter)
        return _Scanner(pa.RecordBatchReader.from_batches(schema, rows))

    def _rows(
        self, names: Sequence[str], schema: pa.Schema, filter: Any
    ) -> Iterator[pa.RecordBatch]:
        """The plan is made when the first row is asked for."""
        asked = None if filter is None else asked_by(filter)
        # A filter that cannot be looked into may ask for any column: then all are read, and it is
        # applied to them as it is.
        beside = self._columns.names if asked is None and filter is not None else ()
        read = list(dict.fromkeys([*names, *(asked.columns if asked else beside)]))
        try:
            for batch in self._source.read(read, asked.comparisons if asked else ()):
                # Whatever the readers could leave out by its comparisons, the filter decides:
                # DuckDB does not apply it a second time.
                passed = batch if filter is None else batch.filter(filter)
                if passed.num_rows:
                    # Nothing is said of nulls here: the names and types are the table's.
                    arrays = passed.columns[: len(names)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except BaseException as error:
            self._failures.note(error)
            raise


@dataclass
class _Scanner:
    """What DuckDB takes in place of pyarrow's own: one method of it is called, once."""

    reader: pa.RecordBatchReader

    def to_reader(self) -> pa.RecordBatchReader:
        return self.reader


def _cheapest_first(schema: pa.Schema) -> pa.Schema:
    """The first whole number before the others, if there is one that is never null."""
    numbers = sorted((f for f in schema if pa.types.is_integer(f.type)), key=lambda f: f.nullable)
    cheap = [field.name for field in numbers[:1]]
    names = [*cheap, *(name for name in schema.names if name not in cheap)]
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


@dataclass
class ComputedRows:
    """A table that is made as a whole, when a query first asks for it and again for each mention:
    `make` returns it, or a stream of it."""

    schema: pa.Schema
    make: Callable[[], pa.Table | pa.RecordBatchReader] = field(repr=False)

    def read(
        self, columns: Sequence[str], comparisons: Sequence[Comparison]
    ) -> Iterator[pa.RecordBatch]:
        made = self.make()
        batches = made.to_batches() if isinstance(made, pa.Table) else made
        for batch in batches:
            yield batch.select(list(columns))
