"""What the rules of functions share."""

from __future__ import annotations

from collections.abc import Callable

from kafkalog.dialect.errors import refusal
from kafkalog.dialect.typed import (
    Typed,
)

Special = Callable[[list[Typed], str], Typed]


def label_of(name: str, given: list[Typed]) -> str:
    return f"{name}({', '.join(item.label for item in given)})"


def expect(given: list[Typed], name: str, *counts: int) -> None:
    if len(given) not in counts:
        raise refusal(f"{name}() of {len(given)} arguments")
