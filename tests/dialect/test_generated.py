"""Queries by chance: the same rows on both engines, or refused; seldom refused."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.dialect.engines import Engines
from tests.dialect.generated import queries

SEED = 20_261_129


def _check(engines: Engines, wanted: list[str]) -> Counter[str]:
    """How many gave rows, raised, or were refused; none may differ."""
    kinds: Counter[str] = Counter()
    differences = {}
    for query in wanted:
        kinds[engines.on_duckdb(query).kind] += 1
        is_ordered = " ORDER BY " in query and "OVER" not in query
        difference = engines.difference(query, is_ordered=is_ordered)
        if difference is not None:
            differences[query] = difference
    assert differences == {}
    return kinds


@pytest.mark.thorough
@pytest.mark.spark
def test_generated_queries_give_the_same_rows_or_are_refused(engines: Engines) -> None:
    kinds = _check(engines, queries(SEED, 40))
    assert kinds["refused"] + kinds["not known"] <= 6, kinds
    assert kinds["rows"] >= 32, kinds


@pytest.mark.spark
@pytest.mark.thorough
def test_all_generated_queries_give_the_same_rows_or_are_refused(engines: Engines) -> None:
    kinds = _check(engines, queries(SEED, 200))
    assert kinds["refused"] + kinds["not known"] <= 30, kinds
    assert kinds["rows"] >= 160, kinds
