"""The checklist of Kafka's compaction rules (conformance.toml) against the tests there are."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
ITEMS: dict[str, dict[str, Any]] = tomllib.loads((TESTS / "conformance.toml").read_text())
COUNT = 155
# Rules that have no place here: each with its reason, and not many.
MOST_NOT_APPLICABLE = 30


def test_every_item_is_there_once() -> None:
    assert list(ITEMS) == [str(number) for number in range(1, COUNT + 1)]


@pytest.mark.parametrize("number", ITEMS)
def test_item_says_one_thing_about_itself(number: str) -> None:
    item = ITEMS[number]
    answers = item.keys() & {"test", "not_applicable"}
    assert len(answers) == 1
    assert item.keys() - answers == {"rule"}
    assert all(item.values())
    for test in named_tests(item):
        path, _, function = test.partition("::")
        assert function in functions_of(path), f"{test} does not exist"


def test_few_items_do_not_apply() -> None:
    not_applicable = [number for number, item in ITEMS.items() if "not_applicable" in item]
    assert len(not_applicable) <= MOST_NOT_APPLICABLE, not_applicable


def test_no_test_stands_for_too_much() -> None:
    used = Counter(test for item in ITEMS.values() for test in named_tests(item))
    assert max(used.values()) <= 6  # the six stages of a crash are one parametrized test


def named_tests(item: dict[str, Any]) -> list[str]:
    found = item.get("test", [])
    return [found] if isinstance(found, str) else list(found)


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((TESTS.parent / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
