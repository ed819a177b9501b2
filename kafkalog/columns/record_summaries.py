"""THE columns of what is asked about whole logs: the latest record of each key, keys by what they
cost, offsets that are not there.
"""

from __future__ import annotations

import pyarrow as pa

from kafkalog.columns.column import TIMESTAMP, Column, not_null, nullable
from kafkalog.columns.schemas import HEADERS, PARTITION, TOPIC

_HOT_KEYS = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("sizeInBytes", pa.int64()),
                pa.field("key", pa.binary()),
                pa.field("recordsCount", pa.int64()),
            ]
        ),
    )
)

LATEST_BY_KEY: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("key", pa.binary(), "record key"),
    not_null("offset", pa.int64(), "offset of the key's last record"),
    nullable("timestamp", TIMESTAMP, "its timestamp; null for -1 and outside years 0001-9999"),
    not_null("timestampMs", pa.int64(), "the same in milliseconds as stored"),
    nullable("value", pa.binary(), "its value; null is a tombstone, empty is not"),
    nullable("headers", HEADERS, "its headers in order; null when there is none"),
    not_null("isTombstone", pa.bool_(), "its value is null"),
)

_COUNTS = (
    not_null("recordsCount", pa.int64(), "records"),
    not_null("tombstonesCount", pa.int64(), "of them without a value"),
    not_null("keyBytes", pa.int64(), "bytes of their keys"),
    not_null("valueBytes", pa.int64(), "bytes of their values"),
    not_null("headerBytes", pa.int64(), "bytes of their headers' keys and values"),
    not_null("sizeInBytes", pa.int64(), "the three together"),
)

KEY_STATS: tuple[Column, ...] = (
    TOPIC,
    *_COUNTS,
    not_null("distinctKeys", pa.int64(), "different keys, null not counted"),
    not_null("hotKeys", _HOT_KEYS, "the ten keys with the most bytes, the largest first"),
)

HOT_KEYS: tuple[Column, ...] = (
    TOPIC,
    nullable("key", pa.binary(), "record key, null for all records without one"),
    *_COUNTS,
    nullable("share", pa.float64(), "of the topic's bytes, 0 to 1; null where these are 0"),
)

GAPS: tuple[Column, ...] = (
    TOPIC,
    PARTITION,
    not_null("startOffset", pa.int64(), "first offset of the range"),
    not_null("endOffset", pa.int64(), "offset behind its last one"),
    not_null("missingCount", pa.int64(), "offsets of it that no record has"),
    not_null(
        "place",
        pa.string(),
        "start (below the first batch), segments (between two), batches (between two of a "
        "segment), batch (inside one)",
    ),
    not_null("path", pa.string(), "partition directory"),
)
