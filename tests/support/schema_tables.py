"""The published JSON schemas as tables: key, type and what it means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[2] / "kafkalog"
_HEAD = ["| key | type | means |", "|---|---|---|"]


def schema_tables() -> dict[str, list[str]]:
    audit = _read("auditing/audit.schema.json")
    journal = _read("runs/journal.schema.json")
    rows = [*_HEAD, *_rows(audit, "", audit)]
    events: list[str] = ["| event | key | type | means |", "|---|---|---|---|"]
    for event in journal["oneOf"]:
        known = event["properties"]["event"]
        name = ", ".join(f"`{n}`" for n in known.get("enum", [known.get("const")]))
        events.append(f"| {name} | | | {event['description']} |")
        events += [f"| {row}" for row in _rows(event, "", journal) if "`event`" not in row]
    return {"schema audit": rows, "schema journal": events}


def _read(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_PACKAGE / name).read_text(encoding="utf-8"))
    return schema


def _rows(schema: dict[str, Any], path: str, root: dict[str, Any]) -> Iterator[str]:
    for key, of_key in schema.get("properties", {}).items():
        yield from _value_rows(of_key, f"{path}.{key}" if path else key, root)


def _value_rows(value: dict[str, Any], path: str, root: dict[str, Any]) -> Iterator[str]:
    """A row of the value, and those of what is in it."""
    means = value.get("description", "")
    value = _resolved(value, root)
    means = means or value.get("description", "")
    yield f"| `{path}` | {_type(value, root)} | {means.replace('|', chr(92) + '|')} |"
    for kind in (value, *value.get("anyOf", ()), *value.get("oneOf", ())):
        kind = _resolved(kind, root)
        yield from _rows(kind, path, root)
        if "items" in kind:
            yield from _rows(_resolved(kind["items"], root), f"{path}[]", root)


def _resolved(value: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = value.get("$ref")
    return value if reference is None else root["$defs"][reference.rpartition("/")[2]]


def _type(value: dict[str, Any], root: dict[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(f"`{json.dumps(x)}`" for x in value["enum"])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    kinds = value.get("anyOf") or value.get("oneOf")
    if kinds is not None:
        return " or ".join(_type(_resolved(kind, root), root) for kind in kinds)
    known = value.get("type", "any")
    return known if isinstance(known, str) else " or ".join(known)
