"""Names: which column of which source is meant, seen from where in a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from kafkalog.dialect.errors import QueryError, near, place_of, refusal
from kafkalog.dialect.typed import Typed
from kafkalog.dialect.types import SqlType, of_arrow, quoted

# In a label: Spark's name for it is not known here.
NAMELESS = "\0"


@dataclass(frozen=True)
class Column:
    """A column of a source: its name for people, and its text in DuckDB."""

    name: str
    sql: str
    type: SqlType
    is_bytes: bool = False
    sized: tuple[str, str] | None = None  # as of `Typed`


@dataclass(frozen=True)
class Source:
    """What stands in FROM: a view, a common table, a subquery."""

    alias: str | None
    columns: tuple[Column, ...]


@dataclass
class Statement:
    """What a whole query shares: the views, common tables found so far, numbers for new names.

    lengths: by view, the columns that hold the lengths of others. They are not in its schema."""

    schemas: Mapping[str, pa.Schema]
    lengths: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    common: list[str] = field(default_factory=list)
    numbers: int = 0
    # Whether the subquery at hand names a column from outside of it.
    takes_outer: bool = False

    def fresh(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"


@dataclass(frozen=True)
class CommonTable:
    """A name of WITH."""

    sql_name: str
    columns: tuple[Column, ...]


@dataclass
class Aggregation:
    """What a query with groups has: texts of its keys, and of its aggregates, each with the name
    of the column that holds it."""

    keys: dict[str, str] = field(default_factory=dict)
    aggregates: dict[str, str] = field(default_factory=dict)

    def column_of(self, sql: str, source: str) -> str:
        """Where the aggregate `sql` is found: computed once."""
        name = self.aggregates.setdefault(sql, f"a{len(self.aggregates) + 1}")
        return f"{source}.{name}"


@dataclass(frozen=True)
class Context:
    """From where an expression is seen."""

    statement: Statement
    sources: tuple[Source, ...] = ()
    parent: Context | None = None
    tables: Mapping[str, CommonTable] = field(default_factory=dict)
    # Columns of JOIN … USING, which need no source's name.
    merged: tuple[Column, ...] = ()
    # Names given in SELECT, for later items, GROUP BY, HAVING and ORDER BY.
    given: Mapping[str, Typed] = field(default_factory=dict)
    is_given_first: bool = False
    lambda_names: Mapping[str, Typed] = field(default_factory=dict)
    grouped: tuple[Aggregation, str] | None = None
    # Where windows are: what they need is computed below them, under a name each.
    below: tuple[dict[str, str], str] | None = None
    allows_windows: bool = False

    def compile(self, node: exp.Expression) -> Typed:
        """The expression below `node`."""
        if self.below is not None:
            return _compile_above(self, node, *self.below)
        if self.grouped is not None:
            return _compile_grouped(self, node, *self.grouped)
        return _handled(self, node)

    def before_groups(self) -> Context:
        return replace(self, grouped=None, allows_windows=False, given={})

    def view(self, name: str) -> tuple[str, pa.Schema] | None:
        for known, schema in self.statement.schemas.items():
            if known.lower() == name.lower():
                return known, schema
        return None


Handler = Callable[[Context, Any], Typed]
_Rule = TypeVar("_Rule", bound=Callable[[Any, Any], Typed])
HANDLERS: dict[type[exp.Expression], Handler] = {}
# Functions whose argument is a set of rows; `aggregates` fills it.
AGGREGATES: set[str] = set()


def handles(*kinds: type[exp.Expression]) -> Callable[[_Rule], _Rule]:
    """Marks the rule for a kind of node."""

    def register(handler: _Rule) -> _Rule:
        HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


def is_aggregate(node: exp.Expression) -> bool:
    """A call of an aggregate, with its FILTER."""
    if isinstance(node, exp.Filter):
        return is_aggregate(node.this)
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in AGGREGATES


def has_aggregate(node: exp.Expression) -> bool:
    """Whether an aggregate stands in `node`, not counting windows and subqueries."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if is_aggregate(node):
        return True
    if isinstance(node, exp.Window):
        inner = [*node.this.iter_expressions()] if is_aggregate(node.this) else [node.this]
        parts = [*inner, *node.args.get("partition_by", []), *_order_of(node)]
        return any(map(has_aggregate, parts))
    return any(map(has_aggregate, node.iter_expressions()))


def _order_of(node: exp.Window) -> list[exp.Expression]:
    order = node.args.get("order")
    return [] if order is None else [order]


def _compile_grouped(
    context: Context, node: exp.Expression, found: Aggregation, source: str
) -> Typed:
    """`node` over groups: a key as a whole, an aggregate, or an expression of such."""
    # Spark's rule for a query with groups: an expression is a key as a whole, or an aggregate, or
    # made of such. So the whole is tried first; if its text is a key's it is that column, and if
    # not its parts are looked at one by one.
    inner = context.before_groups()
    if not isinstance(node, exp.Literal | exp.Query | exp.Subquery | exp.Exists) and not (
        is_aggregate(node) or has_aggregate(node) or node.find(exp.Window)
    ):
        try:
            whole = inner.compile(node)
        except QueryError:
            if isinstance(node, exp.Column) and not _is_given(context, node):
                raise
        else:
            if whole.is_outer:
                return whole
            if whole.sql in found.keys:
                return replace(whole, sql=f"{source}.{found.keys[whole.sql]}")
    if isinstance(node, exp.Column) and not _is_given(context, node):
        raise QueryError(f"{node.sql()}{place_of(node)} is neither in GROUP BY nor in an aggregate")
    return HANDLERS[type(node)](context, node) if type(node) in HANDLERS else inner.compile(node)


def _compile_above(
    context: Context, node: exp.Expression, names: dict[str, str], source: str
) -> Typed:
    """`node` beside windows: what has none in it is a column of the query below."""
    names_given = any(_is_given(context, one) for one in node.find_all(exp.Column))
    is_leaf = isinstance(node, exp.Literal | exp.Null)
    if is_leaf or has_window(node) or (names_given and not isinstance(node, exp.Column)):
        return _handled(context, node)
    if names_given and context.is_given_first:
        return _handled(context, node)
    item = replace(context, below=None).compile(node)
    given = context.given.get(node.name.lower()) if names_given else None
    if item.is_literal or (given is not None and item.sql == given.sql):
        return item
    return from_below(item, names, source)


def from_below(item: Typed, names: dict[str, str], source: str) -> Typed:
    """The column of the query below that has `item`."""
    name = names.setdefault(item.sql, f"b{len(names) + 1}")
    return replace(item, sql=f"{source}.{name}")


def has_window(node: exp.Expression) -> bool:
    """Whether a window function stands in `node` itself, not in a query inside of it."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    return isinstance(node, exp.Window) or any(map(has_window, node.iter_expressions()))


def _handled(context: Context, node: exp.Expression) -> Typed:
    handler = HANDLERS.get(type(node))
    if handler is None:
        raise refusal(f"{type(node).__name__.upper()}{place_of(node)}")
    return handler(context, node)


def _is_given(context: Context, node: exp.Column) -> bool:
    return not node.args.get("table") and node.name.lower() in context.given


def resolve(context: Context, parts: list[str], node: exp.Expression) -> Typed:
    """The column that `parts` names, or a field of it."""
    # From the inside out: the nearest query that has the name wins, as in Spark. A name that is
    # found outside makes the subquery depend on the row there.
    at: Context | None = context
    while at is not None:
        found = _resolve_here(at, parts, node)
        if found is not None:
            if at is context:
                return found
            context.statement.takes_outer = True
            return replace(found, is_outer=True)
        at = at.parent
    raise QueryError(f"there is no column {'.'.join(parts)}{place_of(node)}{_near(context, parts)}")


def _near(context: Context, parts: list[str]) -> str:
    chosen = [
        source
        for source in context.sources
        if len(parts) == 1 or (source.alias or "").lower() == parts[0].lower()
    ]
    names = [column.name for source in chosen or context.sources for column in source.columns]
    return near(parts[-1], names)


def _resolve_here(context: Context, parts: list[str], node: exp.Expression) -> Typed | None:
    # In this order: a lambda's parameter, a name given in SELECT where those come first, a source
    # by its alias, a column, at last a name given in SELECT.
    first = parts[0].lower()
    if first in context.lambda_names:
        return _fields(context.lambda_names[first], parts[1:], node)
    given = context.given.get(first)
    if given is not None and context.is_given_first:
        return _fields(replace(given, label=parts[0], column_name=None), parts[1:], node)
    if len(parts) > 1:
        for source in context.sources:
            if source.alias is not None and source.alias.lower() == first:
                found = _among(source.columns, parts[1], node)
                return None if found is None else _fields(found, parts[2:], node)
    merged = _among(context.merged, parts[0], node)
    columns = [column for source in context.sources for column in source.columns]
    found = merged or _among(columns, parts[0], node)
    if found is None and given is not None:
        found = replace(given, label=parts[0], column_name=None)
    return None if found is None else _fields(found, parts[1:], node)


def _among(
    columns: tuple[Column, ...] | list[Column], name: str, node: exp.Expression
) -> Typed | None:
    found = [column for column in columns if column.name.lower() == name.lower()]
    if len(found) > 1:
        raise QueryError(f"column {name}{place_of(node)} is ambiguous: name its table too")
    if not found:
        return None
    column = found[0]
    return Typed(column.sql, column.type, name, column.is_bytes, sized=column.sized)


def _fields(item: Typed, names: list[str], node: exp.Expression) -> Typed:
    for name in names:
        item = field_of(item, name, node)
    return item


def field_of(item: Typed, name: str, node: exp.Expression) -> Typed:
    """A field of a struct, or of each struct of an array."""
    of = item.type.element if item.type.element is not None else item.type
    if of.kind != "struct":
        raise QueryError(f"{item.label} of type {item.type} has no field {name}{place_of(node)}")
    found = [(one, type_) for one, type_ in of.fields if one.lower() == name.lower()]
    if not found:
        known = [one for one, _ in of.fields]
        raise QueryError(
            f"there is no field {name} in {item.label}{place_of(node)}{near(name, known)}"
        )
    if len(found) > 1:
        raise QueryError(f"field {name} of {item.label} is ambiguous{place_of(node)}")
    exact, type_ = found[0]
    label = f"{item.label}.{name}"
    if item.type.element is None:
        return Typed(f"({item.sql}).{quoted(exact)}", type_, label, column_name=name)
    sql = f"list_transform({item.sql}, lambda each: each.{quoted(exact)})"
    return Typed(sql, SqlType("array", element=type_), label, column_name=name)


def columns_of(schema: pa.Schema, alias: str, lengths: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns of a view that stands under `alias`."""

    def column(item: pa.Field) -> Column:
        sql, length = f"{alias}.{quoted(item.name)}", lengths.get(item.name)
        sized = None if length is None else (sql, f"{alias}.{quoted(length)}")
        return Column(item.name, sql, of_arrow(item.type, item.name), sized=sized)

    return tuple(map(column, schema))
