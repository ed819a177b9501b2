"""A translated expression: DuckDB's text beside Spark's type and Spark's name for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kafkalog.dialect.types import BINARY, DOUBLE, STRING, SqlType


@dataclass(frozen=True)
class Typed:
    """`sql` is DuckDB's, `label` what Spark would call the column.

    A text that Spark made of bytes may hold bytes that are no UTF-8; DuckDB's VARCHAR cannot. So
    `is_bytes` strings stay BLOBs: they are compared and grouped by their bytes, as Spark does, and
    become text where a text is needed.
    """

    sql: str
    type: SqlType
    label: str
    is_bytes: bool = False
    # The value of a literal, None for NULL too.
    value: str | int | bytes | None = None
    is_literal: bool = False
    # The digits of a number literal, which is all that Spark counts of its type in arithmetic.
    digits: SqlType | None = None
    # The same in all rows of the query at hand: it comes from a query outside.
    is_outer: bool = False
    # The name Spark gives the column where it stands by itself: a field's, for `a.b`.
    column_name: str | None = None
    # Of a column of bytes whose length is a column too: its text, and the text of its length.
    sized: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        return self.label if self.column_name is None else self.column_name

    def labelled(self, label: str) -> Typed:
        return replace(self, label=label, column_name=None)


def computed(sql: str, type_: SqlType, label: str, *, is_bytes: bool = False) -> Typed:
    return Typed(sql, type_, label, is_bytes=is_bytes)


def text_literal(value: str) -> str:
    """A text in DuckDB's SQL."""
    if "\x00" in value:
        return f"decode({blob_literal(value.encode())})"
    return "'" + value.replace("'", "''") + "'"


def blob_literal(value: bytes) -> str:
    return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"


def literal_text(value: str) -> Typed:
    return Typed(text_literal(value), STRING, value, value=value, is_literal=True)


def literal_bytes(value: bytes) -> Typed:
    return Typed(
        blob_literal(value), BINARY, f"X'{value.hex().upper()}'", value=value, is_literal=True
    )


def as_blob(item: Typed) -> str:
    """The bytes of a text or binary value."""
    if item.is_bytes or item.type == BINARY:
        return item.sql
    if item.is_literal and isinstance(item.value, str):
        return blob_literal(item.value.encode())
    return f"encode({item.sql})"


def bytes_length(item: Typed) -> str:
    """How many bytes a text or binary value has. Of a column that has its length beside it that
    one is asked for: the bytes need not be read."""
    if item.sized is not None and item.sized[0] == item.sql:
        return item.sized[1]
    return f"octet_length({as_blob(item)})::INTEGER"


def distinct_sql(item: Typed) -> str:
    """A key of groups: Spark makes 0.0 of -0.0 there."""
    return f"({item.sql} + 0.0::DOUBLE)" if item.type == DOUBLE else item.sql


def shown_text(item: Typed) -> str:
    """The text of a string as Spark shows it: U+FFFD in place of what is no UTF-8."""
    return f"spark_text({item.sql})" if item.is_bytes else item.sql


def exact_text(item: Typed) -> str:
    """The text of a string where Spark would work on its bytes: an error for what is no UTF-8."""
    return f"spark_exact_text({item.sql})" if item.is_bytes else item.sql
