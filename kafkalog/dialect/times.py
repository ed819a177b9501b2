"""Times as texts by a pattern: the letters of Java's DateTimeFormatter that DuckDB can write."""

from __future__ import annotations

import re

from sqlglot import exp

from kafkalog.dialect.casts import cast, to_timestamp
from kafkalog.dialect.errors import only, refusal
from kafkalog.dialect.scope import Context, handles
from kafkalog.dialect.typed import Typed, computed, text_literal
from kafkalog.dialect.types import BIGINT, DATE, INT, STRING, TIMESTAMP

_PARTS = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSSSSS": "%f",
    "SSS": "%g", "hh": "%I", "a": "%p",
}  # fmt: skip
_LETTERS = re.compile(r"([A-Za-z])\1*|'([^']*)'|([-/ :.,_T])|(.)", re.DOTALL)
_FIELDS = {
    "YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute",
    "QUARTER": "quarter", "WEEK": "weekofyear", "DOY": "dayofyear",
}  # fmt: skip


def strftime_pattern(pattern: str) -> str:
    """A pattern for DuckDB's strftime."""
    done = ""
    for found in _LETTERS.finditer(pattern):
        if found[1]:
            if found[0] not in _PARTS:
                raise refusal(
                    f"the pattern {pattern!r}", f"{found[0]!r}; known are {', '.join(_PARTS)}"
                )
            done += _PARTS[found[0]]
        elif found[4]:
            raise refusal(f"the pattern {pattern!r}", repr(found[0]))
        else:
            done += found[3] or found[2].replace("%", "%%") or "'"
    return done


def _formatted(time: str, pattern: Typed) -> str:
    if not pattern.is_literal or not isinstance(pattern.value, str):
        raise refusal("a pattern that is no literal")
    text = text_literal(strftime_pattern(pattern.value))
    return f"strftime(spark_year_checked(spark_naive({time})), {text})"


def date_format(given: list[Typed], name: str) -> Typed:
    if len(given) != 2:
        raise refusal(f"{name}() of {len(given)} arguments")
    sql = _formatted(to_timestamp(given[0], f"{name}()"), given[1])
    return computed(sql, STRING, f"{name}({given[0].label}, {given[1].label})")


def from_unixtime(given: list[Typed], name: str) -> Typed:
    if len(given) not in (1, 2) or not given[0].type.is_integral:
        raise refusal(f"{name}() of this form")
    time = f"make_timestamptz({cast(given[0], BIGINT).sql} * 1000000::BIGINT)"
    if len(given) == 2:
        sql, shown = _formatted(time, given[1]), given[1].label
    else:
        shown = "yyyy-MM-dd HH:mm:ss"
        sql = f"strftime(spark_year_checked(spark_naive({time})), '{strftime_pattern(shown)}')"
    return computed(sql, STRING, f"{name}({given[0].label}, {shown})")


@handles(exp.Extract)
def _extract(context: Context, node: exp.Extract) -> Typed:
    only(node, "this", "expression")
    item = context.compile(node.expression)
    field = node.this.name
    if field.upper() not in _FIELDS or item.type not in (TIMESTAMP, DATE):
        raise refusal(f"EXTRACT({field} FROM {item.type})")
    function = _FIELDS[field.upper()]
    time = f"spark_naive({cast(item, TIMESTAMP).sql})"
    return computed(f"{function}({time})::INTEGER", INT, f"extract({field} FROM {item.label})")
