"""THE table of limits: what a file may make us hold in memory, and why no more.

No number that is read from a file is allocated before it was held against one of these. The format
has hardly any limit of its own, so most are chosen here; docs/explanation/limits.md has this table.
A file that asks for more ends in RecordTooLargeError, a number that cannot be in
CorruptRecordError.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES, MAX_INT32, MIN_RECORD_SIZE

# What the option for it takes at most: lengths within a batch are 32 bits.
MOST_MAX_BATCH_BYTES = MAX_INT32


def check_max_batch_bytes(max_batch_bytes: int) -> int:
    """The limit itself; InvalidConfigError for one that cannot be."""
    if not 1 <= max_batch_bytes <= MOST_MAX_BATCH_BYTES:
        raise InvalidConfigError(
            f"a batch limit of {max_batch_bytes} bytes; it is from 1 to {MOST_MAX_BATCH_BYTES}"
        )
    return max_batch_bytes


# As many records as the largest batch can hold, each with nothing in it.
MAX_BATCH_RECORDS = MAX_BATCH_BYTES // MIN_RECORD_SIZE
# A header is two lengths at least.
MIN_HEADER_SIZE = 2
MAX_RECORD_HEADERS = MAX_BATCH_BYTES // MIN_HEADER_SIZE
# A checkpoint line is about 40 bytes, a producer 46, an index entry 8 or 12: a million and more.
MAX_SMALL_FILE_BYTES = 64 * 1024 * 1024
# Kafka writes 40 to 200 bytes, and some 20 more a voter.
MAX_JSON_BYTES = 1024 * 1024
# Of a segment in remote storage. A chunk is decoded as a whole; 4 MiB is what Aiven recommends.
MAX_CHUNK_BYTES = 64 * 1024 * 1024
# As Aiven's own reader has it (TransformedChunksDeserializer).
MAX_CHUNK_LIST_BYTES = 10 * 1024 * 1024
# A server holds all of it in memory; what Kafka keeps there is some MiB.
MAX_ZOOKEEPER_SNAPSHOT_BYTES = 512 * 1024 * 1024
# A server reads 2 MiB unless jute.maxbuffer says otherwise.
MAX_ZOOKEEPER_TXN_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: of what, how much, how it is held, and why it is not less or more."""

    of: str
    most: int
    held_by: str
    reason: str


LIMITS = (
    Limit(
        "stored bytes of a batch",
        MAX_BATCH_BYTES,
        "a longer one is not read (`--max-batch-bytes`, `maxBatchBytes`, `max_batch_bytes`)",
        "brokers take 1 MiB unless told otherwise; the largest in use are tens of MiB",
    ),
    Limit(
        "decompressed bytes of a batch",
        MAX_BATCH_BYTES,
        "the same option; each codec stops there, a length that a stream claims allocates nothing",
        "the format has no bound, and a KiB of zstd can grow to GiB",
    ),
    Limit(
        "records of a batch",
        MAX_BATCH_RECORDS,
        "a count needs 7 bytes of records each, which must be there",
        "the smallest record is 7 bytes, so the bytes in hand bound the count",
    ),
    Limit(
        "headers of a record",
        MAX_RECORD_HEADERS,
        "a count above the bytes left in its record is corrupt",
        "Kafka's own rule; a header takes at least 2 bytes",
    ),
    Limit(
        "bytes of a key, a value, a header",
        MAX_BATCH_BYTES,
        "a length must lie within its record, the record within its batch",
        "they are spans of the batch's bytes and never allocated by their length",
    ),
    Limit(
        "bytes of a checkpoint, an index, a producer snapshot",
        MAX_SMALL_FILE_BYTES,
        "read up to the limit and one byte, so a size that lies does not matter",
        "six times the default index, a checkpoint of a million partitions",
    ),
    Limit(
        "bytes of a JSON file",
        MAX_JSON_BYTES,
        "refused before it is parsed",
        "a quorum-state of ten thousand voters",
    ),
    Limit(
        "bytes of a chunk of a segment in remote storage",
        MAX_CHUNK_BYTES,
        "a manifest that says more is refused; decompression stops at what it says",
        "Aiven recommends chunks of 4 MiB; 64 MiB of them are kept in memory",
    ),
    Limit(
        "bytes of a manifest's list of chunk sizes",
        MAX_CHUNK_LIST_BYTES,
        "decompression stops there",
        "Aiven's own limit; a segment of a GiB in chunks of 4 MiB needs 1 KiB",
    ),
    Limit(
        "bytes of a ZooKeeper snapshot, stored and decompressed",
        MAX_ZOOKEEPER_SNAPSHOT_BYTES,
        "read up to the limit and one byte; decompression stops there",
        "a server holds the tree in memory; a large Kafka cluster's is some MiB",
    ),
    Limit(
        "bytes of a ZooKeeper transaction",
        MAX_ZOOKEEPER_TXN_BYTES,
        "a longer one is corrupt and not read",
        "a server reads 2 MiB unless it is told otherwise",
    ),
)
