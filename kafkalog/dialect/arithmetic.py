"""Arithmetic with Spark's types and errors: what overflows or divides by zero raises."""

from __future__ import annotations

from sqlglot import exp

from kafkalog.dialect.casts import cast
from kafkalog.dialect.errors import QueryError, refusal
from kafkalog.dialect.intervals import plus_interval
from kafkalog.dialect.scope import Context
from kafkalog.dialect.typed import Typed, computed
from kafkalog.dialect.types import (
    BIGINT,
    DOUBLE,
    STRING,
    VOID,
    SqlType,
    as_decimal,
    common_type,
    decimal,
    in_duckdb,
)

_SYMBOLS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%"}


def arithmetic(context: Context, node: exp.Binary) -> Typed:
    """`+ - * %`."""
    if isinstance(node, exp.Add | exp.Sub) and node.find(exp.Interval) is not None:
        return plus_interval(context, node)
    symbol = _SYMBOLS[type(node)]
    left, right = context.compile(node.this), context.compile(node.expression)
    return number_operation(symbol, left, right, f"({left.label} {symbol} {right.label})")


def number_operation(symbol: str, left: Typed, right: Typed, label: str) -> Typed:
    """Two numbers; `symbol` is one of `+ - * %`."""
    left, right = numbers(left, right, symbol)
    target = common_type(left.type, right.type)
    if target is None:
        raise QueryError(f"{symbol}: {left.type} and {right.type} are no numbers")
    if target.kind == "decimal":
        return _decimal_operation(symbol, left, right, label)
    first, second = cast(left, target).sql, cast(right, target).sql
    if symbol == "%":
        return computed(f"spark_remainder({first}, {second})", target, label)
    # DuckDB raises for a sum of TINYINTs that is too large, too; it never widens.
    return computed(f"({first} {symbol} {second})", target, label)


def numbers(left: Typed, right: Typed, symbol: str) -> tuple[Typed, Typed]:
    """Both as numbers: a text beside a number is read as one."""
    if left.type == STRING and right.type.is_number:
        left = cast(left, BIGINT if right.type.is_integral else DOUBLE)
    elif right.type == STRING and left.type.is_number:
        right = cast(right, BIGINT if left.type.is_integral else DOUBLE)
    if left.type == VOID and right.type.is_number:
        left = cast(left, right.type)
    elif right.type == VOID and left.type.is_number:
        right = cast(right, left.type)
    for item in (left, right):
        if not item.type.is_number:
            raise refusal(f"{symbol} of {left.type} and {right.type}")
    return left, right


def _as_decimal(item: Typed) -> SqlType:
    return as_decimal(item.digits if item.digits is not None else item.type)


def _decimal_operation(symbol: str, left: Typed, right: Typed, label: str) -> Typed:
    one, two = _as_decimal(left), _as_decimal(right)
    # Precision and scale of the results are Spark's (DecimalPrecision): as many digits as the
    # operation can come to.
    scale = max(one.scale, two.scale)
    whole = max(one.precision - one.scale, two.precision - two.scale)
    if symbol == "*":
        target = decimal(one.precision + two.precision + 1, one.scale + two.scale)
        first, second = cast(left, one).sql, cast(right, two).sql
    elif symbol == "%":
        smaller = min(one.precision - one.scale, two.precision - two.scale)
        target = decimal(smaller + scale, scale)
        both = decimal(whole + scale, scale)
        sql = f"spark_remainder({cast(left, both).sql}, {cast(right, both).sql})"
        return computed(f"CAST({sql} AS {in_duckdb(target)})", target, label)
    else:
        target = decimal(whole + scale + 1, scale)
        first, second = cast(left, target).sql, cast(right, target).sql
    return computed(f"CAST(({first} {symbol} {second}) AS {in_duckdb(target)})", target, label)


def divide(left: Typed, right: Typed) -> Typed:
    """`/`: a double, or a decimal of at least six digits behind the point."""
    label = f"({left.label} / {right.label})"
    left, right = numbers(left, right, "/")
    if "decimal" in (left.type.kind, right.type.kind) and DOUBLE not in (left.type, right.type):
        one, two = _as_decimal(left), _as_decimal(right)
        scale = max(6, one.scale + two.precision + 1)
        target = decimal(one.precision - one.scale + two.scale + scale, scale)
        return computed(decimal_quotient(cast(left, one), cast(right, two), target), target, label)
    first, second = cast(left, DOUBLE).sql, cast(right, DOUBLE).sql
    return computed(f"spark_quotient({first}, {second})", DOUBLE, label)


def decimal_quotient(left: Typed, right: Typed, target: SqlType) -> str:
    """Rounded half up, by whole numbers: DuckDB's own division of decimals is one of doubles."""
    up = target.scale - left.type.scale + right.type.scale
    if left.type.precision + up > 38:
        raise refusal(f"{left.type} / {right.type}", "more than 38 digits on the way")
    first = _unscaled(left)
    second = _unscaled(right)
    return (
        f"CAST(spark_decimal_quotient({first} * {10**up}::HUGEINT, {second}, {target.scale}) "
        f"AS {in_duckdb(target)})"
    )


def _unscaled(item: Typed) -> str:
    """A decimal's digits as a whole number."""
    digits = item.sql if item.type.scale == 0 else f"replace(CAST({item.sql} AS VARCHAR), '.', '')"
    return f"CAST({digits} AS HUGEINT)"


def whole_division(left: Typed, right: Typed) -> Typed:
    """`div`."""
    label = f"({left.label} div {right.label})"
    left, right = numbers(left, right, "div")
    if not (left.type.is_integral and right.type.is_integral):
        raise refusal(f"div of {left.type} and {right.type}")
    first, second = cast(left, BIGINT).sql, cast(right, BIGINT).sql
    return computed(f"spark_whole_quotient({first}, {second})", BIGINT, label)


def negate(item: Typed) -> Typed:
    if item.type == STRING or not item.type.is_number:
        raise refusal(f"- of {item.type}")
    return computed(f"(-{item.sql})", item.type, f"(- {item.label})")
