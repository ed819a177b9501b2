"""kafka-python's record classes, a second implementation to compare with.

Its import uses importlib.resources.read_text, which Python 3.11 deprecates; our tests turn warnings
into errors, so that one is silenced here and nowhere else.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec
    from kafka.errors import CorruptRecordError
    from kafka.record._crc32c import crc as crc32c
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords
    from kafka.record.util import decode_varint, encode_varint

__all__ = [
    "CorruptRecordError",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "MemoryRecords",
    "codec",
    "crc32c",
    "decode_varint",
    "encode_varint",
]
