"""The text of documents, against Python's own encoder."""

from __future__ import annotations

import json
import math
import random
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest

from kafkalog.cli.json_text import json_pieces, json_text


class Colour(StrEnum):
    RED = 'r"ed'


class Level(IntEnum):
    HIGH = 3


class Other(Enum):
    ONE = 1


LEAVES: list[Any] = [
    None, True, False, 0, -1, 2**63, 0.1, 1e16, -0.0, math.inf, math.nan, "", "plain", 'quo"te\\',
    "line\nend\ttab\x00\x7f", "umläut 中文 \U0001f600", "\udce4", Colour.RED, Level.HIGH,
    [], {}, (), {1: 2, None: 3, False: 4, 1.5: {"a": [1]}}, {Colour.RED: [1, {"b": ()}]},
]  # fmt: skip


def _expected(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _grow(source: random.Random, depth: int) -> Any:
    kind = source.choice("leaf list dict tuple".split()) if depth else "leaf"
    if kind == "leaf":
        return source.choice(LEAVES)
    items = [_grow(source, depth - 1) for _ in range(source.randrange(4))]
    if kind == "dict":
        return {source.choice(["a", 'b"', "ä\n", ""]) + str(n): v for n, v in enumerate(items)}
    return tuple(items) if kind == "tuple" else items


@pytest.mark.parametrize("value", LEAVES, ids=repr)
def test_text_is_that_of_json_for_each_kind_of_value(value: Any) -> None:
    for document in (value, [value], {"key": value}, {"key": [value, {"in": value}]}, (value,)):
        assert "".join(json_pieces(document)) == _expected(document)


def test_text_is_that_of_json_for_random_documents() -> None:
    for seed in range(300):
        document = _grow(random.Random(seed), 5)
        assert "".join(json_pieces(document)) == _expected(document)
        assert json_text(document) == _expected(document)


@pytest.mark.parametrize("value", [Other.ONE, {"a": {1, 2}}, [b"bytes"], {(1, 2): 3}], ids=repr)
def test_values_that_json_does_not_have_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        "".join(json_pieces({"document": [value]}))


def test_text_is_that_of_json_for_rows_of_plain_values() -> None:
    """Texts among them look like the end of a row and the begin of the next."""
    source = random.Random(5)
    leaves = [leaf for leaf in LEAVES if not isinstance(leaf, list | dict | tuple)]
    leaves += ["},\n      {", "}, {", "},{", '"},', "{"]
    for count in (1, 2, 63, 64, 65, 130):
        rows = [
            {source.choice("ab\n}{,"): source.choice(leaves) for _ in range(source.randint(1, 4))}
            for _ in range(count)
        ]
        for document in ({"rows": rows}, {"rows": [*rows, {}]}, {"rows": [*rows, 1]}):
            assert "".join(json_pieces(document)) == _expected(document)


def test_what_makes_its_rows_as_they_are_asked_for_is_a_list() -> None:
    for count in (0, 1, 64, 65):
        rows = [{"number": number} for number in range(count)]
        assert "".join(json_pieces({"rows": iter(rows)})) == _expected({"rows": rows})


def test_pieces_of_a_long_list_are_small() -> None:
    rows = [{"number": number} for number in range(10_000)]
    pieces = list(json_pieces({"rows": rows}))
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 50


def test_text_is_that_of_json_for_objects_with_the_same_keys() -> None:
    """Column by column; in some columns objects, alike or not, in some values of all kinds."""
    source = random.Random(6)
    plain = [leaf for leaf in LEAVES if not isinstance(leaf, list | dict | tuple | Enum)]
    plain += ["%", "%s", "\x00", '","', "a\x00b"]
    for count in (1, 2, 64, 65, 130):
        rows = []
        for _ in range(count):
            own = {"n": source.choice(plain), "%s": {"b": source.choice(plain)}}
            alike = {"a": source.choice(plain), "100%": own, "\x00": source.choice(plain)}
            unlike = {source.choice("xy"): 1} if source.random() < 0.1 else {"x": 2}
            mixed = source.choice(LEAVES)
            rows.append({"id": source.choice(plain), "in": alike, "odd": unlike, "any": mixed})
        for document in ({"rows": rows}, {"rows": [*rows, {**rows[0], "more": 1}]}):
            assert "".join(json_pieces(document)) == _expected(document)
