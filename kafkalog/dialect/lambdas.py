"""Functions of arrays that take a lambda: transform, filter, exists."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from kafkalog.dialect.errors import refusal
from kafkalog.dialect.operators import condition
from kafkalog.dialect.scope import Context
from kafkalog.dialect.typed import Typed, computed, exact_text
from kafkalog.dialect.types import BOOLEAN, array

_VARIABLE = "namedlambdavariable()"


def _applied(context: Context, node: exp.Anonymous) -> tuple[Typed, str, Typed]:
    """The array, DuckDB's name for an element, and the lambda's body for it."""
    name = str(node.this).lower()
    if len(node.expressions) != 2 or not isinstance(node.expressions[1], exp.Lambda):
        raise refusal(f"{name}() of this form")
    given, function = context.compile(node.expressions[0]), node.expressions[1]
    if given.type.element is None or len(function.expressions) != 1:
        raise refusal(f"{name}() of {given.type} with {len(function.expressions)} names")
    variable = f"l{len(context.lambda_names) + 1}"
    element = Typed(variable, given.type.element, _VARIABLE)
    # Over groups and beside windows a column is found by its whole expression: not in here.
    is_layered = context.grouped is not None or context.below is not None
    inner = replace(
        context,
        lambda_names={**context.lambda_names, function.expressions[0].name.lower(): element},
        grouped=None,
        below=None,
        sources=() if is_layered else context.sources,
        merged=() if is_layered else context.merged,
        given={},
    )
    return given, variable, inner.compile(function.this)


def _label(name: str, given: Typed, body: Typed) -> str:
    return f"{name}({given.label}, lambdafunction({body.label}, {_VARIABLE}))"


def transform(context: Context, node: exp.Anonymous) -> Typed:
    given, variable, body = _applied(context, node)
    sql = f"list_transform({given.sql}, lambda {variable}: {exact_text(body)})"
    return computed(sql, array(body.type), _label("transform", given, body))


def filtered(context: Context, node: exp.Anonymous) -> Typed:
    given, variable, body = _applied(context, node)
    test = condition(body, "filter()")
    sql = f"list_filter({given.sql}, lambda {variable}: coalesce({test.sql}, false))"
    return computed(sql, given.type, _label("filter", given, body))


def exists(context: Context, node: exp.Anonymous) -> Typed:
    """NULL where no element is found and one is not known."""
    given, variable, body = _applied(context, node)
    test = condition(body, "exists()").sql
    found = f"len(list_filter({given.sql}, lambda {variable}: coalesce({test}, false))) > 0"
    unknown = f"len(list_filter({given.sql}, lambda {variable}: ({test}) IS NULL)) > 0"
    sql = (
        f"(CASE WHEN {given.sql} IS NULL THEN NULL WHEN {found} THEN true "
        f"WHEN {unknown} THEN NULL ELSE false END)"
    )
    return computed(sql, BOOLEAN, _label("exists", given, body))
