"""What machine code is made from: kernels and their helpers, not compiled yet.

A decorator of `jit` remembers a function here and nothing else, so that a process whose kernels are
all kept loads no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class Kind(Enum):
    """How a function gets into machine code."""

    KERNEL = "kernel"  # has a way in from Python
    INLINED = "inlined"  # becomes part of whatever calls it
    HELPER = "helper"  # LLVM decides whether it is worth its place
    INTRINSIC = "intrinsic"  # says itself, in LLVM's language, what it is


@dataclass(frozen=True)
class ArrayType:
    """An argument of a kernel that is a contiguous array. One that is only read may be writable
    or not: Arrow's buffers are not."""

    dtype: np.dtype[Any]
    is_written: bool
    dimensions: int = 1


# The type of one argument: an array, or the scalar that numpy calls so.
ArgumentType = ArrayType | type[np.generic]


@dataclass(frozen=True)
class Part:
    """A function that machine code is made from."""

    function: Callable[..., Any]
    kind: Kind
    signature: tuple[ArgumentType, ...] = ()

    @property
    def name(self) -> str:
        """As a file may be named, and a symbol."""
        function = self.function
        named = f"{function.__module__}.{function.__qualname__}"
        return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in named)


# By the identity of what stands for it in other functions' globals, which is held so that no other
# object gets its number.
_known: dict[int, tuple[object, Part]] = {}


def remember(stands_for: object, part: Part) -> None:
    """From now on `stands_for` in the code of a kernel means this part."""
    _known[id(stands_for)] = stands_for, part


def part_of(value: object) -> Part | None:
    """The part that a global of a kernel stands for."""
    found = _known.get(id(value))
    return None if found is None else found[1]


def known_kernels() -> list[tuple[object, Part]]:
    """All kernels of the modules that are imported, with what stands for them."""
    return [(made, part) for made, part in _known.values() if part.kind is Kind.KERNEL]
