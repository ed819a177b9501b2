"""Numbers of the on-disk format, spelt as Kafka spells them.

Source: Kafka Records, RecordBatch, DefaultRecordBatch, LegacyRecord, CompressionType,
TimestampType.
"""

from __future__ import annotations

from enum import IntEnum

MAGIC_VALUE_V0 = 0
MAGIC_VALUE_V1 = 1
MAGIC_VALUE_V2 = 2

# offset i64 + length i32, in front of every entry of every magic; `length` counts what follows it.
LOG_OVERHEAD = 12
# enough bytes to know the magic: LOG_OVERHEAD + leader epoch or CRC i32 + magic i8
HEADER_SIZE_UP_TO_MAGIC = 17
# the whole magic 2 header, hence the size of an empty batch
RECORD_BATCH_OVERHEAD = 61
# the smallest legal `length`: a magic 0 message with null key and value, and a magic 2 batch
# without records
LEGACY_RECORD_OVERHEAD_V0 = 14
LEGACY_RECORD_OVERHEAD_V1 = 22
# where the bytes begin that a legacy entry's CRC-32 covers: its magic
LEGACY_CRC_START = 16
# length, attributes, timestamp delta, offset delta, key length, value length, header count: one
# byte each
MIN_RECORD_SIZE = 7

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

COMPRESSION_CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_FLAG_MASK = 0x10
CONTROL_FLAG_MASK = 0x20
DELETE_HORIZON_FLAG_MASK = 0x40

MAX_INT16 = 32_767
MAX_INT32 = 2_147_483_647
MAX_INT64 = 9_223_372_036_854_775_807

# Ours, not Kafka's: the largest batch, stored or decompressed, that is taken into memory. The
# format has no bound, and a length read from a file must not decide how much we allocate.
MAX_BATCH_BYTES = 64 * 1024 * 1024


class CompressionType(IntEnum):
    """Codec ids of attribute bits 0-2; 5 to 7 are not assigned."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """What a batch's timestamps mean; NO_TIMESTAMP_TYPE only for magic 0."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
