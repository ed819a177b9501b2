"""The rows of a query on stdout, as a table, JSON lines or CSV, or as Parquet in a directory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafkalog.cli.arguments import UsageError
from kafkalog.cli.output import write_bytes, write_table

# More rows than anybody reads are a mistake as a table; the other formats give all.
TABLE_ROWS = 1000

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows of Python values for a table; one more than TABLE_ROWS where there are more."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]


def write_all(found: pa.RecordBatchReader, format_: str, output: str | None, tell: Tell) -> None:
    """All rows as JSON lines, CSV or Parquet, of which `output` is the directory."""
    if format_ == "parquet":
        write_parquet(found, Path(output or ""))
        tell(f"written to {output}")
    elif format_ == "json":
        write_json_lines(found)
    else:
        write_csv(found)


# -- a table ---------------------------------------------------------------------------------------


def first_rows(found: pa.RecordBatchReader) -> ShownRows:
    """Those of a table; the rest is not asked for."""
    rows: list[tuple[Any, ...]] = []
    for batch in found:
        part = batch.slice(0, TABLE_ROWS + 1 - len(rows))
        rows += zip(*(column.to_pylist() for column in part.columns), strict=True)
        if len(rows) > TABLE_ROWS:
            break
    found.close()
    return ShownRows(found.schema.names, rows)


def write_shown(shown: ShownRows, tell: Tell) -> None:
    """A table of the first rows, and a word about the others."""
    rows = [
        dict(zip(shown.columns, map(_cell, row), strict=True)) for row in shown.rows[:TABLE_ROWS]
    ]
    write_table(shown.columns, rows)
    if len(shown.rows) > TABLE_ROWS:
        tell(f"the first {TABLE_ROWS} rows; --format json, csv and parquet give all")


def _cell(value: Any) -> Any:
    """Bytes as text where they are, else in hex; a line break would break the table."""
    if isinstance(value, bytes | bytearray):
        try:
            text = bytes(value).decode()
        except UnicodeDecodeError:
            return "0x" + bytes(value).hex()
        return text if text.isprintable() else "0x" + bytes(value).hex()
    if isinstance(value, str):
        return value if value.isprintable() else repr(value)[1:-1]
    if isinstance(value, dt.datetime):
        return _moment(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    if isinstance(value, tuple) and hasattr(value, "asDict"):  # a Row of Spark's
        return _cell(value.asDict())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_nested(each)}" for name, each in value.items()) + "}"
    return value


def _nested(value: Any) -> str:
    """Within a list or struct, in SQL's words."""
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(_cell(value))


def _moment(value: dt.datetime) -> str:
    """In UTC; Spark hands over local times without a zone."""
    unit = "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
    text = value.astimezone(dt.UTC).isoformat(timespec=unit)
    return text.removesuffix("+00:00") + "Z"


# -- all rows --------------------------------------------------------------------------------------


def write_json_lines(found: pa.RecordBatchReader) -> None:
    """`{"key":"YQ==","offset":0}` for each row, as Spark's to_json writes it."""
    from kafkalog.cli.sql_texts import json_lines

    for batch in found:
        if not write_bytes(json_lines(batch)):
            break


def write_csv(found: pa.RecordBatchReader) -> None:
    """A line of names and one a row (RFC 4180); nothing stands for null, `""` for an empty text."""
    import pyarrow.csv as csv

    from kafkalog.cli.sql_texts import csv_columns

    header = True
    empty = pa.RecordBatch.from_pylist([], schema=found.schema)
    for batch in chain([empty], found):
        sink = pa.BufferOutputStream()
        csv.write_csv(csv_columns(batch), sink, csv.WriteOptions(include_header=header))
        header = False
        if not write_bytes(memoryview(sink.getvalue())):
            break


def write_parquet(found: pa.RecordBatchReader, directory: Path) -> None:
    """One file in a new or empty directory, which is there under its name once it is whole."""
    import pyarrow.parquet as parquet

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"--output {directory} already exists, and is no empty directory")
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / ".part-00000.parquet.tmp"  # readers of Parquet pass names with a dot over
    try:
        with parquet.ParquetWriter(part, found.schema, compression="zstd") as writer:
            for batch in found:
                writer.write_batch(batch)
        part.rename(directory / "part-00000.parquet")
    except BaseException:
        part.unlink(missing_ok=True)
        raise
