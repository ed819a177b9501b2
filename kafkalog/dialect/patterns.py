"""LIKE and regular expressions: patterns that Java and DuckDB's RE2 read alike, or that can be
written so that they do. A pattern must be a literal, since it is looked at here.

Java's `.` matches no line terminator, not only no line feed; its `$` matches before a last one;
its `\\s` has the vertical tab. Sources: java.util.regex.Pattern, RE2's syntax page.
"""

from __future__ import annotations

import re
import warnings

from sqlglot import exp

from kafkalog.dialect.casts import coerce_to_text
from kafkalog.dialect.errors import NotTranslatedError, QueryError, refusal
from kafkalog.dialect.scope import Context
from kafkalog.dialect.typed import Typed, computed, shown_text, text_literal
from kafkalog.dialect.types import BOOLEAN

_TOKEN = re.compile(
    r"\\(?P<escaped>.)|(?P<group>\(\?:|\((?!\?))|(?P<set>\[\^?)|(?P<count>\{\d{1,3}(?:,\d{0,3})?\})"
    r"|(?P<special>[.^$|)*+?])|(?P<bad>[\](){}])|(?P<plain>.)",
    re.DOTALL,
)
_ESCAPED = {
    "d": "[0-9]", "D": "[^0-9]", "w": "[a-zA-Z_0-9]", "W": "[^a-zA-Z_0-9]",
    "s": "[ \\t\\n\\x0B\\f\\r]", "S": "[^ \\t\\n\\x0B\\f\\r]", "t": "\\t", "n": "\\n", "r": "\\r",
    "f": "\\f",
}  # fmt: skip
_DOT = "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]"
_END = "(?:\\r\\n|[\\n\\r\\x{85}\\x{2028}\\x{2029}])?\\z"


def like(context: Context, node: exp.Expression) -> Typed:
    """LIKE, LIKE … ESCAPE, RLIKE, with NOT."""
    escape = "\\"
    shown_escape = ""
    if isinstance(node, exp.Escape):
        escape = node.expression.this
        shown_escape = f" ESCAPE '{escape}'"
        if not isinstance(escape, str) or len(escape) != 1:
            raise refusal("this ESCAPE")
        node = node.this
    is_not = bool(node.args.get("negate"))
    if isinstance(node, exp.ILike) or isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
        raise refusal(f"{type(node).__name__.upper()} of this form")
    item, pattern = context.compile(node.this), context.compile(node.expression)
    if not isinstance(pattern.value, str) or not pattern.is_literal:
        raise refusal("a pattern that is no literal")
    text = shown_text(coerce_to_text(item))
    if isinstance(node, exp.RegexpLike):
        sql = matches(text, pattern.value)
        label = f"RLIKE({item.label}, {pattern.label})"
    else:
        sql = _like(text, pattern.value, escape)
        label = f"{item.label} LIKE {pattern.label}{shown_escape}"
    if is_not:
        return computed(f"(NOT {sql})", BOOLEAN, f"(NOT {label})")
    return computed(sql, BOOLEAN, label)


def _like(text: str, pattern: str, escape: str) -> str:
    at = 0
    while (at := pattern.find(escape, at)) >= 0:
        if at + 1 == len(pattern) or pattern[at + 1] not in ("%", "_", escape):
            raise QueryError(f"LIKE {pattern!r}: {escape!r} escapes nothing at {at + 1}")
        at += 2
    if "\ufffd" in pattern:
        raise refusal("LIKE with U+FFFD")
    return f"({text} LIKE {text_literal(pattern)} ESCAPE {text_literal(escape)})"


def matches(text: str, pattern: str) -> str:
    return f"regexp_matches({text}, {text_literal(translate_pattern(pattern))})"


def translate_pattern(pattern: str, *, ends: bool = True) -> str:
    """A pattern of Java for RE2. With `ends` false a `$` is refused: it would take the line's end
    into what was found."""
    _compiles(pattern)
    done, at = [], 0
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        # A list of what is allowed: whatever is not named here may mean something else to Java than
        # to RE2, and is refused with its place.
        if found is None or found["bad"]:
            raise _unknown(pattern, at)
        at = found.end()
        if found["escaped"]:
            done.append(_escaped(found["escaped"], pattern, found.start()))
        elif found["set"]:
            text, at = _set(pattern, found.start())
            done.append(text)
        elif found["special"] == ".":
            done.append(_DOT)
        elif found["special"] == "$":
            if not ends or at != len(pattern):
                raise _unknown(pattern, found.start())
            done.append(_END)
        # A possessive quantifier, which RE2 has not got.
        elif (found["special"] or found["count"]) and pattern[at : at + 1] == "+":
            raise _unknown(pattern, at)
        else:
            done.append(found[0])
    return "".join(done)


def _compiles(pattern: str) -> None:
    if "\ufffd" in pattern:
        raise refusal("a pattern with U+FFFD")
    try:
        with warnings.catch_warnings():
            # Sets that may become something else in Python are something else in Java.
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, FutureWarning, DeprecationWarning):
        raise refusal(f"the pattern {pattern!r}") from None


def _unknown(pattern: str, at: int) -> NotTranslatedError:
    return refusal(f"the pattern {pattern!r}", f"{pattern[at : at + 3]!r} at {at + 1}")


def _escaped(letter: str, pattern: str, at: int) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    if letter.isalnum() or ord(letter) > 127 or letter.isspace():
        raise _unknown(pattern, at)
    return "\\" + letter


def _set(pattern: str, start: int) -> tuple[str, int]:
    """`[…]` of characters, ranges and escapes; where it ends."""
    at = start + (2 if pattern.startswith("[^", start) else 1)
    done, first = pattern[start:at], at
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and at > first:
            return done + "]", at + 1
        if letter in "[]&^" or pattern.startswith("--", at):
            break
        if letter == "\\":
            inner = _escaped(pattern[at + 1 : at + 2] or "b", pattern, at)
            if inner.startswith("[^"):
                break
            done += inner[1:-1] if inner.startswith("[") else inner
            at += 2
        else:
            done += letter
            at += 1
    raise _unknown(pattern, at)
