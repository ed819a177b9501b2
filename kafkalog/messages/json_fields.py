"""Fields of records that are JSON: read without trusting what is in them.

Errors never quote the record, which may hold a secret.
"""

from __future__ import annotations

import json
from typing import Any, Never

from kafkalog.errors import CorruptRecordError

Fields = dict[str, Any]


def parse_json(what: str, data: bytes) -> Any:
    """The document; CorruptRecordError names `what` it is of."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except ValueError as error:  # of the text, its encoding, or a number of too many digits
        place = getattr(error, "pos", getattr(error, "start", None))
        where = "" if place is None else f" at {place}"
        raise CorruptRecordError(f"{what} is not JSON{where}") from None
    except RecursionError:
        raise CorruptRecordError(f"{what} is JSON of too many levels") from None


def parse_object(what: str, data: bytes) -> Fields:
    """The same of what must be an object."""
    found = parse_json(what, data)
    if not isinstance(found, dict):
        raise CorruptRecordError(f"{what} is JSON of {_kind(found)}, not an object")
    return found


def text(what: str, fields: Fields, name: str) -> str | None:
    """A string; None where it is null or not there."""
    found = fields.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise CorruptRecordError(f"{name} of {what} is {_kind(found)}, not a string")
    return printable(found)


def number(what: str, fields: Fields, name: str, *, bits: int) -> int | None:
    """A whole number of so many bits with its sign; None where it is null or not there."""
    found = fields.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise CorruptRecordError(f"{name} of {what} is {_kind(found)}, not a whole number")
    if not -(1 << (bits - 1)) <= found < 1 << (bits - 1):
        raise CorruptRecordError(f"{name} of {what} does not fit {bits} bits")
    return found


def flag(what: str, fields: Fields, name: str) -> bool | None:
    """true or false; None where it is null or not there."""
    found = fields.get(name)
    if found is None or isinstance(found, bool):
        return found
    raise CorruptRecordError(f"{name} of {what} is {_kind(found)}, not true or false")


def compact_json(found: Any) -> str:
    """A document as text: no spaces, characters as they are."""
    return printable(json.dumps(found, separators=(",", ":"), ensure_ascii=False))


def printable(found: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which JSON can name and UTF-8 cannot."""
    if found.isascii():
        return found
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no number of JSON")


def _kind(found: object) -> str:
    if found is None:
        return "null"
    names: dict[type, str] = {
        dict: "an object", list: "an array", str: "a string", bool: "true or false",
    }  # fmt: skip
    return names.get(type(found), "a number")
