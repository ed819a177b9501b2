"""Aggregates, over groups and in windows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from kafkalog.dialect.arithmetic import decimal_quotient
from kafkalog.dialect.casts import cast
from kafkalog.dialect.errors import QueryError, only, place_of, refusal
from kafkalog.dialect.operators import condition
from kafkalog.dialect.scope import AGGREGATES, Context, handles
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    SqlType,
    array,
    decimal,
    in_duckdb,
)

# The text around `{}`, where FILTER and OVER go behind each call, and the type.
Built = tuple[list[str], str, SqlType, bool]
Builder = Callable[[list[Typed], str, str], Built]


def _one(given: list[Typed], name: str) -> Typed:
    if len(given) != 1:
        raise refusal(f"{name}() of {len(given)} arguments")
    return given[0]


def _count(given: list[Typed], distinct: str, name: str) -> Built:
    if not given:
        return ["count(*)"], "{0}", BIGINT, False
    for item in given:
        if not item.type.is_plain and (distinct or item.type.kind == "void"):
            raise refusal(f"count() of {item.type}")
    if len(given) == 1:
        return [f"count({distinct}{given[0].sql})"], "{0}", BIGINT, False
    # A row counts if none of them is NULL.
    whole = " AND ".join(f"{item.sql} IS NOT NULL" for item in given)
    row = ", ".join(f"c{place}: {item.sql}" for place, item in enumerate(given))
    value = f"CASE WHEN {whole} THEN {{{row}}} END"
    return [f"count({distinct}{value})"], "{0}", BIGINT, False


def _sum(given: list[Typed], distinct: str, name: str) -> Built:
    item = _one(given, name)
    if item.type.is_integral:
        return [f"sum({distinct}{item.sql})"], "CAST({0} AS BIGINT)", BIGINT, False
    if item.type == DOUBLE:
        return [f"sum({distinct}{item.sql})"], "{0}", DOUBLE, False
    if item.type.kind == "decimal":
        target = decimal(min(item.type.precision + 10, 38), item.type.scale)
        return [f"sum({distinct}{item.sql})"], f"CAST({{0}} AS {in_duckdb(target)})", target, False
    raise refusal(f"{name}() of {item.type}")


def _average(given: list[Typed], distinct: str, name: str) -> Built:
    """Spark adds doubles, where DuckDB adds whole numbers."""
    item = _one(given, name)
    if item.type.is_integral or item.type == DOUBLE:
        value = cast(item, DOUBLE).sql
        calls = [f"sum({distinct}{value})", f"count({distinct}{value})"]
        return calls, "({0} / {1})", DOUBLE, False
    if item.type.kind == "decimal" and item.type.precision <= 20:
        total = computed("{0}", decimal(item.type.precision + 10, item.type.scale), "")
        count = computed("{1}", decimal(20, 0), "")
        target = decimal(item.type.precision + 4, item.type.scale + 4)
        sql = decimal_quotient(total, count, target)
        calls = [f"sum({distinct}{item.sql})", f"nullif(count({distinct}{item.sql}), 0)"]
        return calls, sql, target, False
    raise refusal(f"{name}() of {item.type}")


def _extreme(given: list[Typed], distinct: str, name: str) -> Built:
    item = _one(given, name)
    if not item.type.is_plain:
        raise refusal(f"{name}() of {item.type}")
    return [f"{name}({item.sql})"], "{0}", item.type, item.is_bytes


def _count_if(given: list[Typed], distinct: str, name: str) -> Built:
    test = condition(_one(given, name), name)
    if distinct:
        raise refusal("count_if(DISTINCT …)")
    return [f"count(CASE WHEN {test.sql} THEN 1 END)"], "{0}", BIGINT, False


def _all(given: list[Typed], distinct: str, name: str) -> Built:
    return [f"bool_and({condition(_one(given, name), name).sql})"], "{0}", BOOLEAN, False


def _any(given: list[Typed], distinct: str, name: str) -> Built:
    return [f"bool_or({condition(_one(given, name), name).sql})"], "{0}", BOOLEAN, False


def _value_by(given: list[Typed], distinct: str, name: str) -> Built:
    """Of rows that tie either engine takes any one; a NULL beside the extreme is its value."""
    if len(given) != 2 or distinct or not given[1].type.is_plain:
        raise refusal(f"{name}() of this form")
    item, by = given
    function = "max" if name == "max_by" else "min"
    # A struct around the value: DuckDB passes over a NULL, which beside the extreme is Spark's
    # answer.
    call = f"arg_{function}({{v: {item.sql}}}, {by.sql})"
    return [call], "({0}).v", item.type, item.is_bytes


def _collect(given: list[Typed], distinct: str, name: str) -> Built:
    item = _one(given, name)
    if not item.type.is_plain:
        raise refusal(f"{name}() of {item.type}")
    is_set = "DISTINCT " if name == "collect_set" or distinct else ""
    call = f"list({is_set}{item.sql}) FILTER (WHERE {item.sql} IS NOT NULL)"
    # Of no rows Spark gives an empty array, DuckDB NULL.
    value = "coalesce({0}, [])"
    if item.is_bytes:
        value = f"list_transform({value}, lambda b: spark_exact_text(b))"
    return [call], value, array(item.type), False


_BUILDERS: dict[str, Builder] = {
    "count": _count, "sum": _sum, "avg": _average, "mean": _average, "min": _extreme,
    "max": _extreme, "count_if": _count_if, "every": _all, "bool_and": _all, "some": _any,
    "any": _any, "bool_or": _any, "max_by": _value_by, "min_by": _value_by,
}  # fmt: skip
_COLLECTORS = ("collect_list", "collect_set", "array_agg")
AGGREGATES.update(_BUILDERS, _COLLECTORS)


def aggregate(context: Context, node: exp.Anonymous, test: exp.Expression | None) -> Typed:
    """An aggregate over the groups of the query."""
    if context.grouped is None:
        raise QueryError(f"aggregate {node.this}(){place_of(node)} is not possible in this place")
    found, source = context.grouped
    calls, value, type_, is_bytes, label = build(context.before_groups(), node, test)
    columns = [found.column_of(call, source) for call in calls]
    return computed(value.format(*columns), type_, label, is_bytes=is_bytes)


def build(
    inner: Context, node: exp.Anonymous, test: exp.Expression | None
) -> tuple[list[str], str, SqlType, bool, str]:
    """The calls of an aggregate, with FILTER, and what is made of their results."""
    name = str(node.this).lower()
    arguments, distinct = list(node.expressions), ""
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = arguments[0].expressions, "DISTINCT "
    if any(isinstance(argument, exp.Star) for argument in arguments):
        if name != "count" or distinct or len(arguments) > 1:
            raise refusal(f"{name}(*)")
        only(arguments[0])
        arguments, shown = [], ["1"]
        given: list[Typed] = []
    else:
        given = [inner.compile(argument) for argument in arguments]
        shown = [item.label for item in given]
        if not given:
            raise refusal(f"{name}() of nothing")
    builder = _BUILDERS.get(name, _collect)
    if name in _COLLECTORS and test is not None:
        raise refusal(f"{name}() with FILTER")
    if name in _COLLECTORS and "unordered" not in node.meta:
        raise refusal(
            f"{name}(){place_of(node)}",
            f"the order is not the same: sort_array({name}(…)) or size({name}(…)) is",
        )
    calls, value, type_, is_bytes = builder(given, distinct, name)
    label = f"{name}({distinct}{', '.join(shown)})"
    if test is not None:
        where = condition(inner.compile(test), "FILTER")
        calls = [f"{call} FILTER (WHERE {where.sql})" for call in calls]
        label += f" FILTER (WHERE {where.label})"
    return calls, value, type_, is_bytes, label


@handles(exp.Filter)
def _filter(context: Context, node: exp.Filter) -> Typed:
    if not isinstance(node.this, exp.Anonymous):
        raise refusal("FILTER of this form")
    return aggregate(context, node.this, node.expression.this)
