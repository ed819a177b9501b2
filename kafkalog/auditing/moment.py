"""A time that remembers what it was asked, so that it is known until when the answers hold.

Rules hold a time against others: is this older than retention.ms, is that in the future. Each
answer stays what it is until the time has gone on so far. A `Moment` is the number itself, and
notes with each comparison how far that is; the nearest of all is when something made of it may
change. Whatever else is done with it (a text, a product) makes that hold at this moment alone.

The rules need not know of it, and a new rule cannot be forgotten in a list of what depends on time.
What the interpreter reads of a number without asking its class (`"%d" %`, JSON) is not noticed: a
moment that has got into a result is looked for there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from kafkalog.format.constants import MAX_INT64


class Term:
    """How long what was made of a moment holds: at any that is later by less than `lasts_ms`."""

    __slots__ = ("lasts_ms",)

    def __init__(self) -> None:
        self.lasts_ms = MAX_INT64

    def end_after(self, later_ms: int) -> None:
        """Something changes when the moment is later by so much; it does not go back."""
        if 0 < later_ms < self.lasts_ms:
            self.lasts_ms = later_ms


class Moment(int):
    """A time in ms, or one that differs from it by a constant."""

    term: Term
    __array_ufunc__ = None  # numpy leaves what is done with its own numbers to this class

    def __new__(cls, value: int, term: Term) -> Moment:
        moment = super().__new__(cls, value)
        moment.term = term
        return moment

    @property
    def plain(self) -> int:
        """The number, without a note."""
        return int.__add__(self, 0)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        self._looked_at()
        return int, (self.plain,)

    def _asked(self, other: Any, *, reaches: bool, passes: bool) -> tuple[int, Any]:
        """Both as plain numbers, asked whether this one has reached the other, or is past it."""
        if isinstance(other, np.integer):
            other = other.item()
        if type(other) is not int:
            return self.plain, self._looked_at(other)
        if reaches:
            self.term.end_after(other - self.plain)
        if passes:
            self.term.end_after(other - self.plain + 1)
        return self.plain, other

    def _looked_at(self, other: Any = None) -> Any:
        """The other as a plain number: what is made of the two holds now alone."""
        self.term.end_after(1)
        if isinstance(other, Moment):
            other.term.end_after(1)
            return other.plain
        return other.item() if isinstance(other, np.generic) else other

    def __lt__(self, other: Any) -> bool:
        return bool(operator.lt(*self._asked(other, reaches=True, passes=False)))

    def __ge__(self, other: Any) -> bool:
        return bool(operator.ge(*self._asked(other, reaches=True, passes=False)))

    def __le__(self, other: Any) -> bool:
        return bool(operator.le(*self._asked(other, reaches=False, passes=True)))

    def __gt__(self, other: Any) -> bool:
        return bool(operator.gt(*self._asked(other, reaches=False, passes=True)))

    def __eq__(self, other: object) -> bool:
        return bool(operator.eq(*self._asked(other, reaches=True, passes=True)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __add__(self, other: Any) -> Any:
        if type(other) is not int:
            return self.plain + self._looked_at(other)
        return Moment(int.__add__(self, other), self.term)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        if type(other) is not int:
            return self.plain - self._looked_at(other)
        return Moment(int.__sub__(self, other), self.term)


# All else that a number can do gives its value away.
_OTHERS = (
    "rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod pow rpow lshift "
    "rlshift rshift rrshift and rand or ror xor rxor neg pos abs invert bool int float index round "
    "trunc floor ceil hash str repr format"
)


def _method(name: str) -> Callable[..., Any]:
    of_int = getattr(int, name)

    def look(moment: Moment, *others: Any) -> Any:
        found = [moment._looked_at(other) for other in others]
        if not found:
            moment._looked_at()
        return of_int(moment.plain, *found)

    return look


for _name in _OTHERS.split():
    setattr(Moment, f"__{_name}__", _method(f"__{_name}__"))
