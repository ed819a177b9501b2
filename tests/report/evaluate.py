"""What a path of `kafkalog.report.figures` means, step by step; and the numbers of a page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
}
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Shown:
    """A number as the page has it."""

    at: str
    value: str
    text: str


class _Numbers(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str, str, list[str]]] = []
        self.found: list[Shown] = []
        self.plain: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        facts = dict(attrs)
        if facts.get("data-at"):
            self.open.append((tag, facts["data-at"] or "", facts.get("data-value") or "", []))

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][3].append(data)
        elif self.tags and self.tags[-1] not in ("style", "script"):
            self.plain.append(data)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1][0] == tag:
            _, at, value, texts = self.open.pop()
            self.found.append(Shown(at, value, "".join(texts)))


def numbers_of(page: str) -> list[Shown]:
    """Every element that says where it is from."""
    parser = _Numbers()
    parser.feed(page)
    parser.close()
    return parser.found


def evaluate(document: Any, at: str) -> Any:
    """The value at a path; of several numbers the sum."""
    if at.startswith("count("):
        reached = list(_reach([document], at.removeprefix("count(").removesuffix(")")))
        return sum(len(each) if isinstance(each, list) else 1 for each in reached)
    reached = list(_reach([document], at))
    if len(reached) == 1:
        return reached[0]
    return sum(reached)


def _reach(values: list[Any], path: str) -> Iterator[Any]:
    while path:
        if path.startswith("["):
            name, operator = re.match(r"\[(\w+)(!=|>=|=|<)", path).groups()  # type: ignore[union-attr]
            start = 1 + len(name) + len(operator)
            wanted, end = _DECODER.raw_decode(path, start)
            assert path[end] == "]", path
            path = path[end + 1 :]
            items = [i for v in values for i in (v if isinstance(v, list) else [v])]
            values = [i for i in items if OPERATORS[operator](i[name], wanted)]
            continue
        path = path.removeprefix(".")
        step = re.match(r"[^.\[]+", path)[0]  # type: ignore[index]
        # a dotted name, as a topic's setting, is not used by the page
        path = path[len(step) :]
        values = [inner for value in values for inner in _step(value, step)]
    yield from values


def _step(value: Any, step: str) -> list[Any]:
    if isinstance(value, list) and step.isdigit():
        return [value[int(step)]]
    if isinstance(value, list):
        return value if step == "*" else [inner for item in value for inner in _step(item, step)]
    if step == "*":
        return list(value.values())
    return [value[name] for name in step.split("+")]
