"""An option: of verbs (`--log-dir`), or of the data source (`startingOffsets`). One type for both.

The tables are `cli.options` and `reading.option_table`. Parsers, refusals and the documents' tables
come from them, so that nothing is said of an option twice.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    takes: what its text is, as `DIR` or `a number`; None for a switch, which has no text. does:
    what it does, by taker where `does_there` has other words. takers: the verbs or views that it is
    for; every other one refuses it. parse: text → value; ValueError says what was expected. words:
    where they are given the text is one of them, in any case. default: of one that is not given; of
    a `is_repeatable` one that is a list.
    """

    name: str
    takes: str | None
    does: str
    takers: tuple[str, ...]
    parse: Callable[[str], Any] = str
    words: tuple[str, ...] = ()
    does_there: Mapping[str, str] = field(default_factory=dict)
    default: Any = None
    is_repeatable: bool = False
    is_required: bool = False

    def does_in(self, taker: str) -> str:
        """What it does in one verb or view."""
        return self.does_there.get(taker, self.does)

    def value(self, text: str) -> Any:
        """What the text means; ValueError says what was expected."""
        if self.words:
            text = {word.lower(): word for word in self.words}.get(text.strip().lower(), text)
        if self.words and text not in self.words:
            if len(self.words) == 1:
                raise ValueError(f"{text!r} is not {self.words[0]}, which is all there is")
            near = did_you_mean(text, self.words)
            raise ValueError(f"{text!r} is none of {', '.join(self.words)}{near}")
        return self.parse(text)


def did_you_mean(word: str, names: Iterable[str], most: int = 3) -> str:
    """`; did you mean subscribePattern?` for a word that is near a name; else nothing."""
    return _question(_near(word, {name.lower(): name for name in names}, most))


def did_you_mean_of(words: Sequence[str], names: Iterable[str]) -> str:
    """The same for several words, the nearest name of each of the first few."""
    by_lower = {name.lower(): name for name in names}
    most = 3 if len(words) == 1 else 1
    return _question([near for word in words[:3] for near in _near(word, by_lower, most)])


def _near(word: str, by_lower: Mapping[str, str], most: int) -> list[str]:
    found = difflib.get_close_matches(word.lower(), by_lower, n=most, cutoff=0.7)
    return [by_lower[name] for name in found]


def _question(near: Iterable[str]) -> str:
    names = " or ".join(dict.fromkeys(near))
    return f"; did you mean {names}?" if names else ""
