"""Functions of numbers with rules of their own."""

from __future__ import annotations

from kafkalog.dialect.arguments import Special, expect, label_of
from kafkalog.dialect.arithmetic import number_operation
from kafkalog.dialect.casts import cast
from kafkalog.dialect.errors import refusal
from kafkalog.dialect.typed import (
    Typed,
    computed,
)
from kafkalog.dialect.types import (
    BIGINT,
    DOUBLE,
    common_type,
    decimal,
    in_duckdb,
)


def _abs(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    if not given[0].type.is_number:
        raise refusal(f"abs() of {given[0].type}")
    sql = f"abs({given[0].sql})"
    return computed(
        f"CAST({sql} AS {in_duckdb(given[0].type)})", given[0].type, label_of(name, given)
    )


def _whole(given: list[Typed], name: str) -> Typed:
    """ceil and floor: bigint, or a decimal without a fraction."""
    expect(given, name, 1)
    item, label = given[0], label_of("CEIL" if name.startswith("ceil") else name.upper(), given)
    if name == "ceiling":
        label = label_of("ceiling", given)
    if item.type.is_integral:
        return computed(cast(item, BIGINT).sql, BIGINT, label)
    function = "floor" if name == "floor" else "ceil"
    if item.type == DOUBLE:
        return computed(f"spark_{function}({item.sql})", BIGINT, label)
    if item.type.kind == "decimal":
        target = decimal(item.type.precision - item.type.scale + 1, 0)
        return computed(f"CAST({function}({item.sql}) AS {in_duckdb(target)})", target, label)
    raise refusal(f"{name}() of {item.type}")


def _round(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1, 2)
    item = given[0]
    places = 0 if len(given) == 1 else given[1].value
    if not isinstance(places, int) or not -18 <= places <= 6:
        raise refusal("round() to places that are no literal of -18 to 6")
    label = f"round({item.label}, {places})"
    if item.type.is_integral:
        return _rounded_integer(item, places, label)
    if item.type.kind == "decimal" and places >= 0:
        whole = item.type.precision - item.type.scale + 1
        scale = min(item.type.scale, places)
        target = decimal(min(whole + scale, 38), scale)
        return computed(f"CAST({item.sql} AS {in_duckdb(target)})", target, label)
    if item.type == DOUBLE and places >= 0:
        return computed(f"spark_round_{places}({item.sql})", DOUBLE, label)
    raise refusal(f"round() of {item.type} to {places} places")


def _rounded_integer(item: Typed, places: int, label: str) -> Typed:
    if places >= 0:
        return computed(item.sql, item.type, label)
    unit = f"{10**-places}::HUGEINT"
    sql = f"CAST(spark_half_up({item.sql}::HUGEINT, {unit}) * {unit} AS {in_duckdb(item.type)})"
    return computed(sql, item.type, label)


def _sign(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    if not given[0].type.is_number:
        raise refusal(f"{name}() of {given[0].type}")
    sql = f"spark_sign({cast(given[0], DOUBLE).sql})"
    return computed(sql, DOUBLE, label_of("sign" if name == "sign" else "SIGNUM", given))


def _mod(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    return number_operation("%", given[0], given[1], label_of(name, given))


def _pmod(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    target = common_type(given[0].type, given[1].type)
    if target is None or not target.is_integral:
        raise refusal(f"pmod() of {given[0].type} and {given[1].type}")
    first, second = cast(given[0], target).sql, cast(given[1], target).sql
    return computed(f"spark_pmod({first}, {second})", target, label_of(name, given))


NUMBER_FUNCTIONS: dict[str, Special] = {
    "abs": _abs, "ceil": _whole, "ceiling": _whole, "floor": _whole, "round": _round,
    "sign": _sign, "signum": _sign, "mod": _mod, "pmod": _pmod,
}  # fmt: skip
