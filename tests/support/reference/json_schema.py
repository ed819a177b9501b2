"""The part of JSON Schema that the journal's schema uses, told slowly and plainly."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "required", "properties"),
    *("additionalProperties", "items", "enum", "const", "pattern", "oneOf", "anyOf"),
}


def errors_of(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "") -> list[str]:
    """What is wrong with `value`; a keyword that is not known here is wrong with the schema."""
    found = [f"{at}: unknown keyword {word}" for word in schema.keys() - _KNOWN]
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return found + errors_of(value, root["$defs"][name], root, at)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kinds = tuple(kind for name in names for kind in _TYPES[name])
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            return [*found, f"{at}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: {value!r} is not {schema['const']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: {value!r} does not match {schema['pattern']}")
    if isinstance(value, dict):
        found += [f"{at}: no {name}" for name in schema.get("required", ()) if name not in value]
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is False:
            found += [f"{at}: {name} is unknown" for name in value.keys() - properties.keys()]
        for name in value.keys() & properties.keys():
            found += errors_of(value[name], properties[name], root, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += errors_of(item, schema["items"], root, f"{at}[{number}]")
    for word, fits in (("oneOf", lambda n: n == 1), ("anyOf", lambda n: n >= 1)):
        if word in schema:
            arms = [errors_of(value, arm, root, at) for arm in schema[word]]
            if not fits(sum(not arm for arm in arms)):
                found.append(f"{at}: fits {sum(not arm for arm in arms)} of {word}: {arms}")
    return found
