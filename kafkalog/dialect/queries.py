"""SELECT, WITH, VALUES and set operations.

Each query becomes one with columns c1, c2 … and hidden ones to order by; names and order come at
the outermost. A query with groups becomes two: keys g1 … and aggregates a1 …, and expressions of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from kafkalog.dialect.casts import widen
from kafkalog.dialect.errors import QueryError, only, place_of, refusal
from kafkalog.dialect.operators import together
from kafkalog.dialect.scope import Column, CommonTable, Context, Statement
from kafkalog.dialect.typed import Typed, computed, distinct_sql
from kafkalog.dialect.windows import direction

_NAMES = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


@dataclass(frozen=True)
class Query:
    """`sql` gives the columns under their names `c1 …`, and what `order` speaks of."""

    sql: str
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()
    limit: str = ""

    def nested(self) -> str:
        """As a subquery."""
        if not self.order and not self.limit:
            return self.sql
        names = ", ".join(column.sql for column in self.columns)
        return f"SELECT {names} FROM ({self.sql}){self.tail()}"

    def tail(self) -> str:
        order = f" ORDER BY {', '.join(self.order)}" if self.order else ""
        return order + self.limit


def compile_query(
    node: exp.Expression,
    statement: Statement,
    parent: Context | None = None,
    tables: Mapping[str, CommonTable] | None = None,
) -> Query:
    """Any query."""
    tables = dict(tables or {})
    with_ = node.args.get("with_")
    if with_ is not None:
        tables.update(_common_tables(with_, statement, tables))
    if isinstance(node, exp.Subquery):
        return _subquery(node, statement, parent, tables)
    if isinstance(node, exp.SetOperation):
        return _set_operation(node, statement, parent, tables)
    if isinstance(node, exp.Values):
        return values(node, Context(statement, parent=parent, tables=tables))
    if isinstance(node, exp.Select):
        from kafkalog.dialect.select import compile_select

        return compile_select(node, Context(statement, parent=parent, tables=tables))
    raise refusal(f"{type(node).__name__.upper()} as a query")


def _common_tables(
    with_: exp.Expression, statement: Statement, tables: dict[str, CommonTable]
) -> dict[str, CommonTable]:
    only(with_, "expressions")
    seen = dict(tables)
    for one in with_.expressions:
        only(one, "this", "alias")
        query = compile_query(one.this, statement, None, seen)
        name = statement.fresh("w")
        # DuckDB gets one WITH in front of all, under names that no two share: a name of Spark's may
        # hide another one further out.
        statement.common.append(f"{name} AS ({query.nested()})")
        columns = renamed(query.columns, one.args["alias"])
        seen[one.alias.lower()] = CommonTable(name, columns)
    return seen


def renamed(columns: tuple[Column, ...], alias: exp.Expression | None) -> tuple[Column, ...]:
    """The columns under the names of `AS t(a, b)`."""
    names = [] if alias is None else alias.args.get("columns") or []
    if not names:
        return columns
    if len(names) != len(columns):
        raise QueryError(f"{len(names)} names for {len(columns)} columns{place_of(names[0])}")
    return tuple(
        replace(column, name=name.name) for column, name in zip(columns, names, strict=True)
    )


def _subquery(
    node: exp.Subquery, statement: Statement, parent: Context | None, tables: dict[str, CommonTable]
) -> Query:
    only(node, "this", "with_", "order", "limit", "offset")
    query = compile_query(node.this, statement, parent, tables)
    if not any(node.args.get(part) for part in ("order", "limit", "offset")):
        return query
    return _with_tail(replace(query, sql=query.nested(), order=(), limit=""), node)


def _with_tail(query: Query, node: exp.Expression) -> Query:
    """ORDER BY and LIMIT over a query whose columns are all there is to order by."""
    order = node.args.get("order")
    orders = tuple(
        f"{_output_named(query, part.this).sql} {direction(part)}"
        for part in (order.expressions if order else [])
    )
    return replace(query, order=orders, limit=limit_of(node))


def _output_named(query: Query, node: exp.Expression) -> Column:
    if isinstance(node, exp.Literal) and not node.is_string:
        return query.columns[ordinal(node, len(query.columns)) - 1]
    if isinstance(node, exp.Column) and not node.args.get("table"):
        found = [one for one in query.columns if one.name.lower() == node.name.lower()]
        if len(found) == 1:
            column = found[0]
            if not column.type.is_plain:
                raise refusal(f"ORDER BY of {column.type}")
            return column
    raise refusal(f"ORDER BY {node.sql()} of this query", "names and numbers of its columns only")


def ordinal(node: exp.Literal, count: int) -> int:
    """The number of an output column."""
    if not node.this.isdigit() or not 1 <= int(node.this) <= count:
        raise QueryError(f"there is no column {node.this} of {count}{place_of(node)}")
    return int(node.this)


def limit_of(node: exp.Expression) -> str:
    """LIMIT and OFFSET by whole numbers."""
    text = ""
    for part, word in (("limit", "LIMIT"), ("offset", "OFFSET")):
        given = node.args.get(part)
        if given is None:
            continue
        only(given, "expression")
        number = given.expression
        if not isinstance(number, exp.Literal) or not number.this.isdigit():
            if word == "LIMIT" and number.sql().upper() in {"ALL", '"ALL"'}:
                continue
            raise refusal(f"{word} {number.sql()}")
        text += f" {word} {number.this}"
    return text


def _set_operation(
    node: exp.SetOperation,
    statement: Statement,
    parent: Context | None,
    tables: dict[str, CommonTable],
) -> Query:
    only(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
    left = compile_query(node.this, statement, parent, tables)
    right = compile_query(node.expression, statement, parent, tables)
    word = _NAMES[type(node)]
    if len(left.columns) != len(right.columns):
        raise QueryError(f"{word} of {len(left.columns)} and of {len(right.columns)} columns")
    every = "" if node.args.get("distinct") else " ALL"
    first, second, columns = [], [], []
    for place, (one, two) in enumerate(zip(left.columns, right.columns, strict=True), 1):
        pair = [_typed(one), _typed(two)]
        target = together(pair, word)
        if not target.is_plain and not (word == "UNION" and every):
            raise refusal(f"{word} of {target}")
        a, b = widen(pair, target)
        # UNION ALL compares nothing, so that values stay as they are; the others compare rows, for
        # which Spark makes 0.0 of -0.0.
        keeps_all = word == "UNION" and every
        first.append(f"{a.sql if keeps_all else distinct_sql(a)} AS c{place}")
        second.append(f"{b.sql if keeps_all else distinct_sql(b)} AS c{place}")
        columns.append(Column(one.name, f"c{place}", target, a.is_bytes))
    sql = (
        f"(SELECT {', '.join(first)} FROM ({left.nested()})) {word}{every} "
        f"(SELECT {', '.join(second)} FROM ({right.nested()}))"
    )
    return _with_tail(Query(f"SELECT * FROM ({sql})", tuple(columns)), node)


def _typed(column: Column) -> Typed:
    return computed(column.sql, column.type, column.name, is_bytes=column.is_bytes)


def values(node: exp.Values, context: Context) -> Query:
    """VALUES, each column of one type."""
    only(node, "expressions", "alias", "with_", "order", "limit", "offset")
    rows = []
    for row in node.expressions:
        parts = row.expressions if isinstance(row, exp.Tuple) else [row]
        rows.append([context.compile(part) for part in parts])
    if len({len(row) for row in rows}) != 1:
        raise QueryError("VALUES has rows of different lengths")
    done, columns = [], []
    for place, column in enumerate(zip(*rows, strict=True), 1):
        target = together(list(column), "VALUES")
        items = widen(list(column), target)
        done.append([item.sql for item in items])
        columns.append(Column(f"col{place}", f"c{place}", target, items[0].is_bytes))
    lines = ", ".join(f"({', '.join(row)})" for row in zip(*done, strict=True))
    names = ", ".join(column.sql for column in columns)
    sql = f"SELECT {names} FROM (VALUES {lines}) AS v({names})"
    alias = node.args.get("alias")
    return _with_tail(Query(sql, renamed(tuple(columns), alias)), node)
