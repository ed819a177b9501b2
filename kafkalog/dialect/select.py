"""One SELECT: its columns, groups, order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from kafkalog.dialect.errors import QueryError, only, refusal
from kafkalog.dialect.operators import condition
from kafkalog.dialect.queries import Query, limit_of, ordinal
from kafkalog.dialect.scope import (
    NAMELESS,
    Aggregation,
    Column,
    Context,
    Source,
    from_below,
    has_aggregate,
    has_window,
)
from kafkalog.dialect.sources import exploded, sources_of
from kafkalog.dialect.typed import Typed, distinct_sql
from kafkalog.dialect.windows import direction

_PARTS = (
    "expressions", "from_", "joins", "laterals", "where", "group", "having", "order", "limit",
    "offset", "distinct", "with_", "hint",
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """A column of SELECT: by its tree, or found already."""

    name: str | None
    node: exp.Expression | None = None
    done: Typed | None = None


def compile_select(node: exp.Select, context: Context) -> Query:
    """The query of one SELECT. Hints change no rows, so they are read over."""
    only(node, *_PARTS)
    distinct = node.args.get("distinct")
    if distinct is not None:
        only(distinct)
    from_sql, context = sources_of(node, context)
    nodes, from_sql, context = _explode(node.expressions, from_sql, context)
    items = [item for one in nodes for item in _items(one, context)]
    if node.args.get("where"):
        test = condition(context.compile(node.args["where"].this), "WHERE")
        from_sql += f" WHERE {test.sql}"
    # Two queries, one in the other: keys and aggregates are computed in the inner one, everything
    # that uses them stands outside. So no expression is written twice, and HAVING becomes a WHERE.
    if _is_grouped(node, items):
        from_sql, context, having = _group(node, items, from_sql, context)
    else:
        having = ""
        if node.args.get("having"):
            raise refusal("HAVING without GROUP BY")
    context = replace(context, allows_windows=True)
    # The same for windows: what they order and divide by is computed below them.
    if _is_windowed(node, items):
        context = replace(context, below=({}, context.statement.fresh("p")))
    found = _columns(items, context)
    return _finish(node, found, from_sql + having, context)


def _is_windowed(node: exp.Select, items: list[Item]) -> bool:
    order = node.args.get("order")
    trees = [item.node for item in items if item.node is not None]
    return any(map(has_window, trees if order is None else [*trees, order]))


def _below(context: Context, from_sql: str) -> str:
    """FROM of what windows need, where there are any. It is a query of its own, since DuckDB orders
    a window by no expression that may raise."""
    if context.below is None:
        return from_sql
    names, source = context.below
    selected = ", ".join(f"{sql} AS {name}" for sql, name in names.items())
    return f" FROM (SELECT {selected or '1 AS b0'}{from_sql}) AS {source}"


def _explode(
    nodes: list[exp.Expression], from_sql: str, context: Context
) -> tuple[list[exp.Expression], str, Context]:
    """explode() as a column of SELECT is a join with the elements."""
    done: list[exp.Expression] = []
    for node in nodes:
        call = node.this if isinstance(node, exp.Alias) else node
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if not isinstance(call, exp.Anonymous) or name not in {"explode", "explode_outer"}:
            done.append(node)
            continue
        if not from_sql or any(
            isinstance(one, exp.Alias) and one.meta.get("exploded") for one in done
        ):
            raise refusal("explode() here")
        hidden = context.statement.fresh("e")
        join, source = exploded(call, [hidden], context, outer=False)
        from_sql += f" {join}"
        shown = node.alias if isinstance(node, exp.Alias) else "col"
        context = replace(context, sources=(*context.sources, Source(None, source.columns)))
        alias = exp.Alias(this=exp.column(hidden, quoted=True), alias=exp.to_identifier(shown))
        alias.meta["exploded"] = True
        done.append(alias)
    if any(one.meta.get("exploded") for one in done) and any(one.find(exp.Star) for one in done):
        raise refusal("explode() beside *")
    return done, from_sql, context


def _items(node: exp.Expression, context: Context) -> list[Item]:
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        return [Item(node.alias, node.this)]
    if isinstance(node, exp.Aliases):
        raise refusal("several names for one column")
    if isinstance(node, exp.Star):
        only(node, "except_")
        return _star(context, None, node)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        only(node.this, "except_")
        return _star(context, node.table, node.this)
    return [Item(None, node)]


def _star(context: Context, table: str | None, node: exp.Star) -> list[Item]:
    sources = [
        source
        for source in context.sources
        if table is None or (source.alias or "").lower() == table.lower()
    ]
    if not sources:
        raise QueryError(f"there is no table {table}" if table else "* without FROM")
    left_out = {one.name.lower() for one in node.args.get("except_") or []}
    columns = list(context.merged) if table is None else []
    merged = {column.name.lower() for column in columns}
    for source in sources:
        columns += [one for one in source.columns if one.name.lower() not in merged]
    unknown = left_out - {column.name.lower() for column in columns}
    if unknown:
        raise QueryError(f"there is no column {', '.join(sorted(unknown))} for EXCEPT")
    return [
        Item(column.name, None, Typed(column.sql, column.type, column.name, column.is_bytes))
        for column in columns
        if column.name.lower() not in left_out
    ]


def _is_grouped(node: exp.Select, items: list[Item]) -> bool:
    if node.args.get("group"):
        return True
    order = node.args.get("order")
    having = node.args.get("having")
    trees = [item.node for item in items if item.node is not None]
    trees += [part for part in (order, having) if part is not None]
    return any(map(has_aggregate, trees))


def _group(
    node: exp.Select, items: list[Item], from_sql: str, context: Context
) -> tuple[str, Context, str]:
    """The inner query of keys and aggregates. Everything that names an aggregate is compiled here
    once, so that the inner query knows all of them."""
    keys = _keys(node, items, context)
    source = context.statement.fresh("q")
    found = Aggregation({key.sql: f"g{place}" for place, key in enumerate(keys, 1)})
    grouped = replace(context, grouped=(found, source), allows_windows=True)
    outputs = _columns(items, grouped)
    given = {name.lower(): item for name, item in outputs}
    having = ""
    if node.args.get("having"):
        inner = replace(grouped, given=given, allows_windows=False)
        test = condition(inner.compile(node.args["having"].this), "HAVING")
        having = f" WHERE {test.sql}"
    for part in node.args["order"].expressions if node.args.get("order") else []:
        # Compiled for what it notes: an aggregate that only ORDER BY names must be in the inner
        # query, too.
        if not (isinstance(part.this, exp.Literal) or _is_output(part.this, given)):
            replace(grouped, given=given, is_given_first=True).compile(part.this)
    selected = [f"{distinct_sql(key)} AS {found.keys[key.sql]}" for key in keys]
    selected += [f"{sql} AS {name}" for sql, name in found.aggregates.items()]
    by = ", ".join(str(place) for place in range(1, len(found.keys) + 1))
    inner_sql = f"SELECT {', '.join(selected) or '1'}{from_sql}" + (f" GROUP BY {by}" if by else "")
    if not selected:
        raise refusal("GROUP BY of nothing")
    return f" FROM ({inner_sql}) AS {source}", grouped, having


def _is_output(node: exp.Expression, given: dict[str, Typed]) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() in given


def _keys(node: exp.Select, items: list[Item], context: Context) -> list[Typed]:
    group = node.args.get("group")
    if group is None:
        return []
    only(group, "expressions", "all")
    if group.args.get("all"):
        plain = [item for item in items if item.node is None or not has_aggregate(item.node)]
        found = [_key(item, context) for item in plain]
    else:
        found = [_key_of(part, items, context) for part in group.expressions]
    keys: dict[str, Typed] = {}
    for key in found:
        if not key.type.is_plain:
            raise refusal(f"GROUP BY of {key.type}")
        keys.setdefault(key.sql, key)
    return list(keys.values())


def _key(item: Item, context: Context) -> Typed:
    if item.done is not None:
        return item.done
    if item.node is None or has_aggregate(item.node):
        raise QueryError("GROUP BY of an aggregate")
    return context.compile(item.node)


def _key_of(part: exp.Expression, items: list[Item], context: Context) -> Typed:
    if isinstance(part, exp.Literal) and not part.is_string:
        return _key(items[ordinal(part, len(items)) - 1], context)
    if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets):
        raise refusal(f"GROUP BY {type(part).__name__.upper()}")
    try:
        return context.compile(part)
    except QueryError:
        named = [
            item
            for item in items
            if isinstance(part, exp.Column)
            and not part.table
            and item.name is not None
            and item.name.lower() == part.name.lower()
        ]
        if not named:
            raise
        return _key(named[0], context)


def _columns(items: list[Item], context: Context) -> list[tuple[str, Typed]]:
    """The columns of SELECT with their names; a later one may use the name of an earlier."""
    found: list[tuple[str, Typed]] = []
    given: dict[str, Typed] = {}
    for item in items:
        value = item.done
        if value is None or context.grouped is not None or context.below is not None:
            value = _compiled(item, replace(context, given=dict(given)))
        name = item.name if item.name is not None else value.name
        if NAMELESS in name:
            raise refusal("a column whose name only Spark knows", "write AS …")
        found.append((name, value))
        if item.name is not None and item.node is not None:
            given[item.name.lower()] = value
    return found


def _compiled(item: Item, context: Context) -> Typed:
    if item.node is not None:
        return context.compile(item.node)
    done = item.done
    if done is None:
        raise QueryError("a column without a value")
    if context.grouped is not None:
        keys, source = context.grouped
        if done.sql not in keys.keys:
            raise QueryError(f"{done.label} is neither in GROUP BY nor in an aggregate")
        done = replace(done, sql=f"{source}.{keys.keys[done.sql]}")
    return done if context.below is None else from_below(done, *context.below)


def _finish(
    node: exp.Select, found: list[tuple[str, Typed]], from_sql: str, context: Context
) -> Query:
    columns = [
        Column(name, f"c{place}", item.type, item.is_bytes)
        for place, (name, item) in enumerate(found, 1)
    ]
    is_distinct = node.args.get("distinct") is not None
    selected = [
        f"{distinct_sql(item) if is_distinct else item.sql} AS c{place}"
        for place, (_, item) in enumerate(found, 1)
    ]
    by_sql = {item.sql: f"c{place}" for place, (_, item) in enumerate(found, 1)}
    if is_distinct and not all(item.type.is_plain for _, item in found):
        raise refusal("DISTINCT of arrays or structs")
    orders = []
    order = node.args.get("order")
    for part in order.expressions if order else []:
        only(part, "this", "desc", "nulls_first")
        value = _ordered_value(part.this, found, context)
        if not value.type.is_plain:
            raise refusal(f"ORDER BY of {value.type}")
        if value.sql not in by_sql:
            if is_distinct:
                raise refusal("SELECT DISTINCT with ORDER BY of what is not selected")
            by_sql[value.sql] = f"o{len(by_sql) + 1}"
            selected.append(f"{value.sql} AS {by_sql[value.sql]}")
        orders.append(f"{by_sql[value.sql]} {direction(part)}")
    word = "SELECT DISTINCT" if is_distinct else "SELECT"
    sql = f"{word} {', '.join(selected)}{_below(context, from_sql)}"
    return Query(sql, tuple(columns), tuple(orders), limit_of(node))


def _ordered_value(node: exp.Expression, found: list[tuple[str, Typed]], context: Context) -> Typed:
    if isinstance(node, exp.Literal) and not node.is_string:
        return found[ordinal(node, len(found)) - 1][1]
    given: dict[str, Typed] = {}
    for name, item in found:
        if (
            name.lower() in given
            and given[name.lower()].sql != item.sql
            and _is_output(node, {name.lower(): item})
        ):
            raise QueryError(f"ORDER BY {name} is ambiguous")
        given.setdefault(name.lower(), item)
    inner = replace(context, given=given, is_given_first=True, allows_windows=True)
    return inner.compile(node)
