"""The schemas in the topic `_schemas` of the logs on a disk, for payloads without a registry."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.log.log_dir import open_log_dir
from kafkalog.log.names import paths_in
from kafkalog.log.topic_partition import PartitionKind
from kafkalog.payloads.registered import (
    Reference,
    RegisteredSchema,
    RegisteredSchemas,
    SubjectPayloads,
    subject_payloads,
)
from kafkalog.payloads.topic_table import TopicTable
from kafkalog.reading.request import ReadMode
from kafkalog.reading.selection import furthest_replicas
from kafkalog.reading.tables import read_view

_logger = logging.getLogger(__name__)

TOPIC = "_schemas"
# In front of the names of topics' tables.
PREFIX = "topic_"
_COLUMNS = (
    *("keyType", "subject", "version", "schemaId", "schemaGuid", "schemaType", "schema"),
    *("schemaReferences", "isDeleted", "isLatest", "isTombstone"),
)

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


def registered_schemas(path: Paths, *, mode: ReadMode = ReadMode.FAILFAST) -> RegisteredSchemas:
    """What the topic says below `path`. A version that was deleted for good and is still in the log
    counts as a deleted one: records may have its id. mode: of what cannot be read of the topic; see
    `read_view`, which raises. InvalidConfigError where the topic is not there."""
    there = [
        p
        for p in open_log_dir(*paths_in(path)).partitions
        if p.topic_partition.topic == TOPIC and p.kind == PartitionKind.LIVE
    ]
    if not there:
        raise InvalidConfigError(f"no topic {TOPIC} is there: a registry keeps its schemas in it")
    # Rows with an error are of no use here.
    lenient = ReadMode.FAILFAST if mode == ReadMode.FAILFAST else ReadMode.DROPMALFORMED
    paths = [partition.path for partition in furthest_replicas(there)]
    rows = read_view("schema_registry", paths, columns=_COLUMNS, mode=lenient).to_pylist()
    found: dict[tuple[Any, ...], RegisteredSchema] = {}
    for row in rows:
        if row["keyType"] == "SCHEMA" and not row["isTombstone"] and row["schemaId"] is not None:
            found[row["subject"], row["version"], row["schemaId"]] = RegisteredSchema(
                row["subject"],
                row["version"],
                row["schemaId"],
                row["schemaType"],
                row["schema"],
                _references(row["schemaReferences"]),
                row["isDeleted"] or not row["isLatest"],
                row["schemaGuid"],
            )
    return RegisteredSchemas(tuple(found.values()))


def topic_tables(path: Paths, *, mode: ReadMode = ReadMode.FAILFAST) -> dict[str, TopicTable]:
    """The topics below `path` whose keys or values have a schema, under the subjects TOPIC-key and
    TOPIC-value; by the names of their tables: `topic_` and the topic's name, with `_` for what is
    no letter, digit or `_`. What cannot be columns stays binary, and that is said. Values of
    Protobuf have a table for each further message of the file too, with its name behind. Raises as
    `registered_schemas`, and InvalidConfigError for two topics of one name."""
    schemas = registered_schemas(path, mode=mode)
    subjects = set(schemas.subjects())
    live = {
        p.topic_partition.topic
        for p in open_log_dir(*paths_in(path)).partitions
        if p.kind == PartitionKind.LIVE
    }
    found: dict[str, TopicTable] = {}
    for topic in sorted(live - {TOPIC}):
        sides = {
            side: _payloads(schemas, f"{topic}-{side}")
            for side in ("key", "value")
            if f"{topic}-{side}" in subjects
        }
        if sides:
            name = _table_name(topic)
            if name in found:
                raise InvalidConfigError(
                    f"topics {found[name].topic} and {topic} would both be table {name}"
                )
            found[name] = TopicTable(topic, sides.get("key"), sides.get("value"))
    return found | _of_other_messages(found)


def _of_other_messages(tables: Mapping[str, TopicTable]) -> dict[str, TopicTable]:
    found: dict[str, TopicTable] = {}
    for table in tables.values():
        for value in table.value.others() if table.value is not None else ():
            name = _table_name(f"{table.topic}_{value.message}")
            try:
                if name in tables or name in found:
                    raise InvalidConfigError("there is a table of this name")
                value.decoder()
            except InvalidConfigError as error:
                _logger.warning("no table %s: %s", name, error)
            else:
                found[name] = replace(table, value=value)
    return found


def _table_name(topic: str) -> str:
    return PREFIX + re.sub(r"\W", "_", topic)


def _payloads(schemas: RegisteredSchemas, subject: str) -> SubjectPayloads | None:
    try:
        payloads = subject_payloads(schemas, subject)
        payloads.decoder()
    except InvalidConfigError as error:
        _logger.warning("%s stays binary: %s", subject, error)
        return None
    return payloads


def _references(text: str | None) -> tuple[Reference, ...]:
    """What is no reference is none: a schema that needs it says so."""
    found = []
    given = json.loads(text) if text else ()
    for each in given if isinstance(given, list) else ():
        if isinstance(each, dict) and isinstance(each.get("version"), int):
            name, subject = each.get("name"), each.get("subject")
            if isinstance(name, str) and isinstance(subject, str):
                found.append(Reference(name, subject, each["version"]))
    return tuple(found)
