"""Queries inside of expressions: (SELECT …), EXISTS, IN (SELECT …)."""

from __future__ import annotations

from sqlglot import exp

from kafkalog.dialect.casts import cast
from kafkalog.dialect.errors import QueryError, refusal
from kafkalog.dialect.operators import compared
from kafkalog.dialect.queries import Query, compile_query
from kafkalog.dialect.scope import NAMELESS, Context, handles
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import BINARY, BOOLEAN, STRING


def _inner(context: Context, node: exp.Expression) -> Query:
    query: exp.Expression = node
    while isinstance(query, exp.Subquery):
        query = query.this
    if context.grouped is not None:
        context = context.before_groups()
    statement = context.statement
    statement.takes_outer = False
    return compile_query(query, statement, context, context.tables)


def _label(context: Context, word: str) -> str:
    """Spark names what a subquery takes from outside, too: such a column needs an alias."""
    return f"{word}({NAMELESS if context.statement.takes_outer else ''})"


def _single(query: Query) -> Typed:
    if len(query.columns) != 1:
        raise QueryError(f"a subquery of one column is expected, not of {len(query.columns)}")
    column = query.columns[0]
    return computed(column.sql, column.type, column.name, is_bytes=column.is_bytes)


@handles(exp.Subquery, exp.Select)
def _scalar(context: Context, node: exp.Expression) -> Typed:
    query = _inner(context, node)
    column = _single(query)
    sql = f"(SELECT {column.sql} FROM ({query.nested()}))"
    label = _label(context, "scalarsubquery")
    return computed(sql, column.type, label, is_bytes=column.is_bytes)


@handles(exp.Exists)
def _exists(context: Context, node: exp.Exists) -> Typed:
    query = _inner(context, node.this)
    return computed(
        f"EXISTS (SELECT 1 FROM ({query.nested()}))", BOOLEAN, _label(context, "exists")
    )


def in_query(context: Context, node: exp.In) -> Typed:
    item = context.compile(node.this)
    query = _inner(context, node.args["query"])
    column = _single(query)
    if (item.type == STRING and column.type == BINARY) or item.is_bytes or column.is_bytes:
        item, column = cast(item, BINARY), cast(column, BINARY)
    first, second = compared(item, column, "IN")
    if first.type == STRING and first.is_bytes != second.is_bytes:
        raise refusal("IN of this form")
    sql = f"({first.sql} IN (SELECT {second.sql} FROM ({query.nested()})))"
    return computed(sql, BOOLEAN, f"({item.label} IN ({_label(context, 'listquery')}))")
