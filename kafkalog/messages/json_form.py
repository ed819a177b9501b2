"""A decoded message as Kafka's JSON converters write it: fields of its version only, without tagged
ones that have their default; bytes as base64.

Source: Kafka's message generator, JsonConverterGenerator.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from kafkalog.messages.decoder import default_value
from kafkalog.messages.schema import Array, FieldType, Struct


def json_form(body: Struct, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A dict that `json.dumps` takes, in the order of the definition."""
    return {
        field.name: _value(field.type, version, fields[field.name])
        for field in body.fields
        if version in field.versions
        and (field.tag is None or fields[field.name] != default_value(field))
    }


def _value(kind: FieldType, version: int, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Struct):
        return json_form(kind, version, value)
    if isinstance(kind, Array):
        return [_value(kind.item, version, item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def json_text(document: Mapping[str, Any]) -> str:
    """A document as Kafka's tools print it: no spaces, characters as they are, control characters
    escaped with upper-case digits.
    """
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return _ESCAPE.sub(_upper_case, text) if "\\u" in text else text


# Pairs of backslashes go by, so that one of them is not taken for the beginning of an escape.
_ESCAPE = re.compile(r"\\\\|\\u[0-9a-f]{4}")


def _upper_case(escape: re.Match[str]) -> str:
    return escape[0][:2] + escape[0][2:].upper()
