"""Operators and conditions.

Every operand gets Spark's type first, so that DuckDB never chooses one itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sqlglot import exp

from kafkalog.dialect.arithmetic import arithmetic, divide, negate, whole_division
from kafkalog.dialect.casts import cast, widen
from kafkalog.dialect.errors import QueryError, only, refusal
from kafkalog.dialect.patterns import like
from kafkalog.dialect.scope import Context, handles
from kafkalog.dialect.typed import (
    Typed,
    computed,
)
from kafkalog.dialect.types import (
    BINARY,
    BOOLEAN,
    STRING,
    VOID,
    SqlType,
    as_decimal,
    common_type,
)
from kafkalog.dialect.values import negative_literal

_SYMBOLS = {exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def compared(left: Typed, right: Typed, what: str) -> tuple[Typed, Typed]:
    """Both in the type they are compared in."""
    # A text beside bytes is compared by its bytes.
    if {left.type, right.type} <= {STRING, BINARY} and left.type != right.type:
        target: SqlType | None = BINARY
    else:
        target = common_type(_counted(left, right), _counted(right, left))
    if target is None:
        raise QueryError(f"{what}: {left.type} and {right.type} cannot be compared")
    if not target.is_plain and target != VOID:
        raise refusal(f"{what} of {target}")
    first, second = widen([left, right], target)
    return first, second


def _counted(item: Typed, other: Typed) -> SqlType:
    """A number literal beside a decimal has only its digits."""
    if item.digits is not None and other.type.kind == "decimal":
        return as_decimal(item.digits)
    return item.type


@handles(exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
def _comparison(context: Context, node: exp.Binary) -> Typed:
    symbol = _SYMBOLS[type(node)]
    left, right = context.compile(node.this), context.compile(node.expression)
    first, second = compared(left, right, symbol)
    shown = (_whole_label(left, right, symbol, 0), _whole_label(right, left, symbol, 1))
    label = f"({shown[0]} {symbol} {shown[1]})"
    return computed(f"({first.sql} {symbol} {second.sql})", BOOLEAN, label)


def _whole_label(item: Typed, other: Typed, symbol: str, place: int) -> str:
    """Spark shows a fraction beside a whole number as the whole number that says the same."""
    is_fraction = item.is_literal and item.type.kind == "decimal"
    if symbol == "=" or not is_fraction or not other.type.is_integral:
        return item.label
    # Up for `i < 5.5`, `i >= 5.5`, `5.5 > i`, `5.5 <= i`.
    is_up = symbol in ({"<", ">="} if place == 1 else {">", "<="})
    value = Fraction(item.label)
    return str(math.ceil(value) if is_up else math.floor(value))


@handles(exp.NEQ)
def _not_equal(context: Context, node: exp.NEQ) -> Typed:
    left, right = context.compile(node.this), context.compile(node.expression)
    first, second = compared(left, right, "<>")
    label = f"(NOT ({left.label} = {right.label}))"
    return computed(f"({first.sql} <> {second.sql})", BOOLEAN, label)


@handles(exp.NullSafeEQ)
def _null_safe(context: Context, node: exp.NullSafeEQ) -> Typed:
    left, right = context.compile(node.this), context.compile(node.expression)
    first, second = compared(left, right, "<=>")
    sql = f"({first.sql} IS NOT DISTINCT FROM {second.sql})"
    return computed(sql, BOOLEAN, f"({left.label} <=> {right.label})")


def condition(item: Typed, what: str) -> Typed:
    """A boolean, or NULL."""
    if item.type == VOID:
        return cast(item, BOOLEAN)
    if item.type != BOOLEAN:
        raise QueryError(f"{what} needs a condition, not {item.type}")
    return item


@handles(exp.And, exp.Or)
def _connector(context: Context, node: exp.Binary) -> Typed:
    word = "AND" if isinstance(node, exp.And) else "OR"
    left = condition(context.compile(node.this), word)
    right = condition(context.compile(node.expression), word)
    return computed(
        f"({left.sql} {word} {right.sql})", BOOLEAN, f"({left.label} {word} {right.label})"
    )


@handles(exp.Not)
def _not(context: Context, node: exp.Not) -> Typed:
    if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        item = context.compile(node.this.this)
        return computed(f"({item.sql} IS NOT NULL)", BOOLEAN, f"({item.label} IS NOT NULL)")
    item = condition(context.compile(node.this), "NOT")
    return computed(f"(NOT {item.sql})", BOOLEAN, f"(NOT {item.label})")


@handles(exp.Is)
def _is(context: Context, node: exp.Is) -> Typed:
    item = context.compile(node.this)
    if not isinstance(node.expression, exp.Null):
        raise refusal(f"IS {node.expression.sql()}")
    return computed(f"({item.sql} IS NULL)", BOOLEAN, f"({item.label} IS NULL)")


@handles(exp.Between)
def _between(context: Context, node: exp.Between) -> Typed:
    only(node, "this", "low", "high")
    item, low, high = (context.compile(node.args[part]) for part in ("this", "low", "high"))
    # Twice, for either bound may ask for another type of the item.
    first, bottom = compared(item, low, "BETWEEN")
    second, top = compared(item, high, "BETWEEN")
    label = f"between({item.label}, {low.label}, {high.label})"
    sql = f"(({first.sql} >= {bottom.sql}) AND ({second.sql} <= {top.sql}))"
    return computed(sql, BOOLEAN, label)


@handles(exp.In)
def _in(context: Context, node: exp.In) -> Typed:
    only(node, "this", "expressions", "query")
    if node.args.get("query"):
        from kafkalog.dialect.subqueries import in_query

        return in_query(context, node)
    items = [context.compile(part) for part in (node.this, *node.expressions)]
    target = items[0].type
    for item in items[1:]:
        found = common_type(target, item.type)
        if found is None:
            raise QueryError(f"IN: {target} and {item.type} cannot be compared")
        target = found
    if not target.is_plain:
        raise refusal(f"IN of {target}")
    first, *rest = widen(items, target)
    label = f"({items[0].label} IN ({', '.join(item.label for item in items[1:])}))"
    return computed(f"({first.sql} IN ({', '.join(one.sql for one in rest)}))", BOOLEAN, label)


@handles(exp.Case)
def _case(context: Context, node: exp.Case) -> Typed:
    only(node, "this", "ifs", "default")
    tests, results = [], []
    for branch in node.args["ifs"]:
        test: exp.Expression = branch.this
        if node.this is not None:
            # CASE x WHEN y is CASE WHEN x = y: the rules are those of a comparison.
            test = exp.EQ(this=node.this.copy(), expression=test.copy())
        tests.append(condition(context.compile(test), "WHEN"))
        results.append(context.compile(branch.args["true"]))
    default = node.args.get("default")
    if default is not None:
        results.append(context.compile(default))
    label = "CASE"
    for asked, result in zip(tests, results, strict=False):
        label += f" WHEN {asked.label} THEN {result.label}"
    label += (f" ELSE {results[-1].label}" if default is not None else "") + " END"
    return choice(tests, results, label)


def choice(tests: list[Typed], results: list[Typed], label: str) -> Typed:
    """CASE with results of one type; the last may be the one for no test."""
    target = together(results, "CASE")
    done = widen(results, target)
    sql = "CASE"
    for test, result in zip(tests, done, strict=False):
        sql += f" WHEN {test.sql} THEN {result.sql}"
    sql += (f" ELSE {done[-1].sql}" if len(done) > len(tests) else "") + " END"
    return computed(f"({sql})", target, label, is_bytes=done[0].is_bytes)


def together(items: list[Typed], what: str) -> SqlType:
    """The type that all of them have."""
    target = VOID
    # Strings come last, as in Spark: they take the type of the others.
    for item in sorted(items, key=lambda one: one.type == STRING):
        found = common_type(target, item.type)
        if found is None:
            raise QueryError(f"{what}: {target} and {item.type} have no common type")
        target = found
    return target


@handles(exp.Add, exp.Sub, exp.Mul, exp.Mod)
def _arithmetic(context: Context, node: exp.Binary) -> Typed:
    return arithmetic(context, node)


@handles(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
def _bits(context: Context, node: exp.Binary) -> Typed:
    symbol = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}[type(node)]
    left, right = context.compile(node.this), context.compile(node.expression)
    target = common_type(left.type, right.type)
    if target is None or not target.is_integral or STRING in (left.type, right.type):
        raise refusal(f"{symbol} of {left.type} and {right.type}")
    first, second = cast(left, target).sql, cast(right, target).sql
    sql = f"xor({first}, {second})" if symbol == "^" else f"({first} {symbol} {second})"
    return computed(sql, target, f"({left.label} {symbol} {right.label})")


@handles(exp.BitwiseNot)
def _bits_not(context: Context, node: exp.BitwiseNot) -> Typed:
    item = context.compile(node.this)
    if not item.type.is_integral:
        raise refusal(f"~ of {item.type}")
    return computed(f"(~{item.sql})", item.type, f"~{item.label}")


@handles(exp.Div)
def _division(context: Context, node: exp.Div) -> Typed:
    return divide(context.compile(node.this), context.compile(node.expression))


@handles(exp.IntDiv)
def _whole_division(context: Context, node: exp.IntDiv) -> Typed:
    return whole_division(context.compile(node.this), context.compile(node.expression))


@handles(exp.Neg)
def _negative(context: Context, node: exp.Neg) -> Typed:
    if isinstance(node.this, exp.Literal | exp.Column):
        item = context.compile(node.this)
        if item.is_literal and item.type.is_number:
            return negative_literal(item)
        return negate(item)
    return negate(context.compile(node.this))


@handles(exp.DPipe)
def _concatenation(context: Context, node: exp.DPipe) -> Typed:
    from kafkalog.dialect.functions import concat

    return concat([context.compile(part) for part in _operands(node)], nested=True)


def _operands(node: exp.DPipe) -> list[exp.Expression]:
    return [node.this, node.expression]


@handles(exp.Like, exp.Escape, exp.RegexpLike, exp.ILike)
def _like(context: Context, node: exp.Expression) -> Typed:
    return like(context, node)
