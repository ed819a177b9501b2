"""Rows of a function view as an engine without Spark has them: Arrow, or a query by DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from kafkalog.reading.function_views.shared_reads import SharedReads
from kafkalog.reading.function_views.table import FunctionView
from kafkalog.reading.tables import read_records, read_view


def rows_of(view: FunctionView, reads: SharedReads) -> pa.Table:
    """All of them, in the order that the view gives."""
    if view.made is not None:
        return view.made(reads)
    query = view.query
    assert query is not None
    paths = [str(path) for path in reads.paths]
    if query.view == "records":
        source = read_records(
            paths, columns=query.columns, read_committed=query.read_committed
        ).read_all()
    else:
        source = read_view(query.view, paths, columns=query.columns)
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("its source", source)
    return connection.sql(query.over('"its source"')).to_arrow_table()
