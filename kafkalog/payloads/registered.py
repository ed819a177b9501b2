"""What a schema registry knows, and the decoder of a subject that comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

from kafkalog.errors import InvalidConfigError
from kafkalog.payloads.payload import Decoder

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"


@dataclass(frozen=True, slots=True)
class Reference:
    """What a schema calls another one: an Avro name, a `.proto` file, a `$ref`."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject; kind: AVRO, PROTOBUF or JSON."""

    subject: str
    version: int
    schema_id: int
    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    is_deleted: bool = False
    guid: str | None = None


@dataclass(frozen=True, slots=True)
class RegisteredSchemas:
    """All versions of all subjects: deleted ones too, since records have their ids."""

    versions: tuple[RegisteredSchema, ...]

    def latest(self, subject: str) -> RegisteredSchema:
        """The highest version that is not deleted; InvalidConfigError without one."""
        found = [v for v in self.versions if v.subject == subject and not v.is_deleted]
        if not found:
            known = ", ".join(self.subjects()) or "none"
            raise InvalidConfigError(f"subject '{subject}' has no schema; there are: {known}")
        return max(found, key=lambda each: each.version)

    def subjects(self) -> list[str]:
        """Those that have a schema, by name."""
        return sorted({v.subject for v in self.versions if not v.is_deleted})

    def referenced(self, schema: RegisteredSchema) -> dict[str, RegisteredSchema]:
        """All that a schema refers to, itself or by others, by the names it has for them; the
        deepest first. InvalidConfigError for one that is not there."""
        found: dict[str, RegisteredSchema] = {}
        for name, other in self._references(schema, frozenset()):
            found.setdefault(name, other)
        return found

    def _references(
        self, schema: RegisteredSchema, within: frozenset[tuple[str, int]]
    ) -> Iterator[tuple[str, RegisteredSchema]]:
        by_version = {(v.subject, v.version): v for v in self.versions}
        for reference in schema.references:
            place = (reference.subject, reference.version)
            if place not in by_version or place in within:
                raise InvalidConfigError(
                    f"schema {schema.schema_id} refers to version {reference.version} of subject "
                    f"'{reference.subject}', which is not there"
                )
            yield from self._references(by_version[place], within | {place})
            yield reference.name, by_version[place]


@dataclass(frozen=True, slots=True)
class SubjectPayloads:
    """How payloads of a subject are read: by the schemas in `writers`, into `reader`'s columns.
    Can be pickled: the decoder is made where it is used.

    kind: of the formats above. writers: schema id → what its decoder takes of it. message: of
    Protobuf, if it is not the first one of its file. guids: of the writers, and their ids.
    """

    kind: str
    reader: Any
    writers: tuple[tuple[int, Any], ...]
    references: tuple[tuple[str, Any], ...] = ()
    message: str | None = None
    guids: tuple[tuple[bytes, int], ...] = ()

    def decoder(self) -> Decoder:
        """InvalidConfigError for a schema that has no columns, and without the format's library."""
        try:
            return replace(self._decoder(dict(self.writers)), guids=dict(self.guids))
        except ModuleNotFoundError as error:
            raise InvalidConfigError(
                f"{self.kind} needs {error.name}: pip install 'kafkalog[registry]'"
            ) from None

    def others(self) -> list[SubjectPayloads]:
        """Of Protobuf the same for each further message of the reader's file."""
        if self.kind != PROTOBUF:
            return []
        from kafkalog.payloads.protobuf_payloads import further_messages

        return [replace(self, message=name) for name in further_messages(self.reader)]

    def _decoder(self, writers: dict[int, Any]) -> Decoder:
        if self.kind == AVRO:
            from kafkalog.payloads.avro_payloads import avro_decoder

            return avro_decoder(writers, self.reader)
        if self.kind == JSON:
            from kafkalog.payloads.json_payloads import json_decoder

            return json_decoder(writers.keys(), self.reader, dict(self.references))
        from kafkalog.payloads.protobuf_payloads import registered_decoder

        return registered_decoder(writers, self.reader, self.message)


def subject_payloads(
    schemas: RegisteredSchemas, subject: str, *, message: str | None = None
) -> SubjectPayloads:
    """Those of a subject, into the columns of its latest version. InvalidConfigError for a subject
    without a schema, one of no known kind, and a message where there is none."""
    payloads = _subject_payloads(schemas, subject, message)
    ids = dict(payloads.writers)
    known = [v for v in schemas.versions if v.guid is not None and v.schema_id in ids]
    # One schema may have several ids; the subject's own counts.
    known.sort(key=lambda version: version.subject == subject)
    guids = {UUID(version.guid).bytes: version.schema_id for version in known}
    return replace(payloads, guids=tuple(guids.items()))


def _subject_payloads(
    schemas: RegisteredSchemas, subject: str, message: str | None
) -> SubjectPayloads:
    reader = schemas.latest(subject)
    if message is not None and reader.kind != PROTOBUF:
        raise InvalidConfigError(f"subject '{subject}' is {reader.kind}, which has no messages")
    same = {v.schema_id: v for v in schemas.versions if v.kind == reader.kind}
    if reader.kind == AVRO:
        readable = {n: whole for n, v in same.items() if (whole := _avro_or_none(schemas, v))}
        return SubjectPayloads(AVRO, _avro(schemas, reader), tuple(readable.items()))
    if reader.kind == JSON:
        references = {n: _json(v) for n, v in schemas.referenced(reader).items()}
        ids = tuple((schema_id, None) for schema_id in same)
        return SubjectPayloads(JSON, _json(reader), ids, tuple(references.items()))
    if reader.kind != PROTOBUF:
        raise InvalidConfigError(f"subject '{subject}' is {reader.kind}, which is not decoded")
    # One run of the compiler each: of the subject's own versions alone.
    own = [v for v in schemas.versions if v.subject == subject and v.kind == PROTOBUF]
    compiled = {v.schema_id: _compiled(schemas, v) for v in own}
    return SubjectPayloads(
        PROTOBUF, compiled[reader.schema_id], tuple(compiled.items()), message=message
    )


def _json(schema: RegisteredSchema) -> Any:
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError):
        raise InvalidConfigError(
            f"schema {schema.schema_id} of subject '{schema.subject}' is not JSON"
        ) from None


def _avro(schemas: RegisteredSchemas, schema: RegisteredSchema) -> Any:
    from kafkalog.payloads.avro_payloads import with_named

    named = {name: _json(other) for name, other in schemas.referenced(schema).items()}
    return with_named(_json(schema), named)


def _avro_or_none(schemas: RegisteredSchemas, schema: RegisteredSchema) -> Any:
    """Without one that some other subject has wrong: its id is unknown then."""
    try:
        return _avro(schemas, schema)
    except InvalidConfigError:
        return None


def _compiled(schemas: RegisteredSchemas, schema: RegisteredSchema) -> bytes:
    imports = schemas.referenced(schema)
    try:
        return _descriptors(schema.text, tuple((n, v.text) for n, v in imports.items()))
    except InvalidConfigError as error:
        where = f"schema {schema.schema_id} of subject '{schema.subject}'"
        raise InvalidConfigError(f"{where}: {error}") from None


@cache
def _descriptors(text: str, imports: Sequence[tuple[str, str]]) -> bytes:
    from kafkalog.payloads.proto_files import descriptor_set

    return descriptor_set(text, dict(imports))
