"""Facts and plans as JSON and back, driven by their field annotations.

A plan is made on one machine and carried out on another, and is printed with `--json`: the frozen
dataclasses of the log and planning rooms all derive from JsonFacts and need no codec of their own.
Keys are the field names; a tuple is a list, an enum its value. Only the shapes used there are
known: str, int, float, bool, None, nested facts, tuples, mappings. What a class's annotations ask
for is found out once, as an audit has some hundred thousand of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Self, Union, cast, get_args, get_origin, get_type_hints

Codec = Callable[[Any], Any]
_PLAIN = (str, int, float, bool, NoneType)


class JsonFacts:
    """Base of frozen dataclasses that travel as JSON."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """For `pickle`: the fields in their order. What a dataclass with slots does by itself goes
        field by field, both ways, and tasks and results have some hundred facts each.
        """
        return type(self), tuple(_row_encoder(cast("Hashable", type(self)))[0](self))

    def to_json(self) -> dict[str, Any]:
        """A dict that `json.dumps` takes as it is."""
        names, values_of, encoded = _encoder(cast("Hashable", type(self)))
        found = dict(zip(names, values_of(self), strict=True))
        for name in encoded:
            found[name] = _encode(found[name])
        return found

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The value `to_json` was called on. Unknown and missing keys are a TypeError: both sides
        are this program.
        """
        decoders = _decoders(cast("Hashable", cls))
        if not decoders:
            return cls(**values)
        decoded = dict(values)
        for name in decoders.keys() & decoded.keys():
            decoded[name] = decoders[name](decoded[name])
        return cls(**decoded)

    def to_row(self) -> list[Any]:
        """The values of `to_json` without their names, of facts within as well, for what is kept in
        large numbers; tuples of plain values are themselves.
        """
        values_of, encoded = _row_encoder(cast("Hashable", type(self)))
        row = values_of(self)
        for place in encoded:
            row[place] = _encode_row(row[place])
        return row

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Self:
        """The value `to_row` was called on; ValueError or TypeError for any other row."""
        count, decoders = _row_decoders(cast("Hashable", cls))
        values = list(row)
        if len(values) != count:
            raise ValueError(f"{cls.__name__} has {count} fields, the row {len(values)}")
        for place, decode in decoders:
            values[place] = decode(values[place])
        return cls(*values)


@cache
def _encoder(
    facts: Hashable,
) -> tuple[tuple[str, ...], Callable[[Any], Sequence[Any]], tuple[str, ...]]:
    """The fields, what gives a value's of them all, and those that JSON does not have."""
    hints, names = get_type_hints(facts), _names(facts)
    return names, _getter(names), tuple(name for name in names if not _is_plain(hints[name]))


@cache
def _names(facts: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in fields(facts))  # type: ignore[arg-type]


def _getter(names: tuple[str, ...]) -> Callable[[Any], Sequence[Any]]:
    """All these attributes of a value at once."""
    if not names:
        return lambda value: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else (lambda value: (get(value),))


@cache
def _row_encoder(facts: Hashable) -> tuple[Callable[[Any], list[Any]], tuple[int, ...]]:
    """What makes a list of a value's fields, and the places of those that JSON does not have."""
    hints, names = get_type_hints(facts), _names(facts)
    get = _getter(names)

    def values_of(value: Any) -> list[Any]:
        return list(get(value))

    places = (place for place, name in enumerate(names) if not _is_plain_in_rows(hints[name]))
    return values_of, tuple(places)


def _is_plain_in_rows(hint: Any) -> bool:
    """Whether JSON has values of this type, tuples of plain ones as well: they are most of what is
    in rows, and are written as lists.
    """
    if get_origin(hint) is tuple:
        return all(arm is Ellipsis or _is_plain_in_rows(arm) for arm in get_args(hint))
    return _is_plain(hint)


@cache
def _decoders(facts: Hashable) -> dict[str, Codec]:
    """Of the fields whose values JSON does not have."""
    found = {name: _decoder(hint) for name, hint in get_type_hints(facts).items()}
    return {name: decode for name, decode in found.items() if decode is not None}


@cache
def _row_decoders(facts: Hashable) -> tuple[int, tuple[tuple[int, Codec], ...]]:
    """How many fields there are, and of those whose values JSON does not have the decoders."""
    hints, names = get_type_hints(facts), _names(facts)
    found = ((place, _decoder(hints[name], in_rows=True)) for place, name in enumerate(names))
    return len(names), tuple((place, decode) for place, decode in found if decode is not None)


def _row_decoder(facts: type[JsonFacts]) -> Codec:
    """`from_row`, without the detours where no field needs decoding."""
    count, decoders = _row_decoders(cast("Hashable", facts))

    def decode(row: Sequence[Any]) -> Any:
        if len(row) != count:
            raise ValueError(f"{facts.__name__} has {count} fields, the row {len(row)}")
        return facts(*row)

    return facts.from_row if decoders else decode


def _is_plain(hint: Any) -> bool:
    """Whether values of this type are JSON's own."""
    if get_origin(hint) in (Union, UnionType):
        return all(arm in _PLAIN for arm in get_args(hint))
    return hint in _PLAIN


def _encode(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, JsonFacts):
        return value.to_json()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    return value


def _encode_row(value: Any) -> Any:
    if isinstance(value, JsonFacts):
        return value.to_row()
    if isinstance(value, tuple | list):
        return [_encode_row(item) for item in value]
    return _encode(value)


def _decoder(hint: Any, *, in_rows: bool = False) -> Codec | None:
    """What makes a value of this type; None where it is JSON's. `in_rows`: facts within are rows as
    well.
    """
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        own = next(arm for arm in get_args(hint) if arm is not NoneType)
        inner = _decoder(own, in_rows=in_rows)
        return inner and (lambda value: None if value is None else inner(value))
    if origin is tuple:
        item = _decoder(get_args(hint)[0], in_rows=in_rows)
        return tuple if item is None else (lambda value: tuple(map(item, value)))
    if isinstance(hint, type):
        if is_dataclass(hint) and issubclass(hint, JsonFacts):
            return _row_decoder(hint) if in_rows else hint.from_json
        if issubclass(hint, Enum):
            return hint
    return None
