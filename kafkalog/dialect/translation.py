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
from sqlglot import exp

from kafkalog.dialect import (
    functions,
    operators,
    subqueries,
    times,
    windows,
)
from kafkalog.dialect.errors import NotTranslatedError, QueryError, UnknownViewError, refusal
from kafkalog.dialect.macros import MACROS
from kafkalog.dialect.parser import parse
from kafkalog.dialect.queries import Query, compile_query
from kafkalog.dialect.scope import Statement
from kafkalog.dialect.statements import created_view, described, dropped_view, shown_views
from kafkalog.dialect.types import VOID, quoted, to_arrow

__all__ = [
    "MACROS",
    "NotTranslatedError",
    "QueryError",
    "Translation",
    "UnknownViewError",
    "translate",
    "translation",
]
# They register their rules when they are imported.
_RULES = (
    functions,
    operators,
    subqueries,
    times,
    windows,
)
_NO_LENGTHS: Mapping[str, Mapping[str, str]] = {}


@dataclass(frozen=True)
class Translation:
    """DuckDB's text of a statement, and the columns that Spark would give.

    After CREATE TEMPORARY VIEW `creates` is the view's name and `schema` what it has; `drops` is a
    view that is gone. Both have no rows."""

    sql: str
    schema: pa.Schema
    creates: str | None = None
    drops: str | None = None


def translate(query: str, schemas: Mapping[str, pa.Schema]) -> str:
    """The text for DuckDB of a query in Spark's SQL over the views of `schemas`.

    It needs `MACROS` in the connection, and its time zone to be UTC. Raises `QueryError` for a
    query that is wrong, `NotTranslatedError` for one that only Spark is known to answer. An error
    of DuckDB that says `--engine spark` is of a value that only Spark is known to judge.
    """
    return translation(query, schemas).sql


def translation(
    query: str,
    schemas: Mapping[str, pa.Schema],
    lengths: Mapping[str, Mapping[str, str]] = _NO_LENGTHS,
) -> Translation:
    """`translate`, with the names and Arrow types of the result. Also for CREATE and DROP of
    temporary views, DESCRIBE and SHOW TABLES.

    lengths: of a view's columns of bytes those that hold their lengths, which DuckDB has beside
    what the schemas say."""
    statement = Statement(schemas, lengths)
    try:
        return _translation(parse(query), statement)
    except RecursionError:
        raise QueryError("the query nests too deeply") from None


def _translation(tree: exp.Expression, statement: Statement) -> Translation:
    if isinstance(tree, exp.Create):
        return _created(tree, statement)
    if isinstance(tree, exp.Drop):
        name, need_not = dropped_view(tree, statement)
        sql = f"DROP VIEW {'IF EXISTS ' if need_not else ''}{quoted(name)}"
        return Translation(sql, pa.schema([]), drops=name)
    if isinstance(tree, exp.Describe):
        found = described(tree, statement)
    elif isinstance(tree, exp.Command):
        found = shown_views(tree, statement)
    else:
        found = compile_query(tree, statement)
    return Translation(_outermost(found, statement, "spark_text"), _schema(found))


def _created(tree: exp.Create, statement: Statement) -> Translation:
    """A view's texts are texts: what is no UTF-8 is an error where the view is asked for it."""
    name, is_replaced, found = created_view(tree, statement)
    word = "CREATE OR REPLACE" if is_replaced else "CREATE"
    sql = _outermost(found, statement, "spark_exact_text")
    return Translation(f"{word} TEMP VIEW {quoted(name)} AS {sql}", _schema(found), creates=name)


def _outermost(found: Query, statement: Statement, as_text: str) -> str:
    names = []
    for column in found.columns:
        value = f"{as_text}({column.sql})" if column.is_bytes else column.sql
        names.append(f"{value} AS {quoted(column.name)}")
    common = f"WITH {', '.join(statement.common)} " if statement.common else ""
    return f"{common}SELECT {', '.join(names)} FROM ({found.sql}){found.tail()}"


def _schema(found: Query) -> pa.Schema:
    for column in found.columns:
        if column.type == VOID:
            raise refusal(f"column {column.name} without a type (NULL)")
    return pa.schema([pa.field(column.name, to_arrow(column.type)) for column in found.columns])
