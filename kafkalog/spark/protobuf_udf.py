"""Protobuf payloads to structs in Spark's Python workers.

Spark's own from_protobuf is in no release of pyspark and answers a bad payload like an empty one.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import Column

from kafkalog.payloads.protobuf_payloads import decode_message, message_type
from kafkalog.spark.releases import HAS_ARROW_UDF, needs, spark_from_arrow


def protobuf_decoder(descriptors: bytes, message: str, *, is_framed: bool) -> Callable[..., Column]:
    """A function of a binary column → struct<payload, error>; with `is_framed` message indexes are
    in front. InvalidConfigError for a descriptor set that is none, and a message that is not in it
    or holds itself.
    """
    needs(HAS_ARROW_UDF, "decoding Protobuf", "4.1")
    from pyspark.sql.pandas.functions import arrow_udf

    fields = pa.schema([("payload", message_type(descriptors, message))])
    returns = pa.struct([*fields, pa.field("error", pa.string())])
    spark_type = spark_from_arrow(pa.schema([("both", returns)])).fields[0].dataType

    def decode(bodies: pa.Array) -> pa.Array:
        rows = [
            decode_message(descriptors, message, body, is_framed=is_framed)
            for body in bodies.to_pylist()
        ]
        return pa.array(rows, returns)

    # pyspark's overloads ask for a functionType, which it finds out by the annotations
    udf: Callable[..., Column] = arrow_udf(decode, returnType=spark_type)  # type: ignore[call-overload]
    return udf
