"""Spark's SQL for DuckDB.

sqlglot reads the query; rules of ours give each part Spark's type and name and write DuckDB's text
for it. They are a list of what is allowed: what has no rule is refused by name, with `--engine
spark`, so that no query is answered differently. Order that a query does not fix (LIMIT without
ORDER BY, rows that tie) is open in both engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from kafkalog.dialect import (
    functions,
    operators,
    subqueries,
    times,
    windows,
)
from kafkalog.dialect.errors import NotTranslatedError, QueryError, refusal
from kafkalog.dialect.macros import MACROS
from kafkalog.dialect.parser import parse
from kafkalog.dialect.queries import Query, compile_query
from kafkalog.dialect.scope import Statement
from kafkalog.dialect.types import VOID, quoted, to_arrow

__all__ = ["MACROS", "NotTranslatedError", "QueryError", "Translation", "translate", "translation"]
# They register their rules when they are imported.
_RULES = (
    functions,
    operators,
    subqueries,
    times,
    windows,
)


@dataclass(frozen=True)
class Translation:
    """DuckDB's text of a query, and the columns that Spark would give."""

    sql: str
    schema: pa.Schema


def translate(query: str, schemas: Mapping[str, pa.Schema]) -> str:
    """The text for DuckDB of a query in Spark's SQL over the views of `schemas`.

    It needs `MACROS` in the connection, and its time zone to be UTC. Raises `QueryError` for a
    query that is wrong, `NotTranslatedError` for one that only Spark is known to answer.
    """
    return translation(query, schemas).sql


def translation(query: str, schemas: Mapping[str, pa.Schema]) -> Translation:
    """`translate`, with the names and Arrow types of the result."""
    statement = Statement(schemas)
    try:
        found = compile_query(parse(query), statement)
    except RecursionError:
        raise QueryError("the query nests too deeply") from None
    common = f"WITH {', '.join(statement.common)} " if statement.common else ""
    return Translation(common + _outermost(found), _schema(found))


def _outermost(found: Query) -> str:
    names = []
    for column in found.columns:
        value = f"spark_text({column.sql})" if column.is_bytes else column.sql
        names.append(f"{value} AS {quoted(column.name)}")
    return f"SELECT {', '.join(names)} FROM ({found.sql}){found.tail()}"


def _schema(found: Query) -> pa.Schema:
    for column in found.columns:
        if column.type == VOID:
            raise refusal(f"column {column.name} without a type (NULL)")
    return pa.schema([pa.field(column.name, to_arrow(column.type)) for column in found.columns])
