"""What is given where several names may be: a list of them, or one as it is. A string is never its
letters.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import TypeVar

One = TypeVar("One")
PathName = str | PathLike[str]


def names_in(given: str | Iterable[str]) -> tuple[str, ...]:
    """Names of topics or columns; a string may have several with commas between them, which no name
    has in it.
    """
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return tuple(given)


def paths_in(given: PathName | Iterable[PathName]) -> tuple[str, ...]:
    """Paths."""
    if isinstance(given, str | PathLike):
        return (fspath(given),)
    return tuple(fspath(path) for path in given)


def values_in(given: One | Iterable[One], kind: type[One]) -> tuple[One, ...]:
    """Values of one kind that may be iterable itself."""
    return (given,) if isinstance(given, kind) else tuple(given)  # type: ignore[arg-type]
