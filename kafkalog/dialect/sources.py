"""FROM: views, common tables, subqueries, joins, LATERAL VIEW."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from kafkalog.dialect.errors import QueryError, UnknownViewError, near, only, place_of, refusal
from kafkalog.dialect.operators import compared, condition
from kafkalog.dialect.queries import Query, compile_query, renamed, values
from kafkalog.dialect.scope import Column, Context, Source, columns_of
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import INT, quoted

_KINDS = {
    ("", ""): "INNER", ("", "INNER"): "INNER", ("", "CROSS"): "CROSS", ("LEFT", ""): "LEFT",
    ("LEFT", "OUTER"): "LEFT", ("RIGHT", ""): "RIGHT", ("RIGHT", "OUTER"): "RIGHT",
    ("FULL", ""): "FULL", ("FULL", "OUTER"): "FULL", ("LEFT", "SEMI"): "SEMI",
    ("", "SEMI"): "SEMI", ("LEFT", "ANTI"): "ANTI", ("", "ANTI"): "ANTI",
}  # fmt: skip


def sources_of(node: exp.Select, context: Context) -> tuple[str, Context]:
    """The text of FROM with all joins, and the context in which its columns have names."""
    from_ = node.args.get("from_")
    if from_ is None:
        if node.args.get("joins") or node.args.get("laterals"):
            raise refusal("a join without FROM")
        return "", context
    only(from_, "this")
    sql, source = _source(from_.this, context)
    context = replace(context, sources=(source,))
    text = f" FROM {sql}"
    pending = [*(from_.this.args.get("joins") or []), *(node.args.get("joins") or [])]
    for join in pending:
        text, context = _join(text, join, context)
    for lateral in node.args.get("laterals") or []:
        text, context = _lateral(text, lateral, context)
    return text, context


def _source(node: exp.Expression, context: Context) -> tuple[str, Source]:
    alias = node.args.get("alias")
    if isinstance(node, exp.Table):
        return _table(node, context)
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias", "with_", "joins", "order", "limit", "offset")
        if node.args.get("joins"):
            raise refusal("a join in parentheses")
        inner = node.copy()
        inner.set("alias", None)
        inside = Context(context.statement, parent=context.parent, tables=context.tables)
        if isinstance(node.this, exp.Table):
            raise refusal("a table in parentheses")
        query = compile_query(inner, context.statement, inside.parent, context.tables)
        return _named(query, alias, context)
    if isinstance(node, exp.Values):
        bare = node.copy()
        bare.set("alias", None)
        return _named(values(bare, context), alias, context)
    raise refusal(f"{type(node).__name__.upper()} in FROM{place_of(node)}")


def _named(query: Query, alias: exp.Expression | None, context: Context) -> tuple[str, Source]:
    name = context.statement.fresh("t")
    columns = tuple(
        replace(column, sql=f"{name}.{column.sql}") for column in renamed(query.columns, alias)
    )
    return f"({query.nested()}) AS {name}", Source(_alias_name(alias), columns)


def _alias_name(alias: exp.Expression | None) -> str | None:
    return alias.name if alias is not None and alias.name else None


def _table(node: exp.Table, context: Context) -> tuple[str, Source]:
    only(node, "this", "alias", "joins")
    if not isinstance(node.this, exp.Identifier):
        raise refusal(f"table function {node.this.sql()}{place_of(node)}")
    written, alias = node.name, node.args.get("alias")
    name = context.statement.fresh("t")
    shown = _alias_name(alias) or written
    common = context.tables.get(written.lower())
    if common is not None:
        columns = tuple(
            replace(column, sql=f"{name}.{inner.sql}")
            for column, inner in zip(renamed(common.columns, alias), common.columns, strict=True)
        )
        return f"{common.sql_name} AS {name}", Source(shown, columns)
    view = context.view(written)
    if view is None:
        known = [*context.tables, *context.statement.schemas]
        raise UnknownViewError(written, place_of(node), near(written, known))
    lengths = context.statement.lengths.get(view[0], {})
    columns = renamed(columns_of(view[1], name, lengths), alias)
    return f"{quoted(view[0])} AS {name}", Source(shown, columns)


def _join(text: str, node: exp.Join, context: Context) -> tuple[str, Context]:
    only(node, "this", "side", "kind", "on", "using", "method")
    if node.args.get("method"):
        raise refusal(f"{node.args['method']} JOIN")
    kind = _KINDS.get((str(node.side or ""), str(node.kind or "")))
    if kind is None or isinstance(node.this, exp.Lateral):
        raise refusal(f"{node.side} {node.kind} JOIN")
    if isinstance(node.this, exp.Table | exp.Subquery) and node.this.args.get("joins"):
        raise refusal("a join in parentheses")
    sql, source = _source(node.this, context)
    both = replace(context, sources=(*context.sources, source))
    if node.args.get("using"):
        return _using(text, kind, sql, source, node, context)
    on = node.args.get("on")
    if on is None:
        if kind not in {"INNER", "CROSS"}:
            raise refusal(f"{kind} JOIN without a condition")
        return f"{text} CROSS JOIN {sql}", both
    if kind == "CROSS":
        kind = "INNER"
    test = condition(replace(both, given={}).compile(on), "ON")
    after = context if kind in {"SEMI", "ANTI"} else both
    return f"{text} {kind} JOIN {sql} ON {test.sql}", after


def _using(
    text: str, kind: str, sql: str, source: Source, node: exp.Join, context: Context
) -> tuple[str, Context]:
    """The named columns of both sides are one column of the result."""
    tests, merged = [], list(context.merged)
    right = replace(context, sources=(source,), merged=())
    for name in node.args["using"]:
        left_one = context.compile(exp.Column(this=name.copy()))
        right_one = right.compile(exp.Column(this=name.copy()))
        first, second = compared(left_one, right_one, "USING")
        tests.append(f"{first.sql} = {second.sql}")
        if left_one.type != right_one.type and kind in {"RIGHT", "FULL"}:
            raise refusal(f"{kind} JOIN USING of {left_one.type} and {right_one.type}")
        value = _merged_value(kind, left_one, right_one, first, second)
        merged = [one for one in merged if one.name.lower() != name.name.lower()]
        merged.append(Column(left_one.label, value.sql, value.type, value.is_bytes))
    after = context
    if kind not in {"SEMI", "ANTI"}:
        after = replace(context, sources=(*context.sources, source), merged=tuple(merged))
    return f"{text} {kind} JOIN {sql} ON {' AND '.join(tests)}", after


def _merged_value(kind: str, left: Typed, right: Typed, first: Typed, second: Typed) -> Typed:
    # The side that has a value in every row; of a FULL join whichever of the two is there.
    if kind == "RIGHT":
        return right
    if kind != "FULL":
        return left
    sql = f"coalesce({first.sql}, {second.sql})"
    return computed(sql, first.type, left.label, is_bytes=first.is_bytes)


def _lateral(text: str, node: exp.Lateral, context: Context) -> tuple[str, Context]:
    """LATERAL VIEW [OUTER] explode(…) t AS c."""
    only(node, "this", "view", "outer", "alias")
    call, alias = node.this, node.args.get("alias")
    if not isinstance(call, exp.Anonymous) or not node.args.get("view"):
        raise refusal("LATERAL of this form")
    columns = [column.name for column in (alias.args.get("columns") or [])] if alias else []
    sql, source = exploded(call, columns, context, outer=bool(node.args.get("outer")))
    source = replace(source, alias=_alias_name(alias))
    return f"{text} {sql}", replace(context, sources=(*context.sources, source))


def exploded(
    call: exp.Anonymous, names: list[str], context: Context, *, outer: bool
) -> tuple[str, Source]:
    """A join with the elements of an array."""
    function = str(call.this).lower()
    if function not in {"explode", "posexplode", "explode_outer", "posexplode_outer"}:
        raise refusal(f"{call.this}() of rows{place_of(call)}")
    if len(call.expressions) != 1:
        raise refusal(f"{function}() of {len(call.expressions)} arguments")
    item = replace(context, given={}).compile(call.expressions[0])
    element = item.type.element
    if element is None:
        raise refusal(f"{function}() of {item.type}")
    outer = outer or function.endswith("_outer")
    with_place = function.startswith("pos")
    names = names or (["pos", "col"] if with_place else ["col"])
    if len(names) != 1 + with_place:
        raise QueryError(f"{function}() gives {1 + with_place} columns, not {len(names)}")
    name = context.statement.fresh("t")
    columns = [Column(names[-1], f"{name}.item", element)]
    selected = f"unnest({item.sql}) AS item"
    if with_place:
        columns.insert(0, Column(names[0], f"{name}.place", INT))
        selected += f", unnest(range(len({item.sql})))::INTEGER AS place"
    join = "LEFT JOIN" if outer else "JOIN"
    return f"{join} LATERAL (SELECT {selected}) AS {name} ON true", Source(None, tuple(columns))
