"""Every allowed cast, operator, function and clause gives Spark's rows, names and types; what is
not allowed is refused, or raises on both."""

from __future__ import annotations

import re

import pytest

from kafkalog.dialect.allowed import aggregate_names, function_names
from kafkalog.dialect.translation import NotTranslatedError, translate
from tests.dialect.allowed import (
    ERRORS,
    NOT_KNOWN,
    OVER_BATCHES,
    OVER_RECORDS,
    QUERIES,
    REFUSED,
    lines,
)
from tests.dialect.engines import Engines
from tests.dialect.tables import SCHEMAS

# Expressions of one query: few enough to see which differs, many enough to be quick.
_TOGETHER = 40
_ORDER = {"records": "offset", "batches": "baseOffset"}


def _packed() -> list[str]:
    found = []
    for table, text in (("records", OVER_RECORDS), ("batches", OVER_BATCHES)):
        items = lines(text)
        for start in range(0, len(items), _TOGETHER):
            columns = ", ".join(items[start : start + _TOGETHER])
            found.append(f"SELECT {columns} FROM {table} ORDER BY {table}.{_ORDER[table]}")
    return found


@pytest.mark.spark
def test_allowed_expressions_give_what_spark_gives(engines: Engines) -> None:
    found = {query: engines.on_duckdb(query).kind for query in _packed()}
    assert set(found.values()) == {"rows"}, {q: k for q, k in found.items() if k != "rows"}
    differences = [engines.difference(query, is_ordered=True) for query in found]
    assert [one for one in differences if one is not None] == []


@pytest.mark.thorough
@pytest.mark.spark
def test_allowed_clauses_give_what_spark_gives(engines: Engines) -> None:
    differences = {}
    for query in lines(QUERIES):
        assert engines.on_duckdb(query).kind == "rows", query
        is_ordered = " ORDER BY " in query and "OVER" not in query and "(SELECT" not in query
        difference = engines.difference(query, is_ordered=is_ordered)
        if difference is not None:
            differences[query] = difference
    assert differences == {}


@pytest.mark.thorough
@pytest.mark.spark
def test_what_spark_raises_for_is_raised_for(engines: Engines) -> None:
    found = {q: (engines.on_duckdb(q).kind, engines.on_spark(q).kind) for q in lines(ERRORS)}
    assert {q: kinds for q, kinds in found.items() if kinds != ("error", "error")} == {}


def test_what_is_not_allowed_is_refused_with_the_other_engine_named() -> None:
    for query in lines(REFUSED):
        with pytest.raises(NotTranslatedError, match="--engine spark"):
            translate(query, SCHEMAS)


@pytest.mark.spark
def test_a_value_that_only_spark_can_judge_is_refused_while_the_query_runs(
    engines: Engines,
) -> None:
    found = {query: engines.on_duckdb(query) for query in lines(NOT_KNOWN)}
    assert {q: o.text for q, o in found.items() if o.kind != "not known"} == {}


def test_every_allowed_function_is_run_on_both_engines() -> None:
    shown = "\n".join((OVER_RECORDS, OVER_BATCHES, QUERIES)).lower()
    called = set(re.findall(r"\b([a-z_0-9]+)\(", shown))
    assert set(function_names()) - called == set()
    # Of a list whose order shows, see REFUSED; array_agg is collect_list by another name.
    assert set(aggregate_names()) - called == {"array_agg"}
