"""Java properties text: `key=value` lines, as Kafka's `meta.properties` has them.

Latin-1. A line that starts with # or ! is a comment. A key ends at the first =, : or blank that no
backslash escapes. A backslash at the end of a line joins the next one to it; \\t \\n \\r \\f are
what they are elsewhere, \\uXXXX is a UTF-16 unit, and before anything else a backslash is dropped.
The last of two equal keys counts.

Source: java.util.Properties.load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kafkalog.errors import CorruptCheckpointError

_LINE_END = re.compile(r"\r\n|\r|\n")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<unit>.{0,4})|(?P<char>.?))", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(data: bytes, path: str | None = None) -> dict[str, str]:
    """All pairs of the text.

    Raises CorruptCheckpointError for a \\u without four hex digits, as Java does.
    """
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(data.decode("latin-1")):
        match = _PAIR.fullmatch(line)
        if match is None:  # only a lone backslash at the very end of the text, which Java drops
            continue
        pairs[_unescaped(match["key"], number, path)] = _unescaped(match["value"], number, path)
    return pairs


def pack_properties(pairs: Mapping[str, str]) -> bytes:
    """One `key=value` line a pair, escaped as Java does."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in pairs.items()).encode(
        "ascii"
    )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of its first line, line with its continuations), without comments and blanks."""
    pending, first = "", 0
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first if pending else number
        # An even number of backslashes is so many escaped ones: only an odd one escapes the line's
        # end.
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pending += line[:-1] if is_continued else line
        if not is_continued:
            yield first, pending
            pending = ""
    if pending:
        yield first, pending


def _unescaped(text: str, line: int, path: str | None) -> str:
    def replaced(match: re.Match[str]) -> str:
        unit = match["unit"]
        if unit is None:
            return _ESCAPED.get(match["char"], match["char"])
        if not re.fullmatch("[0-9a-fA-F]{4}", unit):
            raise CorruptCheckpointError(
                f"line {line}: \\u is not followed by four hex digits", path=path
            )
        return chr(int(unit, 16))

    return _ESCAPE.sub(replaced, text)


def _escaped(text: str) -> str:
    return "".join(
        f"\\{char}" if char in "\\=:#! " else char if " " < char <= "~" else f"\\u{ord(char):04x}"
        for char in text
    )
