"""Our Arrow schemas as Spark's, and a schema the caller asks for as ours.

Spark takes a batch only if its schema equals Spark's own translation of the asked one, nullability
included. So the table's nullability goes into the Spark schema, and the asked nullability back into
the batches.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkalog.columns.column import Column, arrow_schema
from kafkalog.errors import InvalidConfigError
from kafkalog.spark.releases import arrow_from_spark, spark_from_arrow


def spark_schema(columns: tuple[Column, ...], *, all_nullable: bool = False) -> StructType:
    """The Spark schema of columns of a view."""
    return spark_from_arrow(arrow_schema(columns, all_nullable=all_nullable))


def asked_schema(columns: tuple[Column, ...], schema: StructType) -> pa.Schema:
    """The Arrow schema that batches of the columns which a Spark schema names must have.

    InvalidConfigError for a type that is not the column's; nothing is cast silently.
    """
    asked = arrow_from_spark(schema)
    for column, field, struct_field in zip(columns, asked, schema.fields, strict=True):
        # A container's own nullability flags do not change what is in it.
        if str(field.type).replace(" not null", "") != str(column.type):
            has = spark_from_arrow(arrow_schema([column])).fields[0].dataType.simpleString()
            raise InvalidConfigError(
                f"column '{column.name}' is {has}, not {struct_field.dataType.simpleString()}"
            )
        if column.nullable and not field.nullable:
            raise InvalidConfigError(f"column '{column.name}' can be null")
    return asked
