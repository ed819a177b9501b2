"""Literals, names, fields and CAST: what an expression is made of."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from kafkalog.dialect.casts import cast, time_literal
from kafkalog.dialect.errors import QueryError, only, place_of, refusal
from kafkalog.dialect.scope import NAMELESS, Context, field_of, handles, resolve
from kafkalog.dialect.typed import (
    Typed,
    computed,
    literal_bytes,
    literal_text,
)
from kafkalog.dialect.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    SqlType,
    decimal,
    in_duckdb,
)

_NUMBER = re.compile(r"(\d*\.?\d*(?:[eE][+-]?\d+)?)([lLsSyYdDfF]|[bB][dD])?", re.ASCII)
_SUFFIX_TYPES = {"l": BIGINT, "s": SMALLINT, "y": TINYINT, "d": DOUBLE}
_WRITTEN_TYPES = {
    "BOOLEAN": BOOLEAN, "TINYINT": TINYINT, "SMALLINT": SMALLINT, "INT": INT, "BIGINT": BIGINT,
    "DOUBLE": DOUBLE, "TEXT": STRING, "BINARY": BINARY, "DATE": DATE, "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP": TIMESTAMP,
}  # fmt: skip


@handles(exp.Literal)
def _literal(context: Context, node: exp.Literal) -> Typed:
    return literal_text(node.this) if node.is_string else number_literal(node.this, node)


def number_literal(text: str, node: exp.Expression) -> Typed:
    """A number with Spark's type for it: the smallest of int, bigint and decimal that holds it."""
    found = _NUMBER.fullmatch(text)
    if found is None or not any(map(str.isdigit, found[1])):
        raise QueryError(f"there is no column {text}{place_of(node)}")
    digits, suffix = found[1], (found[2] or "").lower()
    if suffix == "f":
        raise refusal(f"the float {text}")
    if suffix in _SUFFIX_TYPES and suffix != "d":
        return _integer(int(digits), _SUFFIX_TYPES[suffix])
    if suffix == "d" or (suffix != "bd" and "e" in digits.lower()):
        return _double(digits)
    if "e" in digits.lower():
        raise refusal(f"the number {text}")
    if "." in digits:
        return _fraction(digits)
    value = int(digits)
    if suffix == "bd" or value > 2**63 - 1:
        return _fraction(digits)
    return _integer(value, INT if value < 2**31 else BIGINT)


def _integer(value: int, type_: SqlType) -> Typed:
    digits = decimal(len(str(abs(value))), 0)
    sql = f"{value}::{in_duckdb(type_)}" if value >= 0 else f"({value})::{in_duckdb(type_)}"
    return Typed(sql, type_, str(value), value=value, is_literal=True, digits=digits)


def _double(digits: str) -> Typed:
    value = float(digits)
    # Outside of these Java writes an exponent, and the text is part of the column's name.
    if not (value == 0 or 1e-3 <= value < 1e7):
        raise refusal(f"the double {digits}", "of 0.001 to 10,000,000 only")
    return Typed(f"{value!r}::DOUBLE", DOUBLE, repr(value), is_literal=True)


def _fraction(digits: str) -> Typed:
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0")
    type_ = decimal(max(len(whole) + len(fraction), 1), len(fraction))
    text = (whole or "0") + ("." + fraction if fraction else "")
    if type_.scale > 6:
        raise refusal(f"the number {digits}", "of 6 digits behind the point at most")
    return Typed(f"{text}::{in_duckdb(type_)}", type_, text, is_literal=True, digits=type_)


@handles(exp.HexString)
def _hex(context: Context, node: exp.HexString) -> Typed:
    text = node.this
    return literal_bytes(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text))


@handles(exp.RawString)
def _raw(context: Context, node: exp.RawString) -> Typed:
    return literal_text(node.this)


@handles(exp.Concat)
def _adjacent(context: Context, node: exp.Concat) -> Typed:
    """Literals side by side are one."""
    if not all(isinstance(part, exp.Literal) and part.is_string for part in node.expressions):
        raise refusal("CONCAT of this form")
    return literal_text("".join(part.this for part in node.expressions))


@handles(exp.Null)
def _null(context: Context, node: exp.Null) -> Typed:
    return Typed("NULL", VOID, "NULL", is_literal=True)


@handles(exp.Boolean)
def _boolean(context: Context, node: exp.Boolean) -> Typed:
    text = "true" if node.this else "false"
    return Typed(text, BOOLEAN, text, is_literal=True)


@handles(exp.Column)
def _column(context: Context, node: exp.Column) -> Typed:
    parts = [part.name for part in node.parts]
    if len(parts) == 1 and not node.this.args.get("quoted"):
        if parts[0][0].isdigit():
            return number_literal(parts[0], node)
        if parts[0].lower() in {
            "current_date",
            "current_timestamp",
            "current_user",
            "localtimestamp",
        }:
            raise refusal(parts[0])
    return resolve(context, parts, node)


@handles(exp.Identifier)
def _lambda_name(context: Context, node: exp.Identifier) -> Typed:
    return resolve(context, [node.name], node)


@handles(exp.Dot)
def _dot(context: Context, node: exp.Dot) -> Typed:
    if not isinstance(node.expression, exp.Identifier):
        raise refusal(f"{node.sql()}")
    item = context.compile(node.this)
    field = field_of(item, node.expression.name, node)
    # Spark's own name for that has a number that no two runs share.
    is_numbered = item.type.element is not None and "lambdafunction(" in item.label
    return replace(field, column_name=NAMELESS if is_numbered else None)


@handles(exp.Bracket)
def _bracket(context: Context, node: exp.Bracket) -> Typed:
    only(node, "this", "expressions")
    item = context.compile(node.this)
    index = context.compile(node.expressions[0])
    label = f"{item.label}[{index.label}]"
    if item.type.kind == "struct" and index.is_literal and isinstance(index.value, str):
        field = field_of(item, index.value, node)
        return replace(field, label=f"{item.label}.{index.value}", column_name=None)
    if item.type.element is None or index.type not in (INT, SMALLINT, TINYINT):
        raise refusal(f"{item.type}[{index.type}]")
    return computed(f"spark_item({item.sql}, {index.sql})", item.type.element, label)


@handles(exp.Paren)
def _paren(context: Context, node: exp.Paren) -> Typed:
    return context.compile(node.this)


@handles(exp.Cast, exp.TryCast)
def _cast(context: Context, node: exp.Cast) -> Typed:
    only(node, "this", "to", "safe")
    target = written_type(node.to)
    if not isinstance(node, exp.TryCast) and "written" not in node.meta:
        if target not in (DATE, TIMESTAMP) or not isinstance(node.this, exp.Literal):
            raise refusal(f"{node.to.sql(dialect='spark')} in front of a value")
        word = "TIMESTAMP" if target == TIMESTAMP else "DATE"
        sql = time_literal(node.this.this, target.kind)
        text = sql.split("'")[1].removesuffix("+00")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
        return Typed(sql, target, f"{word} '{text}'", is_literal=True)
    item = context.compile(node.this)
    is_try = bool(node.args.get("safe"))
    word = "TRY_CAST" if is_try else "CAST"
    done = cast(item, target, is_try=is_try)
    label = f"{word}({item.label} AS {str(target).upper()})"
    # A cast of a bare column keeps the column's name where it stands by itself.
    is_bare = isinstance(node.this.unnest(), exp.Column) and item.column_name is None
    name = item.label if is_bare and not item.is_literal else None
    return replace(done, label=label, column_name=name, is_literal=False, value=None, digits=None)


def written_type(node: exp.DataType) -> SqlType:
    """The type that CAST names."""
    name = node.this.name
    if name == "DECIMAL":
        sizes = [int(size.name) for size in node.expressions]
        return decimal(*(sizes + [10, 0][len(sizes) :]))
    if name not in _WRITTEN_TYPES or node.expressions:
        raise refusal(f"CAST AS {node.sql(dialect='spark')}")
    return _WRITTEN_TYPES[name]


def negative_literal(item: Typed) -> Typed:
    if isinstance(item.value, int):
        type_ = INT if item.value == 2**31 and item.type == BIGINT else item.type
        return _integer(-item.value, type_)
    return replace(
        item, sql=f"(-{item.sql.split('::')[0]})::{in_duckdb(item.type)}", label=f"-{item.label}"
    )
