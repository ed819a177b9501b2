"""CAST, TRY_CAST and the casts that Spark adds by itself (ANSI mode, Spark's default since 4.0).

A cast is given by source and target; what is not in the tables is refused. Spark rounds toward
zero where DuckDB rounds, accepts other texts as numbers, and raises where a value does not fit:
macros say so.
"""

from __future__ import annotations

import re
from dataclasses import replace

from kafkalog.dialect.errors import QueryError, refusal
from kafkalog.dialect.typed import Typed, as_blob, shown_text
from kafkalog.dialect.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    INTEGRAL,
    STRING,
    TIMESTAMP,
    VOID,
    SqlType,
    decimal,
    in_duckdb,
)

# The forms of a text that both sides read as the same time: in UTC.
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(\.\d{1,6})?(?:Z|[+]00:00)?)?", re.ASCII
)
_SAME = frozenset({"array", "struct"})


def cast(item: Typed, target: SqlType, *, is_try: bool = False) -> Typed:
    """`item` as `target`; the label stays."""
    source = item.type
    if source == target:
        return item
    if source == VOID:
        return replace(_plain(item), sql=f"CAST(NULL AS {in_duckdb(target)})", type=target)
    if STRING in (source, target) and BINARY in (source, target):
        sql = as_blob(item)
        return replace(item, sql=sql, type=target, is_bytes=target == STRING, is_literal=False)
    if source == STRING:
        sql = _from_text(item, target, is_try)
    elif target == STRING:
        sql = _to_text(item)
    elif is_try:
        raise refusal(f"TRY_CAST from {source} to {target}")
    else:
        sql = _between(item, target)
    return replace(_plain(item), sql=sql, type=target)


def _plain(item: Typed) -> Typed:
    return replace(item, is_bytes=False, is_literal=False, value=None, digits=None)


def _from_text(item: Typed, target: SqlType, is_try: bool) -> str:
    """A text read as a value. Bytes that are no UTF-8 are in no value's text."""
    text, kind = shown_text(item), target.kind
    prefix = "spark_try_" if is_try else "spark_"
    if target.is_integral:
        return f"CAST({prefix}text_to_bigint({text}, '{kind}') AS {in_duckdb(target)})"
    if kind in {"double", "boolean"}:
        return f"{prefix}text_to_{kind}({text})"
    if kind in {"timestamp", "date"}:
        if item.is_literal and isinstance(item.value, str):
            return time_literal(item.value, kind)
        if is_try:
            raise refusal(f"TRY_CAST from string to {kind}")
        return f"spark_text_to_{kind}({text})"
    raise refusal(f"a cast from string to {target}")


def time_literal(text: str, kind: str) -> str:
    """A date or timestamp from its text."""
    found = _TIME.fullmatch(text.strip(" "))
    if found is None:
        raise refusal(
            f"the text {text!r} as {kind}", "of yyyy-MM-dd [HH:mm:ss[.ffffff]] only, in UTC"
        )
    day, time, fraction = found.groups()
    if not _is_day(day) or (time is not None and not _is_time(time)):
        raise QueryError(f"{text!r} is no {kind}")
    if kind == "date":
        return f"'{day}'::DATE"
    return f"'{day} {time or '00:00:00'}{fraction or ''}+00'::TIMESTAMPTZ"


def _is_day(day: str) -> bool:
    year, month, number = map(int, day.split("-"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return year > 0 and 1 <= month <= 12 and 1 <= number <= days[month - 1]


def _is_time(time: str) -> bool:
    hour, minute, second = map(int, time.split(":"))
    return hour < 24 and minute < 60 and second < 60


def _to_text(item: Typed) -> str:
    kind = item.type.kind
    if kind in INTEGRAL or kind == "boolean":
        return f"CAST({item.sql} AS VARCHAR)"
    if kind in {"timestamp", "date"}:
        return f"spark_{kind}_to_text({item.sql})"
    if kind == "decimal":
        # DuckDB writes .25 where no digit before the point fits.
        wider = decimal(min(item.type.precision + 1, 38), item.type.scale)
        return f"CAST(CAST({item.sql} AS {in_duckdb(wider)}) AS VARCHAR)"
    if kind == "double":
        return f"spark_double_to_text({item.sql})"
    raise refusal(f"a cast from {item.type} to string")


def _between(item: Typed, target: SqlType) -> str:
    source, sql, name = item.type, item.sql, in_duckdb(target)
    if source.is_number and target.is_number:
        return _number(item, target)
    if source.kind == "boolean" and (target.is_integral or target == DOUBLE):
        return f"CAST({sql} AS {name})"
    if source.is_integral and target.kind == "boolean":
        return f"({sql} <> 0)"
    match source.kind, target.kind:
        case ("timestamp", "date") | ("date", "timestamp"):
            return f"CAST({sql} AS {name})"
        case ("timestamp", "bigint"):
            return f"spark_seconds({sql})"
        case ("timestamp", "double"):
            return f"(CAST(epoch_us({sql}) AS DOUBLE) / 1000000.0::DOUBLE)"
        case ("tinyint" | "smallint" | "int" | "bigint", "timestamp"):
            return f"make_timestamptz(CAST({sql} AS BIGINT) * 1000000::BIGINT)"
    raise refusal(f"a cast from {source} to {target}")


def _number(item: Typed, target: SqlType) -> str:
    source, sql, name = item.type, item.sql, in_duckdb(target)
    if source == DOUBLE:
        if target.is_integral:
            # Spark cuts off, where DuckDB would round.
            return f"CAST(trunc({sql}) AS {name})"
        raise refusal(f"a cast from double to {target}", "Java rounds its text")
    if source.kind == "decimal" and target.is_integral:
        return f"CAST(trunc({sql}) AS {name})"
    if source.kind == "decimal" and target == DOUBLE and source.precision > 15:
        return f"CAST(CAST({sql} AS VARCHAR) AS DOUBLE)"
    return f"CAST({sql} AS {name})"


def coerce_to_text(item: Typed) -> Typed:
    """What Spark passes to a function of texts: bytes and plain values as their text."""
    return item if item.type == STRING else cast(item, STRING)


def widen(items: list[Typed], target: SqlType) -> list[Typed]:
    """All of them as `target`; strings as bytes if one of them is."""
    cast_items = [cast(item, target) for item in items]
    if target != STRING or not any(item.is_bytes for item in cast_items):
        return cast_items
    return [replace(item, sql=as_blob(item), is_bytes=True) for item in cast_items]


def to_integer(item: Typed, what: str) -> str:
    """An argument that counts (INT in Spark): no fraction, nothing longer."""
    if item.type.kind in {"tinyint", "smallint", "int"}:
        return f"CAST({item.sql} AS INTEGER)"
    if item.type == BIGINT and item.is_literal:
        return f"CAST({item.sql} AS INTEGER)"
    if item.type == VOID:
        return "CAST(NULL AS INTEGER)"
    raise refusal(f"{what} of type {item.type}")


def to_timestamp(item: Typed, what: str) -> str:
    if item.type in (TIMESTAMP, DATE, STRING, VOID):
        return cast(item, TIMESTAMP).sql
    raise refusal(f"{what} of type {item.type}")
