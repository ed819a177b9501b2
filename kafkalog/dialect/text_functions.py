"""Functions of texts and bytes with rules of their own."""

from __future__ import annotations

import re

from kafkalog.dialect.arguments import Special, expect, label_of
from kafkalog.dialect.casts import cast, coerce_to_text, to_integer
from kafkalog.dialect.errors import refusal
from kafkalog.dialect.functions import concat, substring
from kafkalog.dialect.patterns import matches, translate_pattern
from kafkalog.dialect.typed import (
    Typed,
    as_blob,
    bytes_length,
    computed,
    exact_text,
    shown_text,
    text_literal,
)
from kafkalog.dialect.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
)


def _length(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    item = given[0]
    if item.type == BINARY:
        return computed(bytes_length(item), INT, label_of(name, given))
    text = coerce_to_text(item)
    function = "spark_bytes_length" if text.is_bytes else "length"
    return computed(f"{function}({text.sql})::INTEGER", INT, label_of(name, given))


def _octet_length(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    item = given[0] if given[0].type == BINARY else coerce_to_text(given[0])
    length = bytes_length(item)
    sql = f"({length} * 8)::INTEGER" if name == "bit_length" else length
    return computed(sql, INT, label_of(name, given))


def _concat(given: list[Typed], name: str) -> Typed:
    return concat(given)


def _concat_ws(given: list[Typed], name: str) -> Typed:
    if len(given) < 2 or any(item.type.element is not None for item in given):
        raise refusal("concat_ws() of this form")
    texts = [exact_text(coerce_to_text(item)) for item in given]
    return computed(f"concat_ws({', '.join(texts)})", STRING, label_of(name, given))


def _side(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    text, count = exact_text(coerce_to_text(given[0])), to_integer(given[1], name)
    return computed(f"spark_{name}({text}, {count})", STRING, label_of(name, given))


def _pad(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2, 3)
    if given[0].type == BINARY:
        raise refusal(f"{name}() of binary")
    text, count = exact_text(coerce_to_text(given[0])), to_integer(given[1], name)
    pad = exact_text(coerce_to_text(given[2])) if len(given) == 3 else "' '"
    shown = [item.label for item in given] + [" "] * (3 - len(given))
    side = "left" if name == "lpad" else "right"
    sql = f"spark_pad({text}, {count}, {pad}, '{side}')"
    return computed(sql, STRING, f"{name}({', '.join(shown)})")


def _locate(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    found, text = (exact_text(coerce_to_text(item)) for item in given)
    label = f"{name}({given[0].label}, {given[1].label}, 1)"
    return computed(f"strpos({text}, {found})::INTEGER", INT, label)


def _bytes_test(given: list[Typed], name: str) -> Typed:
    """startswith, endswith, contains: of texts that are whole."""
    expect(given, name, 2)
    if BINARY in (given[0].type, given[1].type):
        raise refusal(f"{name}() of binary")
    function = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}[name]
    text, part = (exact_text(coerce_to_text(item)) for item in given)
    return computed(f"{function}({text}, {part})", BOOLEAN, label_of(name, given))


def _regexp_like(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    pattern = given[1]
    if not pattern.is_literal or not isinstance(pattern.value, str):
        raise refusal("a pattern that is no literal")
    sql = matches(shown_text(coerce_to_text(given[0])), pattern.value)
    return computed(sql, BOOLEAN, label_of("REGEXP_LIKE", given))


def _regexp_extract(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2, 3)
    group = given[2].value if len(given) == 3 else 1
    pattern = _literal_pattern(given[1])
    if not isinstance(group, int) or not 0 <= group <= re.compile(pattern).groups:
        raise refusal(f"{name}() of this group")
    text = shown_text(coerce_to_text(given[0]))
    wanted = text_literal(translate_pattern(pattern, ends=False))
    shown = [item.label for item in given] + ["1"] * (3 - len(given))
    sql = f"regexp_extract({text}, {wanted}, {group})"
    return computed(sql, STRING, f"{name}({', '.join(shown)})")


def _regexp_replace(given: list[Typed], name: str) -> Typed:
    """Of patterns that match no empty text: there the engines differ."""
    expect(given, name, 3)
    pattern, new = _literal_pattern(given[1]), given[2].value
    if re.match(pattern, "") or not given[2].is_literal or not isinstance(new, str):
        raise refusal(f"{name}() of this form")
    if "\\" in new or "$" in new:
        raise refusal(f"{name}() with groups")
    text = shown_text(coerce_to_text(given[0]))
    wanted = text_literal(translate_pattern(pattern, ends=False))
    sql = f"regexp_replace({text}, {wanted}, {text_literal(new)}, 'g')"
    return computed(sql, STRING, f"{name}({', '.join(item.label for item in given)}, 1)")


def _literal_pattern(item: Typed) -> str:
    if not item.is_literal or not isinstance(item.value, str):
        raise refusal("a pattern that is no literal")
    return item.value


def _json_object(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    path = given[1]
    if not path.is_literal or not isinstance(path.value, str):
        raise refusal("get_json_object() with a path that is no literal")
    steps = _JSON_STEP.findall(path.value[1:])
    if path.value[:1] != "$" or "".join(map(_written, steps)) != path.value[1:] or not steps:
        raise refusal(f"get_json_object() with the path {path.value!r}")
    # DuckDB's own path: each name quoted.
    done = "$" + "".join(f"[{n}]" if n else f'."{a or b}"' for a, b, n in steps)
    text = shown_text(coerce_to_text(given[0]))
    return computed(f"spark_json({text}, {text_literal(done)})", STRING, label_of(name, given))


_JSON_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^'\"\\*?]+)'\]|\[(\d{1,9})\]", re.ASCII)


def _written(step: tuple[str, str, str]) -> str:
    name, quoted_name, number = step
    return f".{name}" if name else f"['{quoted_name}']" if quoted_name else f"[{number}]"


def _hex(given: list[Typed], name: str) -> Typed:
    expect(given, name, 1)
    item = given[0]
    if item.type.is_integral:
        # Sixteen digits of a negative number, as in Java.
        sql = f"hex({cast(item, BIGINT).sql})"
    elif item.type in (STRING, BINARY):
        sql = f"hex({as_blob(item)})"
    else:
        raise refusal(f"hex() of {item.type}")
    return computed(sql, STRING, label_of(name, given))


def _sha2(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    if given[1].value not in (0, 256):
        raise refusal("sha2() of other than 256 bits")
    data = given[0] if given[0].type == BINARY else coerce_to_text(given[0])
    return computed(f"sha256({as_blob(data)})", STRING, label_of(name, given))


def _charset(given: list[Typed], name: str) -> Typed:
    expect(given, name, 2)
    if str(given[1].value).upper() != "UTF-8":
        raise refusal(f"{name}() of other than 'UTF-8'")
    if name == "encode":
        text = exact_text(coerce_to_text(given[0]))
        return computed(f"encode({text})", BINARY, label_of(name, given))
    if given[0].type != BINARY:
        raise refusal(f"decode() of {given[0].type}")
    text = f"decode({given[0].sql})"
    return computed(text, STRING, label_of(name, given))


TEXT_FUNCTIONS: dict[str, Special] = {
    "length": _length, "len": _length, "char_length": _length, "character_length": _length,
    "octet_length": _octet_length, "bit_length": _octet_length,
    "concat": _concat, "concat_ws": _concat_ws, "left": _side,
    "right": _side, "lpad": _pad, "rpad": _pad, "locate": _locate, "position": _locate,
    "startswith": _bytes_test, "endswith": _bytes_test, "contains": _bytes_test,
    "regexp_like": _regexp_like, "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace, "substr": substring, "get_json_object": _json_object,
    "hex": _hex, "sha2": _sha2, "encode": _charset, "decode": _charset,
}  # fmt: skip
