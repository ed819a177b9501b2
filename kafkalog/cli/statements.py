"""Where SQL text falls into statements: at each semicolon that is not in a string literal, a quoted
identifier or a comment.

A statement that begins with BEGIN is a script, which has semicolons inside: it takes the rest.

Source: Spark's SqlBaseLexer.g4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What a semicolon may stand in, or where that begins; `open` never ends.
_NEXT = re.compile(
    r"""(?P<semicolon>;)
    | (?P<comment>--(?:\\\n|[^\r\n])*)
    | (?P<bracket>/\*)
    | (?P<dollar>\$[A-Za-z_]*\$)
    | (?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*"
    | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
    | (?P<open>['"`])""",
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_SCRIPT = re.compile(r"BEGIN\b", re.IGNORECASE)


def split_statements(text: str) -> Iterator[str]:
    """The statements without their semicolons, as they are written; none of comments alone."""
    start = at = 0
    is_code = False
    while (found := _NEXT.search(text, at)) is not None:
        before = text[at : found.start()].strip()
        if before and not is_code and _SCRIPT.match(before):
            break
        is_comment = found["comment"] or found["bracket"]
        is_code = is_code or bool(before) or not (is_comment or found["semicolon"])
        at = _end(text, found)
        if found["semicolon"]:
            if is_code:
                yield text[start : found.start()].strip()
            start, is_code = at, False
    if is_code or text[at:].strip():
        yield text[start:].strip()


def _end(text: str, found: re.Match[str]) -> int:
    """Where what was found ends; at the end of the text what is never closed."""
    if found["open"]:
        return len(text)
    if found["dollar"]:
        closing = text.find(found["dollar"], found.end())
        return len(text) if closing < 0 else closing + len(found["dollar"])
    return _comment_end(text, found.end()) if found["bracket"] else found.end()


def _comment_end(text: str, at: int) -> int:
    """Behind a bracketed comment that begins before `at`; they nest."""
    depth = 1
    while depth:
        bracket = _BRACKETS.search(text, at)
        if bracket is None:
            return len(text)
        depth += 1 if bracket.group() == "/*" else -1
        at = bracket.end()
    return at
