"""The columns of what `compare` finds: a row a difference between copies of a partition."""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.cluster_schemas import TEXTS
from kafkalog.columns.column import Column, not_null, nullable

DIFFERENCES: tuple[Column, ...] = (
    not_null("id", pa.string(), "what differs; see the table of findings"),
    not_null("severity", pa.string(), "error"),
    not_null("topic", pa.string(), "topic"),
    not_null("partition", pa.int32(), "partition number"),
    not_null("offset", pa.int64(), "offset of the record, or the first one of a range"),
    nullable("lastOffset", pa.int64(), "last offset of a range"),
    nullable("recordsCount", pa.int64(), "records in a range, as far as they are known"),
    nullable("sizeInBytes", pa.int64(), "their bytes as magic 2 writes them, uncompressed"),
    nullable("key", pa.string(), "the record's key as UTF-8, with escapes"),
    nullable("keyBytes", pa.binary(), "the record's key"),
    nullable("producerId", pa.int64(), "producer of the transaction"),
    not_null("wrong", TEXTS, "names of the copies that are not right, or of all that may be"),
    not_null("right", TEXTS, "names of those that are, empty where nothing proves it"),
    not_null("isProvable", pa.bool_(), "whether `text` proves who is right"),
    nullable("path", pa.string(), "file of a batch that cannot be read"),
    nullable("position", pa.int64(), "its byte position in the file"),
    not_null("text", pa.string(), "what exactly, and why"),
    not_null("more", pa.int64(), "how many like it in the partition are not listed"),
)
