"""Statements beside queries: temporary views, DESCRIBE, SHOW TABLES and VIEWS."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from kafkalog.dialect.errors import QueryError, UnknownViewError, near, only, place_of, refusal
from kafkalog.dialect.queries import Query, compile_query, renamed
from kafkalog.dialect.scope import Column, Context, Statement
from kafkalog.dialect.typed import text_literal
from kafkalog.dialect.types import BOOLEAN, STRING, of_arrow

_CREATED = (
    "this", "kind", "replace", "expression", "properties", "refresh", "unique", "exists",
    "concurrently",
)  # fmt: skip


def created_view(node: exp.Create, statement: Statement) -> tuple[str, bool, Query]:
    """The name of CREATE TEMPORARY VIEW, whether one of that name is replaced, and its query."""
    only(node, *_CREATED)
    properties = node.args.get("properties")
    kinds = [] if properties is None else [type(one) for one in properties.expressions]
    if node.args.get("kind") != "VIEW" or kinds != [exp.TemporaryProperty] or node.args["exists"]:
        raise refusal("CREATE of other than a TEMPORARY VIEW … AS SELECT")
    if node.expression is None:
        raise refusal("CREATE TEMPORARY VIEW … USING")
    target = node.this
    query = compile_query(node.expression, statement)
    if isinstance(target, exp.Schema):
        if not all(isinstance(one, exp.Identifier) for one in target.expressions):
            raise refusal("columns of a view with more than their names")
        named = exp.TableAlias(columns=target.expressions)
        query = Query(query.sql, renamed(query.columns, named), query.order, query.limit)
        target = target.this
    only(target, "this")
    names = [column.name.lower() for column in query.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(f"the view would have two columns {', '.join(twice)}")
    return target.name, bool(node.args.get("replace")), query


def dropped_view(node: exp.Drop, statement: Statement) -> tuple[str, bool]:
    """The name of DROP VIEW, and whether it need not be there."""
    only(node, "tables", "kind", "exists")
    tables = node.args.get("tables") or []
    if node.args.get("kind") != "VIEW" or len(tables) != 1:
        raise refusal("DROP of other than a VIEW")
    only(tables[0], "this")
    return tables[0].name, bool(node.args.get("exists"))


def described(node: exp.Describe, statement: Statement) -> Query:
    """The columns of a view, a row each."""
    only(node, "this", "kind")
    if not isinstance(node.this, exp.Table):
        raise refusal("DESCRIBE of a query")
    only(node.this, "this")
    found = Context(statement).view(node.this.name)
    if found is None:
        there = near(node.this.name, statement.schemas)
        raise UnknownViewError(node.this.name, place_of(node), there)
    rows = [(field.name, str(of_arrow(field.type, field.name)), None) for field in found[1]]
    return _table(("col_name", "data_type", "comment"), rows)


def shown_views(node: exp.Command, statement: Statement) -> Query:
    """The views by their names: SHOW TABLES and SHOW VIEWS."""
    words = node.sql().lower().split()
    if words not in (["show", "tables"], ["show", "views"]):
        raise refusal(f"{words[0].upper()} of this form")
    named = "tableName" if words[1] == "tables" else "viewName"
    rows = [("", name, "true") for name in sorted(statement.schemas)]
    query = _table(("namespace", named, "isTemporary"), rows)
    first, second, third = query.columns
    sql = f"SELECT o1, c1, c2, CAST(c3 AS BOOLEAN) AS c3 FROM ({query.sql})"
    return Query(sql, (first, second, Column(third.name, third.sql, BOOLEAN)), query.order)


def _table(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Query:
    columns = tuple(Column(name, f"c{place}", STRING) for place, name in enumerate(names, 1))
    lines = [
        f"({place}, {', '.join('NULL' if one is None else text_literal(one) for one in row)})"
        for place, row in enumerate(rows)
    ]
    listed = ", ".join(column.sql for column in columns)
    texts = ", ".join(f"CAST({column.sql} AS VARCHAR) AS {column.sql}" for column in columns)
    values = f"(VALUES {', '.join(lines)}) AS v(o1, {listed})"
    return Query(f"SELECT o1, {texts} FROM {values}", columns, ("o1",))
