"""Facts and plans as JSON and back, driven by their field annotations.

A plan is made on one machine and carried out on another, and is printed with `--json`: the frozen
dataclasses of the log and planning rooms all derive from JsonFacts and need no codec of their own.
Keys are the field names; a tuple is a list, an enum its value. Only the shapes used there are
known: str, int, float, bool, None, nested facts, tuples, mappings.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, Union, cast, get_args, get_origin, get_type_hints


class JsonFacts:
    """Base of frozen dataclasses that travel as JSON."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """A dict that `json.dumps` takes as it is."""
        return {field.name: _encode(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The value `to_json` was called on. Unknown and missing keys are a TypeError: both sides
        are this program.
        """
        hints = _field_types(cast("Hashable", cls))
        decoded = {name: _decode(hints.get(name, Any), value) for name, value in values.items()}
        return cls(**decoded)


@cache
def _field_types(facts: Hashable) -> dict[str, Any]:
    return get_type_hints(facts)


def _encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, JsonFacts):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    return value


def _decode(hint: Any, value: Any) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        if value is None:
            return None
        return _decode(next(arm for arm in get_args(hint) if arm is not NoneType), value)
    if origin is tuple:
        return tuple(_decode(get_args(hint)[0], item) for item in value)
    if isinstance(hint, type):
        if is_dataclass(hint) and issubclass(hint, JsonFacts):
            return hint.from_json(value)
        if issubclass(hint, Enum):
            return hint(value)
    return value
