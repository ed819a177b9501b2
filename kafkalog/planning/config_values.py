"""Text of a setting → value, by the rules of Kafka's ConfigDef.

Whitespace around a value is dropped; `boolean` takes true and false in any case; `int` and `long`
are 32 and 64 bits wide; `list` is split at commas.

Source: Kafka ConfigDef.parseType, ConfigDef.Range, ConfigDef.ValidList.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from kafkalog.errors import InvalidConfigError

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_BITS = {"int": 32, "long": 64}


@dataclass(frozen=True, slots=True)
class Limits:
    """A closed range and one more value that is legal outside it, or the words allowed."""

    at_least: int | None = None
    at_most: int | None = None
    also: int | None = None
    allowed: tuple[str, ...] = ()


def parse_config_value(key: str, text: str, kind: str, limits: Limits) -> Any:
    """The value of `text` for a setting of `kind` (boolean, int, long, double, string, list).

    InvalidConfigError says the key, what was found and what is allowed.
    """
    text = text.strip()
    if kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise InvalidConfigError(f"{key}: expected true or false, found {text!r}")
        return text.lower() == "true"
    if kind in _BITS:
        return _in_range(key, _parse_integer(key, text, _BITS[kind]), limits)
    if kind == "double":
        return _in_range(key, _parse_double(key, text), limits)
    if kind == "list":
        return _parse_list(key, text, limits)
    _check_allowed(key, text, limits)
    return text


def _parse_integer(key: str, text: str, bits: int) -> int:
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise InvalidConfigError(f"{key}: expected a {bits} bit integer, found {text!r}")
    return value


def _parse_double(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidConfigError(f"{key}: expected a number, found {text!r}")
    return value


def _parse_list(key: str, text: str, limits: Limits) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(",")) if text else ()
    for item in items:
        _check_allowed(key, item, limits)
    if len(set(items)) != len(items):
        raise InvalidConfigError(f"{key}: {text!r} names a value twice")
    return items


def _check_allowed(key: str, word: str, limits: Limits) -> None:
    if limits.allowed and word not in limits.allowed:
        raise InvalidConfigError(f"{key}: expected {', '.join(limits.allowed)}, found {word!r}")


def _in_range(key: str, value: Any, limits: Limits) -> Any:
    below = limits.at_least is not None and value < limits.at_least
    above = limits.at_most is not None and value > limits.at_most
    if (below or above) and value != limits.also:
        most = "" if limits.at_most is None else f" and at most {limits.at_most}"
        also = "" if limits.also is None else f", or {limits.also}"
        raise InvalidConfigError(f"{key}: {value} is not at least {limits.at_least}{most}{also}")
    return value
