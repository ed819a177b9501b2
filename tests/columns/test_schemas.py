"""The table of views: its own consistency, and the refusals derived from it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kafkalog.columns.schemas import (
    VIEWS,
    arrow_schema,
    default_columns,
    select_columns,
    view_columns,
)
from kafkalog.errors import InvalidConfigError


def test_records_start_with_the_columns_of_sparks_kafka_source() -> None:
    names = "key value topic partition offset timestamp timestampType"
    assert default_columns("records") == tuple(names.split())


@pytest.mark.parametrize("view", VIEWS)
def test_column_names_are_unique_without_case(view: str) -> None:
    names = [column.name.lower() for column in view_columns(view)]
    assert len(set(names)) == len(names)


def test_columns_come_in_the_asked_order_under_the_tables_spelling() -> None:
    columns = select_columns("records", ["OFFSET", "Key"])
    assert [column.name for column in columns] == ["offset", "key"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["key", "kee"], r"column 'kee' is unknown in view 'records'; available: key, value"),
        (["key", "KEY"], "column 'KEY' is asked for twice"),
        ([], "no column"),
        (["error"], "column 'error' is unknown"),
    ],
)
def test_wrong_columns_are_refused_with_what_is_there(names: list[str], reason: str) -> None:
    with pytest.raises(InvalidConfigError, match=reason):
        select_columns("records", names)


def test_unknown_view_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidConfigError, match="'recrods' is unknown; available: records"):
        view_columns("recrods")


def test_permissive_schema_can_hold_a_row_that_has_only_a_place() -> None:
    columns = select_columns("records", ["offset", "error"], with_error=True)
    assert arrow_schema(columns).field("offset").nullable is False
    assert all(field.nullable for field in arrow_schema(columns, all_nullable=True))
    assert arrow_schema(columns).field("error").type == pa.string()
