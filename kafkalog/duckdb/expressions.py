"""What DuckDB asks of a dataset's rows, out of a pyarrow Expression: its columns, and the simple
comparisons of which all must hold.

An Expression shows neither to Python. Its pickled form does: an Arrow file of one row, the literals
as columns, and a metadata entry a node in prefix order, whose keys repeat. A test holds that form
for the installed pyarrow; where it is not as known the answer is None and nothing but time is lost,
because the expression itself is applied to all rows that are read (`dataset`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.reading.pushing import Comparison

_ENTRY = re.compile(
    r"^(call|end|field_ref|nested_field_ref|literal|options): '(.*)'$", re.MULTILINE
)
_SIGNS = {"equal": "=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}

Entry = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """columns: those that the expression looks at. comparisons: what every row that it lets pass
    meets; it may ask for more.
    """

    columns: tuple[str, ...]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    """kind: call, field or literal; what is none of these is "other" and says nothing."""

    kind: str
    name: str = ""
    value: Any = None
    parts: tuple[_Node, ...] = ()


def asked_by(expression: Any) -> Asked | None:
    """What a `pyarrow.compute.Expression` asks; None where that cannot be seen."""
    try:
        entries, literals = _unpickled(expression)
        tree = _node(iter(entries), literals)
    except (pa.ArrowException, StopIteration, ValueError, LookupError, TypeError):
        return None
    columns = dict.fromkeys(node.name for node in _nodes(tree) if node.kind == "field")
    return Asked(tuple(columns), tuple(_comparisons(tree)))


def _unpickled(expression: Any) -> tuple[list[Entry], pa.RecordBatch]:
    (buffer,) = expression.__reduce__()[1]
    literals = pa.ipc.open_file(buffer).get_batch(0)
    entries = _ENTRY.findall(literals.schema.to_string(truncate_metadata=False))
    return entries, literals


def _node(entries: Iterator[Entry], literals: pa.RecordBatch) -> _Node:
    kind, text = next(entries)
    if kind == "call":
        parts = []
        while (part := _node(entries, literals)).kind != "end":
            parts.append(part)
        return _Node("call", text, parts=tuple(parts))
    if kind == "nested_field_ref":
        path = [next(entries)[1] for _ in range(int(text))]
        return _Node("other", parts=(_Node("field", path[0]),))
    if kind in ("literal", "options"):
        return _Node("literal", value=literals.column(int(text))[0])
    return _Node({"field_ref": "field", "end": "end"}[kind], text)


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for part in node.parts:
        yield from _nodes(part)


def _comparisons(node: _Node) -> Iterator[Comparison]:
    """Those that an AND is made of; nothing of an OR, of functions, of what a null meets."""
    match node:
        case _Node("call", "and_kleene", parts=parts):
            for part in parts:
                yield from _comparisons(part)
        # a IN (…): null where a is
        case _Node("call", "if_else", parts=(_Node("call", "is_valid"), inside, _)):
            yield from _comparisons(inside)
        case _Node("call", "is_in", parts=(_Node("field", column), _Node("literal", value=given))):
            values = [_number_or_bytes(scalar) for scalar in given["value_set"].values]
            yield Comparison(column, "=", frozenset(v for v in values if v is not None))
        case _Node(
            "call", name, parts=(_Node("field", column), _Node("literal", value=scalar))
        ) if name in _SIGNS:
            value = _number_or_bytes(scalar)
            if value is not None:
                yield Comparison(column, _SIGNS[name], frozenset({value}))
        case _:
            return


def _number_or_bytes(scalar: pa.Scalar) -> object:
    """A literal as `Comparison` has it: a moment as microseconds since 1970."""
    if pa.types.is_timestamp(scalar.type):
        return scalar.cast(pa.timestamp("us", tz=scalar.type.tz)).value
    return scalar.as_py()
