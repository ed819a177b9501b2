"""The columns of what `bucket` finds: a row a finding about remote storage."""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import Column, not_null, nullable

BUCKET_FINDINGS: tuple[Column, ...] = (
    not_null("id", pa.string(), "what was found; see the table of findings"),
    not_null("severity", pa.string(), "error, warning or info"),
    not_null("topic", pa.string(), "topic, as the cluster or else the storage has it"),
    nullable("partition", pa.int32(), "partition number"),
    nullable("topicId", pa.string(), "topic id"),
    nullable("segmentId", pa.string(), "segment id, null for a finding about several"),
    nullable("offset", pa.int64(), "first offset it is about"),
    not_null("segmentsCount", pa.int64(), "segments it is about"),
    not_null("sizeInBytes", pa.int64(), "bytes of their objects, or of their segments"),
    not_null("path", pa.string(), "object, or what all objects it is about lie below"),
    nullable("position", pa.int64(), "byte position in the object"),
    not_null("text", pa.string(), "what exactly"),
    not_null("more", pa.int64(), "how many like it in the same object are not listed"),
)
