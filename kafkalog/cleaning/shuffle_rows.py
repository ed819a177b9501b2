"""What travels between the tasks of a partition whose key map is made across tasks, as rows of
`resources.staged_tasks`.

`plan` is the number of the partition in the run. What the others mean depends on the kind:

    kind      number        first            payload
    ENTRIES   -             -                buckets and their entries (`pack_entries`)
    FLAGS     group         first record     one byte a record, zstd
    MARKS     group         first record     one bit a record, zstd
    COUNTS    -             -                JSON: keyless records, distinct keys
    FAILED    -             -                JSON: status, reason, fault
    FINISHED  group         -                JSON: the new segment and its counts

Records are numbered over the partition; of a segment whose count only its content tells (legacy
wrappers) as many numbers are set aside as its offsets and bytes have room for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.kernels.hash_keys import ENTRY_WORDS

ENTRIES, FLAGS, MARKS, COUNTS, FAILED, FINISHED = range(6)


def pack_entries(buckets: Sequence[int], parts: Sequence[bytes]) -> bytes:
    """parts: the entries of each of these buckets, bytes of uint64[3 * n]."""
    # Head and entries are words of eight bytes, so that whoever receives the blob looks at it as
    # one array and copies nothing.
    counts = [len(part) // (8 * ENTRY_WORDS) for part in parts]
    head = np.array([len(parts), *buckets, *counts], "<i8").tobytes()
    return b"".join([head, *parts])


def parse_entries(payload: bytes) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """(bucket, its entries) of a blob."""
    words = np.frombuffer(payload, np.uint64)
    count = int(words[0])
    buckets, counts = words[1 : 1 + count], words[1 + count : 1 + 2 * count]
    at = 1 + 2 * count
    for bucket, entries in zip(buckets.tolist(), counts.tolist(), strict=True):
        yield bucket, words[at : at + entries * ENTRY_WORDS]
        at += entries * ENTRY_WORDS
