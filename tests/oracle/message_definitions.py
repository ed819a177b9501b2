"""Kafka's message definitions, as they lie in its jars, beside our tables."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.messages.schema import Array, FieldType, Message, Struct, Versions
from tests.oracle.jars import RELEASES
from tests.oracle.setup import JARS, ensure_oracle


def read_definitions(line: str, jar_name: str, folder: str) -> dict[str, dict[str, Any]]:
    """name → definition, of all messages in a folder of a release's jar; `file` is its file."""
    ensure_oracle(line)
    found = {}
    with zipfile.ZipFile(JARS / f"{jar_name}-{RELEASES[line]}.jar") as jar:
        for name in jar.namelist():
            if name.startswith(f"{folder}/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(text) | {"file": name.rpartition("/")[2]}
                found[definition["name"]] = definition
    return found


def fields_of_table(message: Message) -> list[tuple[Any, ...]]:
    """Our fields as their definition has them."""
    return _ours(message.body, message)


def fields_of_definition(definition: Mapping[str, Any], message: Message) -> list[tuple[Any, ...]]:
    """The fields of a definition, in the versions that our table has."""
    common = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    return _theirs(definition["fields"], message, common)


def _ours(body: Struct, message: Message) -> list[tuple[Any, ...]]:
    return [
        (
            field.name[0].upper() + field.name[1:],
            _kind(field.type),
            _span(field.versions, message),
            [v for v in _span(field.versions, message) if v in field.nullable],
            field.tag,
            _nested(field.type, message),
        )
        for field in body.fields
    ]


def _kind(type_: FieldType) -> str:
    if isinstance(type_, Array):
        return f"[]{_kind(type_.item)}"
    return "struct" if isinstance(type_, Struct) else str(type_)


def _nested(type_: FieldType, message: Message) -> list[tuple[Any, ...]]:
    inner = type_.item if isinstance(type_, Array) else type_
    return _ours(inner, message) if isinstance(inner, Struct) else []


def _span(versions: Versions, message: Message) -> list[int]:
    return [v for v in range(message.versions.last + 1) if v in versions]


def _theirs(
    fields: Sequence[Mapping[str, Any]], message: Message, common: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    found = []
    for field in fields:
        name = field["name"]
        versions = Versions.parse(field.get("versions") or field["taggedVersions"])
        nullable = Versions.parse(field.get("nullableVersions", "none"))
        inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), ())
        found.append(
            (
                name[0].upper() + name[1:],
                re.sub(r"[A-Z]\w*$", "struct", field["type"]),
                _span(versions, message),
                [v for v in _span(versions, message) if v in nullable],
                field.get("tag"),
                _theirs(inner, message, common),
            )
        )
    return found
