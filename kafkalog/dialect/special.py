"""Functions whose type, name or value depends on their arguments."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from kafkalog.dialect.arguments import Special, expect, label_of
from kafkalog.dialect.casts import cast, to_integer, to_timestamp, widen
from kafkalog.dialect.errors import QueryError, refusal
from kafkalog.dialect.lambdas import exists, filtered, transform
from kafkalog.dialect.number_functions import NUMBER_FUNCTIONS
from kafkalog.dialect.operators import choice, compared, condition, together
from kafkalog.dialect.scope import Context
from kafkalog.dialect.text_functions import TEXT_FUNCTIONS
from kafkalog.dialect.times import date_format, from_unixtime
from kafkalog.dialect.typed import (
    Typed,
    computed,
    exact_text,
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
    VOID,
    SqlType,
    array,
    quoted,
    struct,
)


def _if(given: list[Typed], name: str) -> Typed:
    expect(given, name, 3)
    test, *results = given
    return choice([condition(test, "if()")], results, f"(IF({', '.join(i.label for i in given)}))")


def _coalesce(given: list[Typed], name: str) -> Typed:
    if not given or (name != "coalesce" and len(given) != 2):
        raise refusal(f"{name}() of {len(given)} arguments")
    target = together(given, name)
    items = widen(given, target)
    sql = f"coalesce({', '.join(item.sql for item in items)})"
    return computed(sql, target, label_of(name, given), is_bytes=items[0].is_bytes)


def _nvl2(given: list[Typed], name: str) -> Typed:
    expect(given, name, 3)
    test = computed(f"({given[0].sql} IS NOT NULL)", BOOLEAN, "")
    return choice([test], given[1:], label_of(name, given))


def _nullif(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    first, second = compared(given[0], given[1], name)
    item = given[0]
    sql = f"CASE WHEN {first.sql} = {second.sql} THEN NULL ELSE {item.sql} END"
    return computed(f"({sql})", item.type, label_of(name, given), is_bytes=item.is_bytes)


def _is_null(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    word = "IS NULL" if name == "isnull" else "IS NOT NULL"
    return computed(f"({given[0].sql} {word})", BOOLEAN, f"({given[0].label} {word})")


def _extreme(given: list[Typed], name: str) -> Typed:
    """greatest and least skip NULLs; NaN is the greatest."""
    if len(given) < 2:
        raise refusal(f"{name}() of {len(given)} arguments")
    target = together(given, name)
    if not target.is_plain:
        raise refusal(f"{name}() of {target}")
    items = widen(given, target)
    sql = f"{name}({', '.join(item.sql for item in items)})"
    return computed(sql, target, label_of(name, given), is_bytes=items[0].is_bytes)


def _date_trunc(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    unit = str(given[0].value).upper()
    units = {
        "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month",
        "MM": "month", "MON": "month", "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour",
        "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond",
        "MICROSECOND": "microsecond",
    }  # fmt: skip
    if not given[0].is_literal or unit not in units:
        raise refusal(f"date_trunc() to {given[0].label}")
    time = to_timestamp(given[1], "date_trunc()")
    sql = f"make_timestamptz(epoch_us(date_trunc('{units[unit]}', spark_naive({time}))))"
    return computed(sql, TIMESTAMP, label_of(name, given))


def _to_date(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    if given[0].type not in (TIMESTAMP, DATE, STRING, VOID):
        raise refusal(f"{name}() of {given[0].type}")
    return cast(given[0], DATE).labelled(label_of(name, given))


def _size(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    if given[0].type.element is None:
        raise refusal(f"{name}() of {given[0].type}")
    # NULL for NULL in ANSI mode; -1 was long ago.
    return computed(f"len({given[0].sql})::INTEGER", INT, label_of(name, given))


def _item(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    element = given[0].type.element
    if element is None:
        raise refusal(f"{name}() of {given[0].type}")
    function = "spark_get" if name == "get" else "spark_element_at"
    sql = f"{function}({given[0].sql}, {to_integer(given[1], name)})"
    return computed(sql, element, label_of(name, given))


def _array(given: list[Typed], name: str) -> Typed:
    if not given:
        raise refusal("array() of nothing")
    target = together(given, name)
    items = [_text_inside(item) for item in widen(given, target)]
    return computed(
        f"[{', '.join(item.sql for item in items)}]", array(target), label_of(name, given)
    )


def _text_inside(item: Typed) -> Typed:
    """A string inside of an array or struct is a text: DuckDB has no other there."""
    return computed(exact_text(item), item.type, item.label) if item.is_bytes else item


def _array_contains(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    if given[0].type != array(given[1].type) or not given[1].type.is_plain:
        raise refusal(f"array_contains() of {given[0].type} and {given[1].type}")
    item = _text_inside(given[1])
    sql = f"spark_array_contains({given[0].sql}, {item.sql})"
    return computed(sql, BOOLEAN, label_of(name, given))


def _named_struct(given: list[Typed], name: str) -> Typed:
    if not given or len(given) % 2:
        raise refusal(f"named_struct() of {len(given)} arguments")
    fields = []
    for key, value in zip(given[::2], given[1::2], strict=True):
        if not key.is_literal or not isinstance(key.value, str):
            raise refusal("named_struct() with names that are no literals")
        fields.append((key.value, _text_inside(value)))
    sql = ", ".join(f"{quoted(key)}: {value.sql}" for key, value in fields)
    return computed(
        f"{{{sql}}}", struct(*((key, value.type) for key, value in fields)), label_of(name, given)
    )


def _cast_by_name(target: SqlType) -> Special:
    def build(given: list[Typed], name: str) -> Typed:
        expect(given, name, 1)
        done = cast(given[0], target)
        return done.labelled(given[0].label)

    return build


SPECIAL: dict[str, Special] = {
    **TEXT_FUNCTIONS, **NUMBER_FUNCTIONS,
    "if": _if, "coalesce": _coalesce, "nvl": _coalesce, "ifnull": _coalesce, "nvl2": _nvl2,
    "nullif": _nullif, "isnull": _is_null, "isnotnull": _is_null, "greatest": _extreme,
    "least": _extreme, "date_trunc": _date_trunc, "to_date": _to_date, "element_at": _item,
    "get": _item, "array": _array, "array_contains": _array_contains,
    "named_struct": _named_struct, "date_format": date_format, "from_unixtime": from_unixtime,
    "string": _cast_by_name(STRING), "int": _cast_by_name(INT), "bigint": _cast_by_name(BIGINT),
    "double": _cast_by_name(DOUBLE), "boolean": _cast_by_name(BOOLEAN),
    "date": _cast_by_name(DATE), "timestamp": _cast_by_name(TIMESTAMP),
    "binary": _cast_by_name(BINARY),
}  # fmt: skip


def _struct(context: Context, node: exp.Anonymous) -> Typed:
    """struct(): fields are named by aliases, by columns, or by their place."""
    fields, labels = [], []
    for place, argument in enumerate(node.expressions, 1):
        inner = argument.this if isinstance(argument, exp.Alias) else argument
        item = context.compile(inner)
        if isinstance(argument, exp.Alias):
            name = argument.alias
            labels.append(f"{item.label} AS {name}")
        else:
            is_name = isinstance(inner, exp.Column | exp.Dot) and not item.is_literal
            name = item.name if is_name else f"col{place}"
            labels.append(item.label)
        fields.append((name, _text_inside(item)))
    if not fields:
        raise refusal("struct() of nothing")
    if len({name.lower() for name, _ in fields}) < len(fields):
        raise QueryError("struct() has two fields of one name")
    sql = ", ".join(f"{quoted(name)}: {item.sql}" for name, item in fields)
    type_ = struct(*((name, item.type) for name, item in fields))
    return computed(f"{{{sql}}}", type_, f"struct({', '.join(labels)})")


def _unordered(node: exp.Anonymous) -> None:
    """An array whose order does not show: collect_list() and collect_set() may make it."""
    inner = node.expressions[0] if node.expressions else None
    if isinstance(inner, exp.Anonymous):
        inner.meta["unordered"] = True


def _size_of(context: Context, node: exp.Anonymous) -> Typed:
    _unordered(node)
    return _size([context.compile(part) for part in node.expressions], str(node.this).lower())


def _sort_array(context: Context, node: exp.Anonymous) -> Typed:
    _unordered(node)
    given = [context.compile(part) for part in node.expressions]
    expect(given, "sort_array", 1, 2)
    element = given[0].type.element
    if element is None or not element.is_plain or (len(given) == 2 and not given[1].is_literal):
        raise refusal(f"sort_array() of {given[0].type}")
    ascending = len(given) == 1 or given[1].sql == "true"
    order = "'ASC', 'NULLS FIRST'" if ascending else "'DESC', 'NULLS LAST'"
    label = f"sort_array({given[0].label}, {'true' if ascending else 'false'})"
    return computed(f"list_sort({given[0].sql}, {order})", given[0].type, label)


LAZY: dict[str, Callable[[Context, exp.Anonymous], Typed]] = {
    "struct": _struct,
    "size": _size_of,
    "cardinality": _size_of,
    "sort_array": _sort_array,
    "transform": transform,
    "filter": filtered,
    "exists": exists,
}
