"""Payloads: keys and values that are JSON, Avro or Protobuf as columns of their own.

A schema registry's clients write a frame before each payload (Confluent's wire format):

    0                     magic byte
    schema id             4 bytes, big endian
    message indexes       Protobuf only: which message of the file, see payloads.protobuf_payloads
    payload               JSON, Avro binary or Protobuf

What cannot be decoded never ends a query: it is null, and the error column says why. JSON and Avro
are read by Spark's own functions; Avro's jar comes with spark_conf/packages.conf. Those functions
answer a bad payload with nulls, which a good one may have too. So JSON is asked for Spark's corrupt
record column, and Avro for a record around the payload whose last field is a mark put behind it: it
is found there only if the payload was whole, and no byte was left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from kafkalog.errors import InvalidConfigError
from kafkalog.spark.loading import Paths
from kafkalog.spark.releases import is_utf8

FORMATS = ("json", "avro", "protobuf")
_FRAME_BYTES = 5
_CORRUPT = "kafkalog_corrupt"
_MARK = b"kafkalog"


def decode(
    df: DataFrame,
    payload: str | None = None,
    schema: str | bytes | Path | StructType | None = None,
    *,
    column: str = "value",
    into: str = "decoded",
    message: str | None = None,
    schema_registry: bool = False,
    writer_schemas: Mapping[int, str] | None = None,
    schemas: str | None = None,
    path: Paths | None = None,
    subject: str | None = None,
) -> DataFrame:
    """`df` with the binary `column` decoded: columns `into` (a struct), `<into>Error` (why it is
    null though `column` is not) and, with `schema_registry`, `<into>SchemaId`.

    `payload` and `schema`: "json" and a DDL string or StructType; "avro" and the schema's JSON;
    "protobuf" and a descriptor set (bytes, or the path of a file, made by `protoc
    --include_imports --descriptor_set_out`), with the full name of the `message` in it.

    With `schema_registry` every payload must have a registry's frame. Avro with `writer_schemas`,
    schema id → schema: each payload is read by the schema it was written with, resolved into
    `schema`, and an id that is not there is an error of its row.

    With `schemas="disk"` everything comes from the topic `_schemas` of the log dirs at `path`, as
    Schema Registry keeps it, without a registry: every payload has a frame and is read by the
    schema that it was written with, into the columns of the latest version of `subject`
    (`orders-value`) or, of Avro, of `schema`. `payload` need not be said then.

    Raises InvalidConfigError for a schema that is none.
    """
    if schemas is not None:
        _refuse_beside_disk(schemas, schema_registry or writer_schemas is not None)
        return _from_disk(df, payload, schema, column, into, message, path, subject)
    if path is not None or subject is not None:
        raise InvalidConfigError('path and subject are for schemas="disk"')
    if payload not in FORMATS:
        raise InvalidConfigError(f"payloads are {', '.join(FORMATS)}, not '{payload}'")
    if (message is None) == (payload == "protobuf"):
        raise InvalidConfigError("a message is named for protobuf, and for nothing else")
    if writer_schemas is not None and not (payload == "avro" and schema_registry):
        raise InvalidConfigError("writer_schemas are for avro with schema_registry")
    given = F.col(column)
    body, schema_id = (_body(given), _schema_id(given)) if schema_registry else (given, None)
    if payload == "json":
        decoded, why = _from_json(body, schema)
    elif payload == "avro":
        decoded, why = _from_avro(body, schema, schema_id, writer_schemas)
    else:
        decoded, why = _from_protobuf(body, schema, str(message), is_framed=schema_registry)
    framed = F.lit(None).cast("string")
    if schema_registry:
        # a value of null bytes is no error, one without its frame is
        framed = F.when(given.isNotNull() & body.isNull(), "no frame of a schema registry")
    result = df.withColumns({into: decoded, f"{into}Error": F.coalesce(framed, why)})
    return result if schema_id is None else result.withColumn(f"{into}SchemaId", schema_id)


def _refuse_beside_disk(schemas: str, has_others: bool) -> None:
    if schemas != "disk":
        raise InvalidConfigError(f"schemas are taken from 'disk', not from '{schemas}'")
    if has_others:
        raise InvalidConfigError(
            'with schemas="disk" neither schema_registry nor writer_schemas are given'
        )


def _from_disk(
    df: DataFrame,
    payload: str | None,
    schema: object,
    column: str,
    into: str,
    message: str | None,
    path: Paths | None,
    subject: str | None,
) -> DataFrame:
    # Needs kernels; nobody else in this module does.
    from kafkalog.payloads.registered import subject_payloads
    from kafkalog.reading.registered_schemas import registered_schemas
    from kafkalog.spark.registered_payloads import decode_registered

    if path is None or subject is None:
        raise InvalidConfigError('schemas="disk" needs path, with the topic _schemas, and subject')
    found = subject_payloads(registered_schemas(path), subject, message=message)
    if payload is not None and payload.upper() != found.kind:
        raise InvalidConfigError(f"subject '{subject}' is {found.kind}, not {payload}")
    if schema is not None:
        if found.kind != "AVRO":
            raise InvalidConfigError(f"subject '{subject}' is {found.kind}: schema is for Avro")
        found = replace(found, reader=_avro_schema(schema))
    return decode_registered(df, found, column=column, into=into)


def _body(given: Column) -> Column:
    """What is behind the frame; null without one."""
    is_framed = (F.octet_length(given) >= _FRAME_BYTES) & given.startswith(F.lit(b"\0"))
    return F.when(is_framed, F.substring(given, _FRAME_BYTES + 1, 0x7FFFFFFF))


def _schema_id(given: Column) -> Column:
    number = F.conv(F.hex(F.substring(given, 2, _FRAME_BYTES - 1)), 16, 10).cast("bigint")
    return F.when(_body(given).isNotNull(), number)


def _from_json(body: Column, schema: object) -> tuple[Column, Column]:
    if isinstance(schema, StructType):
        asked: str | StructType = StructType([*schema.fields]).add(_CORRUPT, StringType())
    elif isinstance(schema, str):
        asked = f"{schema}, {_CORRUPT} STRING"
    else:
        raise InvalidConfigError("the schema of JSON is a DDL string or a StructType")
    text = body.cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(F.when(is_utf8(body), text), asked, options)
    is_good = parsed.isNotNull() & parsed[_CORRUPT].isNull()
    why = F.when(body.isNotNull() & ~is_good, "not JSON of the schema")
    return F.when(is_good, parsed.dropFields(_CORRUPT)), why


def _from_avro(
    body: Column,
    schema: object,
    schema_id: Column | None,
    writer_schemas: Mapping[int, str] | None,
) -> tuple[Column, Column]:
    # needs Spark's module for Avro, which is there without its jar, too
    from pyspark.sql.avro.functions import from_avro

    reader = _marked(schema)
    marked = F.concat(body, F.lit(_MARK))
    if writer_schemas is None or schema_id is None:
        parsed = from_avro(marked, reader, {"mode": "PERMISSIVE"})
        unknown = F.lit(None).cast("string")
    else:
        resolved = {"mode": "PERMISSIVE", "avroSchema": reader}
        parsed = F.coalesce(
            *(
                F.when(schema_id == number, from_avro(marked, _marked(writer), resolved))
                for number, writer in writer_schemas.items()
            )
        )
        text = F.concat(F.lit("no schema is given for id "), schema_id.cast("string"))
        unknown = F.when(~schema_id.isin(list(writer_schemas)), text)
    is_good = F.coalesce(parsed["mark"] == F.lit(_MARK), F.lit(False))
    why = F.when(body.isNotNull() & ~is_good, F.coalesce(unknown, F.lit("not Avro of the schema")))
    return F.when(is_good, parsed["payload"]), why


def _marked(schema: object) -> str:
    """The schema of a record around the payload, with the mark behind it."""
    wanted = _avro_schema(schema)
    mark = {"type": "fixed", "name": "kafkalog.Mark", "size": len(_MARK)}
    fields = [{"name": "payload", "type": wanted}, {"name": "mark", "type": mark}]
    return json.dumps({"type": "record", "name": "kafkalog.Marked", "fields": fields})


def _avro_schema(schema: object) -> dict[str, Any]:
    try:
        wanted: Any = json.loads(schema) if isinstance(schema, str) else None
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict):
        raise InvalidConfigError("the schema of Avro is its JSON, an object")
    return wanted


def _from_protobuf(
    body: Column, schema: object, message: str, *, is_framed: bool
) -> tuple[Column, Column]:
    # Google's library, an extra of the package, is needed for Protobuf alone
    from kafkalog.spark.protobuf_udf import protobuf_decoder

    if isinstance(schema, str | Path):
        schema = Path(schema).read_bytes()
    if not isinstance(schema, bytes):
        raise InvalidConfigError("the schema of Protobuf is a descriptor set: bytes, or a file")
    parsed = protobuf_decoder(schema, message, is_framed=is_framed)(body)
    return parsed["payload"], parsed["error"]
