"""Records of `_schemas`, where Schema Registry keeps its schemas: JSON keys and values.

 key     {"keytype":"SCHEMA","subject":S,"version":V,"magic":1}, likewise CONFIG, MODE,
         DELETE_SUBJECT … with magic 0
 value   of a schema {"subject","version","id","guid","schemaType","references","metadata",
         "ruleSet","schema","deleted"}; without a schemaType it is Avro, and older registries
         write no guid

A version is deleted softly by its record with `deleted`, or with all up to it by DELETE_SUBJECT,
and for good by a tombstone.

Source: Confluent's documentation of Schema Registry (storage in the topic _schemas); its SchemaKey,
SchemaValue, DeleteSubjectValue and KafkaStoreMessageHandler.
"""

from __future__ import annotations

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.json_fields import (
    Fields,
    compact_json,
    flag,
    number,
    parse_object,
    text,
)
from kafkalog.messages.schema_guids import schema_guid

_SCHEMA, _DELETE_SUBJECT = "SCHEMA", "DELETE_SUBJECT"
_AVRO = "AVRO"


def decode_registry_record(key: bytes | None, value: bytes | None) -> Fields:
    """`schema` and its fields of a schema; of other types `value`, as it is. Raises
    CorruptRecordError for what is no such record.
    """
    if key is None:
        raise CorruptRecordError("key is null")
    what = "key of a registry's record"
    names = parse_object(what, key)
    kind = text(what, names, "keytype")
    if kind is None:
        raise CorruptRecordError(f"{what} has no keytype")
    row: Fields = {"keyType": kind, "subject": text(what, names, "subject")}
    row["version"] = number(what, names, "version", bits=32)
    if kind == _SCHEMA and (row["subject"] is None or row["version"] is None):
        raise CorruptRecordError("key of a schema has no subject or no version")
    row["isDeleted"] = value is None
    if value is None:
        return row
    fields = parse_object(f"value of {kind}", value)
    if kind == _SCHEMA:
        return row | _schema(fields)
    if kind == _DELETE_SUBJECT:
        row["version"] = number(kind, fields, "version", bits=32)
    row["value"] = compact_json(fields)
    return row


def _schema(fields: Fields) -> Fields:
    what = "a schema"
    definition = text(what, fields, "schema")
    if definition is None:
        raise CorruptRecordError("value of a schema has no schema")
    references = fields.get("references")
    return {
        "schemaId": number(what, fields, "id", bits=32),
        "schemaGuid": schema_guid(fields),
        "schemaType": text(what, fields, "schemaType") or _AVRO,
        "schema": definition,
        "schemaReferences": compact_json(references) if references else None,
        "isDeleted": flag(what, fields, "deleted") or False,
    }


def mark_deleted(offset: int, row: Fields, deletions: list[tuple[int, Fields]]) -> None:
    """Sets `isDeleted` of a schema of which a later DELETE_SUBJECT names the subject, and this
    version or a higher one. deletions: committed rows of that type, with their offsets.
    """
    if row.get("keyType") != _SCHEMA or row["isDeleted"]:
        return
    row["isDeleted"] = any(
        after > offset
        and deletion["subject"] == row["subject"]
        and (deletion["version"] or 0) >= row["version"]
        for after, deletion in deletions
    )


def is_deletion(row: Fields) -> bool:
    """Whether a decoded record is a DELETE_SUBJECT that names versions."""
    return row.get("keyType") == _DELETE_SUBJECT and row["version"] is not None
