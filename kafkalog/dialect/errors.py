"""What a query is told before it runs: that it is wrong, or that only Spark gives its answer."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sqlglot import exp

from kafkalog.errors import InvalidConfigError


class QueryError(InvalidConfigError):
    """The query is wrong in any engine: syntax, a name that is not there, types that do not fit."""


class UnknownViewError(QueryError):
    """There is no table or view of this `name`; `place` is where it stands in the query."""

    def __init__(self, name: str, place: str, hint: str) -> None:
        super().__init__(f"there is no view {name}{place}{hint}")
        self.name, self.place = name, place


class NotTranslatedError(QueryError):
    """The query may be right, but DuckDB is not known to give the same rows: Spark runs it."""


def refusal(what: str, why: str = "") -> NotTranslatedError:
    """Name the construct and the engine that has it."""
    reason = f" ({why})" if why else ""
    return NotTranslatedError(
        f"{what} is not translated{reason}: run the query with --engine spark"
    )


def place_of(node: exp.Expression) -> str:
    """` at line L, column C` of the first name below `node` whose place is known, else nothing."""
    for part in node.walk():
        if "line" in part.meta:
            width = part.meta["end"] - part.meta["start"]
            return f" at line {part.meta['line']}, column {part.meta['col'] - width}"
    return ""


def near(name: str, known: Iterable[str]) -> str:
    """`: did you mean a, b?` for names that look like `name`; else the names there are."""
    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    if found:
        return f": did you mean {', '.join(by_lower[one] for one in found)}?"
    return f": there are {', '.join(sorted(by_lower.values()))}" if by_lower else ""


def only(node: exp.Expression, *allowed: str) -> None:
    """Refuse a node with a part that no rule looks at."""
    for part, value in node.args.items():
        if part not in allowed and value and part != "_type":
            raise refusal(
                f"{part.rstrip('_').upper()} of {type(node).__name__.upper()}{place_of(node)}"
            )
