"""How the tables of the metadata log's records are written down: all versions are flexible."""

from __future__ import annotations

from kafkalog.messages.schema import ALL, Field, Message, Struct, Versions


def metadata_message(
    name: str, api_key: int, versions: str, meaning: str, *fields: Field, source: str = ""
) -> Message:
    """A table of the definition `NAME.json`, or of the one named in `source`."""
    known = Versions.parse(versions)
    return Message(name, api_key, known, ALL, Struct(fields), meaning, source or f"{name}.json")
