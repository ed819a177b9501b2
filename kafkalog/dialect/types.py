"""Spark's types: their names, what they are in Arrow and in DuckDB, where two of them meet."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kafkalog.dialect.errors import refusal

MAX_PRECISION = 38


@dataclass(frozen=True)
class SqlType:
    """A type of Spark. `element` is an array's, `fields` a struct's."""

    kind: str
    precision: int = 0
    scale: int = 0
    element: SqlType | None = None
    fields: tuple[tuple[str, SqlType], ...] = ()

    def __str__(self) -> str:
        """As Spark's simpleString."""
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.element is not None:
            return f"array<{self.element}>"
        if self.kind == "struct":
            return f"struct<{','.join(f'{name}:{type_}' for name, type_ in self.fields)}>"
        return self.kind

    @property
    def is_integral(self) -> bool:
        return self.kind in INTEGRAL

    @property
    def is_number(self) -> bool:
        return self.kind in INTEGRAL or self.kind in {"double", "decimal"}

    @property
    def is_plain(self) -> bool:
        """Whether values of it have an order and an equality that both engines share."""
        return self.kind not in {"array", "struct", "void"}


VOID = SqlType("void")
BOOLEAN = SqlType("boolean")
TINYINT = SqlType("tinyint")
SMALLINT = SqlType("smallint")
INT = SqlType("int")
BIGINT = SqlType("bigint")
DOUBLE = SqlType("double")
STRING = SqlType("string")
BINARY = SqlType("binary")
DATE = SqlType("date")
TIMESTAMP = SqlType("timestamp")

# Digits that every value of the type fits in.
INTEGRAL = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_WIDTH = ("tinyint", "smallint", "int", "bigint")
_PLAIN: tuple[tuple[SqlType, pa.DataType, str], ...] = (
    (BOOLEAN, pa.bool_(), "BOOLEAN"),
    (TINYINT, pa.int8(), "TINYINT"),
    (SMALLINT, pa.int16(), "SMALLINT"),
    (INT, pa.int32(), "INTEGER"),
    (BIGINT, pa.int64(), "BIGINT"),
    (DOUBLE, pa.float64(), "DOUBLE"),
    (STRING, pa.string(), "VARCHAR"),
    (BINARY, pa.binary(), "BLOB"),
    (DATE, pa.date32(), "DATE"),
    (TIMESTAMP, pa.timestamp("us", "UTC"), "TIMESTAMPTZ"),
)
_OF_ARROW = {arrow: type_ for type_, arrow, _ in _PLAIN}
_TO_ARROW = {type_: arrow for type_, arrow, _ in _PLAIN}
_IN_DUCKDB = {type_: name for type_, _, name in _PLAIN}


def decimal(precision: int, scale: int) -> SqlType:
    """A decimal, refused where Spark would have to drop digits."""
    if precision > MAX_PRECISION:
        raise refusal("a decimal of more than 38 digits", "Spark drops some")
    return SqlType("decimal", precision, scale)


def array(element: SqlType) -> SqlType:
    return SqlType("array", element=element)


def struct(*fields: tuple[str, SqlType]) -> SqlType:
    return SqlType("struct", fields=fields)


def of_arrow(type_: pa.DataType, column: str) -> SqlType:
    """The Spark type of an Arrow column."""
    if pa.types.is_large_string(type_):
        return STRING
    if pa.types.is_large_binary(type_):
        return BINARY
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return array(of_arrow(type_.value_type, column))
    if pa.types.is_struct(type_):
        return struct(*((field.name, of_arrow(field.type, column)) for field in type_))
    if pa.types.is_decimal(type_):
        return decimal(type_.precision, type_.scale)
    if type_ not in _OF_ARROW:
        raise refusal(f"column {column} of Arrow type {type_}")
    return _OF_ARROW[type_]


def to_arrow(type_: SqlType) -> pa.DataType:
    """The Arrow type in which Spark hands such a column over."""
    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.element is not None:
        return pa.list_(pa.field("element", to_arrow(type_.element)))
    if type_.kind == "struct":
        return pa.struct([pa.field(name, to_arrow(of)) for name, of in type_.fields])
    return pa.null() if type_ == VOID else _TO_ARROW[type_]


def in_duckdb(type_: SqlType) -> str:
    """The name of the type in DuckDB's SQL."""
    if type_.kind == "decimal":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if type_.element is not None:
        return f"{in_duckdb(type_.element)}[]"
    if type_.kind == "struct":
        fields = ", ".join(f"{quoted(name)} {in_duckdb(of)}" for name, of in type_.fields)
        return f"STRUCT({fields})"
    return "INTEGER" if type_ == VOID else _IN_DUCKDB[type_]


def quoted(name: str) -> str:
    """An identifier of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def as_decimal(type_: SqlType) -> SqlType:
    """The decimal that holds every value of a number without a fraction's loss."""
    return decimal(INTEGRAL[type_.kind], 0) if type_.is_integral else type_


def common_type(left: SqlType, right: SqlType) -> SqlType | None:
    """Where two values meet in a comparison, CASE or UNION (Spark's ANSI rules); None: nowhere."""
    if left == right:
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if left.is_number and right.is_number:
        return _common_number(left, right)
    if STRING in (left, right):
        return _common_with_string(right if left == STRING else left)
    if {left.kind, right.kind} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    if left.is_integral and right.is_integral:
        return left if _WIDTH.index(left.kind) > _WIDTH.index(right.kind) else right
    if DOUBLE in (left, right):
        return DOUBLE
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return decimal(whole + scale, scale)


def _common_with_string(other: SqlType) -> SqlType | None:
    """A text is read as the other's type; as a long number where the other is an integer."""
    if other.is_integral:
        return BIGINT
    if other.kind in {"double", "decimal"}:
        return DOUBLE
    return other if other.kind in {"boolean", "binary", "date", "timestamp"} else None
