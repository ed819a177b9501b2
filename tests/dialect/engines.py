"""A query on both engines: Spark, with the tables as temporary views, and DuckDB, translated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from kafkalog.dialect.translation import MACROS, NotTranslatedError, QueryError, translation
from tests.dialect.java_text import decode_as_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small plans on one core; code generation costs more than it gives. What Spark asks of a session
# before it answers in Arrow.
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Outcome:
    """`kind`: rows, error (also of a query that is wrong), refused (before it runs), or not known
    (refused by a value)."""

    kind: str
    text: str = ""
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()


class Engines:
    """Both with the same tables."""

    def __init__(self, spark: SparkSession, tables: Mapping[str, pa.Table]) -> None:
        self.spark = spark
        self.schemas = {name: table.schema for name, table in tables.items()}
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'")
        for macro in MACROS:
            self.duckdb.execute(macro)
        for name, table in tables.items():
            self.duckdb.register(name, table)
            spark.createDataFrame(table).createOrReplaceTempView(name)

    def on_spark(self, query: str) -> Outcome:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return _rows(self.spark.sql(query).toArrow())
        # The second is what an error of a subquery comes as.
        except (PySparkException, Py4JJavaError) as error:
            return Outcome("error", str(error))

    def on_duckdb(self, query: str) -> Outcome:
        try:
            found = translation(query, self.schemas)
        except NotTranslatedError as error:
            return Outcome("refused", str(error))
        except QueryError as error:
            return Outcome("error", str(error))
        try:
            table = self.duckdb.sql(found.sql).to_arrow_table()
        except (duckdb.InvalidInputException, duckdb.OutOfRangeException) as error:
            kind = "not known" if "--engine spark" in str(error) else "error"
            return Outcome(kind, str(error))
        except duckdb.ConversionException as error:
            return Outcome("error", str(error))
        outcome = _rows(table)
        said = tuple(_type(field.type) for field in found.schema)
        assert (outcome.names, outcome.types) == (tuple(found.schema.names), said)
        return outcome

    def difference(self, query: str, *, is_ordered: bool) -> str | None:
        """What differs; None where the rows, names and types are the same, where both raise, or
        where DuckDB's side refuses."""
        ours = self.on_duckdb(query)
        if ours.kind in {"refused", "not known"}:
            return None
        theirs = self.on_spark(query)
        if ours.kind == "error":
            return None if theirs.kind == "error" else f"only ours raises: {ours.text}"
        if theirs.kind == "error":
            return f"only Spark raises: {theirs.text[:300]}"
        return _difference(ours, theirs, is_ordered)


@contextmanager
def small_plans(spark: SparkSession) -> Iterator[None]:
    """The session's settings for the time of these tests."""
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        if value is not None:
            spark.conf.set(key, value)


def _difference(ours: Outcome, theirs: Outcome, is_ordered: bool) -> str | None:
    for what in ("names", "types"):
        if getattr(ours, what) != getattr(theirs, what):
            return f"{what}: {getattr(ours, what)}, but Spark's {getattr(theirs, what)}"
    first, second = list(ours.rows), list(theirs.rows)
    if not is_ordered:
        first.sort(key=repr)
        second.sort(key=repr)
    if first == second:
        return None
    if len(first) != len(second):
        return f"{len(first)} rows, but Spark's {len(second)}"
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    columns = [place for place, (a, b) in enumerate(zip(*pairs[0], strict=True)) if a != b]
    shown = [ours.names[place] for place in columns]
    return f"{len(pairs)} of {len(first)} rows in {shown}: {pairs[0][0]}, but Spark's {pairs[0][1]}"


def _rows(table: pa.Table) -> Outcome:
    columns = [_values(column) for column in table.columns]
    return Outcome(
        "rows",
        names=tuple(table.schema.names),
        types=tuple(_type(field.type) for field in table.schema),
        rows=tuple(tuple(row) for row in zip(*columns, strict=True)),
    )


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Spark hands the bytes of a string over as they are, also where they are no UTF-8: people see
    what Java makes of them."""
    if pa.types.is_string(column.type):
        chunks = [
            pa.Array.from_buffers(pa.binary(), len(c), c.buffers(), c.null_count, c.offset)
            for c in column.chunks
        ]
        values = pa.chunked_array(chunks, type=pa.binary()).to_pylist()
        return [None if value is None else decode_as_java(value) for value in values]
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    """NaN equals itself here."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return tuple((key, _plain(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value


def _type(type_: pa.DataType) -> str:
    """Without the name that a list gives its element."""
    if pa.types.is_list(type_):
        return f"list<{_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {_type(field.type)}' for field in type_)}>"
    return str(type_)
