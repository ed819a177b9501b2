"""What a kernel answers: the status numbers and their texts.

OK, NEED_MORE, ZERO_TAIL and OUTPUT_FULL are outcomes; everything from CORRUPT_LENGTH on means that
the bytes break the format. A kernel never raises: the caller turns status and position into an
error that names file and offset.
"""

from __future__ import annotations

OK = 0
NEED_MORE = 1
ZERO_TAIL = 2
OUTPUT_FULL = 3

CORRUPT_LENGTH = 10
UNSUPPORTED_MAGIC = 11
NEGATIVE_COUNT = 12
VARINT_TOO_LONG = 13
RECORD_TRUNCATED = 14
NEGATIVE_LENGTH = 15
LENGTH_MISMATCH = 16
TRAILING_BYTES = 17
HEADER_COUNT = 18
SPAN_OUT_OF_RANGE = 19
OFFSET_ORDER = 20
EMPTY_WRAPPER = 21
NESTED_COMPRESSION = 22
WRAPPER_OFFSET = 23

STATUS_TEXT: dict[int, str] = {
    OK: "ok",
    NEED_MORE: "the bytes end inside a batch",
    ZERO_TAIL: "only zero bytes follow",
    OUTPUT_FULL: "the output arrays are full",
    CORRUPT_LENGTH: "batch length smaller than its header",
    UNSUPPORTED_MAGIC: "magic other than 0, 1 and 2",
    NEGATIVE_COUNT: "negative records count",
    VARINT_TOO_LONG: "variable-length integer longer than 5 (32 bit) or 10 (64 bit) bytes",
    RECORD_TRUNCATED: "record runs past the end of the batch's records",
    NEGATIVE_LENGTH: "negative record or header key length",
    LENGTH_MISMATCH: "record length differs from the bytes its fields use",
    TRAILING_BYTES: "bytes remain after the last record",
    HEADER_COUNT: "header count negative or larger than the record",
    SPAN_OUT_OF_RANGE: "span outside its buffer",
    OFFSET_ORDER: "offset not above the one before it, or outside its batch",
    EMPTY_WRAPPER: "compressed message without a message inside",
    NESTED_COMPRESSION: "compressed message inside a compressed message",
    WRAPPER_OFFSET: "offset of a compressed message below its last relative one",
}


def is_corrupt(status: int) -> bool:
    """Whether a status means that the bytes break the format."""
    return status >= CORRUPT_LENGTH
