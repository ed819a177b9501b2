"""The GUID of a schema, by which newer serializers name it in a record's headers: the MD5 of what
the schema is, as a UUID.

 text of the schema
 each reference        name, subject, version (4 bytes, big endian)
 metadata, if any      a byte 1, tags, properties, sensitive
 rules, if any         a byte 1, migration rules, domain rules, encoding rules

Texts are UTF-8, one behind the other without anything between them; maps and sets are in the order
of their keys.

Source: Confluent's Schema Registry 8, Schema.updateHash and MD5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from uuid import UUID

_RULE_TEXTS = ("name", "doc", "kind", "mode", "type")
_RULE_ENDS = ("expr", "onSuccess", "onFailure")


def schema_guid(fields: dict[str, Any]) -> str | None:
    """Of a schema's value in `_schemas`: its own field `guid`, or what the registry makes of the
    others. None where they are not of the kinds that a registry writes."""
    try:
        given = fields.get("guid")
        if given is not None:
            return str(UUID(given))
        parts = b"".join(_parts(fields))
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
        return None
    return str(UUID(bytes=hashlib.md5(parts, usedforsecurity=False).digest()))


def _parts(fields: dict[str, Any]) -> Iterator[bytes]:
    yield fields["schema"].encode()
    for reference in fields.get("references") or ():
        yield reference["name"].encode()
        yield reference["subject"].encode()
        yield reference["version"].to_bytes(4, signed=True)
    metadata = fields.get("metadata")
    if metadata is not None:
        yield b"\1"
        for tag, values in sorted((metadata.get("tags") or {}).items()):
            yield from _texts([tag, *sorted(values)])
        for name_and_value in sorted((metadata.get("properties") or {}).items()):
            yield from _texts(name_and_value)
        yield from _texts(sorted(metadata.get("sensitive") or ()))
    rules = fields.get("ruleSet")
    if rules is not None:
        yield b"\1"
        for kind in ("migrationRules", "domainRules", "encodingRules"):
            for rule in rules.get(kind) or ():
                yield from _rule(rule)


def _rule(rule: dict[str, Any]) -> Iterator[bytes]:
    yield from _texts(rule.get(name) for name in _RULE_TEXTS)
    yield from _texts(sorted(rule.get("tags") or ()))
    for name_and_value in sorted((rule.get("params") or {}).items()):
        yield from _texts(name_and_value)
    yield from _texts(rule.get(name) for name in _RULE_ENDS)
    if rule.get("disabled"):
        yield b"\1"


def _texts(texts: Any) -> Iterator[bytes]:
    return (text.encode() for text in texts if text is not None)
