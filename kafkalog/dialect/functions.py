"""The functions that are known to give Spark's values: the list that is allowed.

`SIMPLE` has those that are a text with places for the arguments, `SPECIAL` those with rules of
their own. Whoever adds one adds a row to `tests/dialect/test_functions.py`, which runs it on
both engines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from kafkalog.dialect.casts import (
    cast,
    coerce_to_text,
    to_integer,
    to_timestamp,
    widen,
)
from kafkalog.dialect.errors import near, only, place_of, refusal
from kafkalog.dialect.scope import AGGREGATES, Context, handles
from kafkalog.dialect.typed import (
    Typed,
    as_blob,
    computed,
    exact_text,
    shown_text,
)
from kafkalog.dialect.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
)

Build = Callable[[list[Typed], str], Typed]


@dataclass(frozen=True)
class Simple:
    """`takes` has a letter an argument: t text, s text as it is shown, b bytes, i int, l bigint,
    d double, T timestamp, D date, o boolean. What is in brackets at the end may be missing."""

    takes: str
    gives: SqlType
    sql: str
    label: str = ""


_TEXT_RULES: dict[str, Callable[[Typed, str], str]] = {
    "t": lambda item, what: exact_text(coerce_to_text(item)),
    "s": lambda item, what: shown_text(coerce_to_text(item)),
    "b": lambda item, what: as_blob(item if item.type == BINARY else coerce_to_text(item)),
    "i": to_integer,
    "l": lambda item, what: _number(item, BIGINT, what),
    "d": lambda item, what: _number(item, DOUBLE, what),
    "T": to_timestamp,
    "D": lambda item, what: _day(item, what),
}


def _number(item: Typed, target: SqlType, what: str) -> str:
    fits = item.type.is_integral if target == BIGINT else item.type.is_number
    if not fits:
        raise refusal(f"{what} of type {item.type}")
    return cast(item, target).sql


def _day(item: Typed, what: str) -> str:
    if item.type in (DATE, TIMESTAMP, STRING):
        return cast(item, DATE).sql
    raise refusal(f"{what} of type {item.type}")


SIMPLE: dict[str, Simple] = {
    "upper": Simple("s", STRING, "spark_upper({0})"),
    "ucase": Simple("s", STRING, "spark_upper({0})"),
    "lower": Simple("s", STRING, "spark_lower({0})"),
    "lcase": Simple("s", STRING, "spark_lower({0})"),
    "btrim": Simple("t", STRING, "trim({0}, ' ')"),
    "ltrim": Simple("t", STRING, "ltrim({0}, ' ')"),
    "rtrim": Simple("t", STRING, "rtrim({0}, ' ')"),
    "replace": Simple("ttt", STRING, "spark_replace({0}, {1}, {2})"),
    "repeat": Simple("ti", STRING, "spark_repeat({0}, {1})"),
    "reverse": Simple("t", STRING, "spark_reverse({0})"),
    "instr": Simple("tt", INT, "strpos({0}, {1})::INTEGER"),
    "md5": Simple("b", STRING, "md5({0})"),
    "sha1": Simple("b", STRING, "sha1({0})"),
    "sha": Simple("b", STRING, "sha1({0})"),
    "base64": Simple("b", STRING, "spark_base64({0})"),
    "isnan": Simple("d", BOOLEAN, "coalesce(isnan({0}), false)"),
    "sqrt": Simple("d", DOUBLE, "spark_sqrt({0})", "SQRT({0})"),
    "year": Simple("D", INT, "year({0})::INTEGER"),
    "month": Simple("D", INT, "month({0})::INTEGER"),
    "quarter": Simple("D", INT, "quarter({0})::INTEGER"),
    "day": Simple("D", INT, "day({0})::INTEGER"),
    "dayofmonth": Simple("D", INT, "day({0})::INTEGER"),
    "dayofyear": Simple("D", INT, "dayofyear({0})::INTEGER"),
    "weekday": Simple("D", INT, "(isodow({0}) - 1)::INTEGER"),
    "dayofweek": Simple("D", INT, "(dayofweek({0}) + 1)::INTEGER"),
    "weekofyear": Simple("D", INT, "weekofyear({0})::INTEGER"),
    "hour": Simple("T", INT, "hour(spark_naive({0}))::INTEGER"),
    "minute": Simple("T", INT, "minute(spark_naive({0}))::INTEGER"),
    "second": Simple("T", INT, "second(spark_naive({0}))::INTEGER"),
    "unix_seconds": Simple("T", BIGINT, "spark_seconds({0})"),
    "unix_millis": Simple("T", BIGINT, "spark_floor_div(epoch_us({0}), 1000::BIGINT)"),
    "unix_micros": Simple("T", BIGINT, "epoch_us({0})"),
    "timestamp_seconds": Simple("l", TIMESTAMP, "make_timestamptz({0} * 1000000::BIGINT)"),
    "timestamp_millis": Simple("l", TIMESTAMP, "make_timestamptz({0} * 1000::BIGINT)"),
    "timestamp_micros": Simple("l", TIMESTAMP, "make_timestamptz({0})"),
    "date_add": Simple("Di", DATE, "({0} + {1})"),
    "date_sub": Simple("Di", DATE, "({0} - {1})"),
    "last_day": Simple("D", DATE, "last_day({0})"),
    "to_timestamp": Simple("T", TIMESTAMP, "{0}"),
    "unbase64": Simple("t", BINARY, "from_base64({0})"),
    "datediff": Simple("DD", INT, "({0} - {1})::INTEGER"),
}


@handles(exp.Anonymous)
def _call(context: Context, node: exp.Anonymous) -> Typed:
    """A call, by the name it is written with."""
    name = str(node.this).lower()
    if name in AGGREGATES:
        from kafkalog.dialect.aggregates import aggregate

        return aggregate(context, node, None)
    if name in SIMPLE:
        return _simple(name, SIMPLE[name], _arguments(context, node))
    from kafkalog.dialect.special import LAZY, SPECIAL

    if name in LAZY:
        return LAZY[name](context, node)
    if name in SPECIAL:
        return SPECIAL[name](_arguments(context, node), name)
    known = near(name, [*SIMPLE, *SPECIAL, *LAZY, *AGGREGATES])
    hint = known[2:].rstrip("?") if "did you mean" in known else "not in the list of functions"
    raise refusal(f"function {node.this}(){place_of(node)}", hint)


def _arguments(context: Context, node: exp.Anonymous) -> list[Typed]:
    for argument in node.expressions:
        if isinstance(argument, exp.Star | exp.Distinct | exp.Lambda | exp.Kwarg):
            raise refusal(f"{node.this}({argument.sql()})")
    return [context.compile(argument) for argument in node.expressions]


def _simple(name: str, rule: Simple, given: list[Typed]) -> Typed:
    if len(given) != len(rule.takes):
        raise refusal(f"{name}() of {len(given)} arguments")
    values = [
        _TEXT_RULES[letter](item, f"{name}()")
        for letter, item in zip(rule.takes, given, strict=True)
    ]
    labels = [item.label for item in given]
    label = rule.label.format(*labels) if rule.label else f"{name}({', '.join(labels)})"
    return computed(f"({rule.sql.format(*values)})", rule.gives, label)


def concat(given: list[Typed], *, nested: bool = False) -> Typed:
    """Bytes of bytes, else the texts after each other; NULL if one is."""
    label = f"concat({', '.join(item.label for item in given)})"
    if not given:
        raise refusal("concat() of nothing")
    if all(item.type == BINARY for item in given):
        return computed(f"({' || '.join(item.sql for item in given)})", BINARY, label)
    if any(item.type.element is not None for item in given):
        raise refusal("concat() of arrays")
    texts = widen([coerce_to_text(item) for item in given], STRING)
    sql = f"({' || '.join(item.sql for item in texts)})"
    return computed(sql, STRING, label, is_bytes=texts[0].is_bytes)


@handles(exp.Substring)
def _substring(context: Context, node: exp.Substring) -> Typed:
    only(node, "this", "start", "length")
    parts = [node.this, node.args["start"], node.args.get("length")]
    return substring([context.compile(part) for part in parts if part is not None], "substring")


def substring(given: list[Typed], name: str) -> Typed:
    if len(given) not in (2, 3):
        raise refusal(f"{name}() of {len(given)} arguments")
    if given[0].type == BINARY:
        raise refusal(f"{name}() of binary")
    text = exact_text(coerce_to_text(given[0]))
    start = to_integer(given[1], name)
    length = to_integer(given[2], name) if len(given) == 3 else "2147483647"
    shown = [item.label for item in given] + ["2147483647"] * (3 - len(given))
    sql = f"spark_substring({text}, CAST({start} AS BIGINT), CAST({length} AS BIGINT))"
    return computed(sql, STRING, f"{name}({', '.join(shown)})")


@handles(exp.Trim)
def _trim(context: Context, node: exp.Trim) -> Typed:
    only(node, "this", "expression", "position")
    item = context.compile(node.this)
    text = exact_text(coerce_to_text(item))
    if node.expression is None or not isinstance(node.expression, exp.Expression):
        return computed(f"trim({text}, ' ')", STRING, f"trim({item.label})")
    characters = context.compile(node.expression)
    position = str(node.args.get("position") or "BOTH").upper()
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    sql = f"{name}({text}, {exact_text(coerce_to_text(characters))})"
    return computed(sql, STRING, f"TRIM({position} {characters.label} FROM {item.label})")


@handles(exp.StrPosition)
def _position(context: Context, node: exp.StrPosition) -> Typed:
    only(node, "this", "substr")
    text, found = context.compile(node.this), context.compile(node.args["substr"])
    first, second = exact_text(coerce_to_text(text)), exact_text(coerce_to_text(found))
    sql = f"strpos({first}, {second})::INTEGER"
    return computed(sql, INT, f"locate({found.label}, {text.label}, 1)")
