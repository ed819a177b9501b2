"""A new segment that is written and verified: what a swap has to know of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafkalog.cleaning.output_segment import OutputFile
from kafkalog.log.json_facts import JsonFacts

_FINGERPRINT_FIELDS = ("position", "base_offset", "last_offset", "size_in_bytes", "crc")


@dataclass(frozen=True, slots=True)
class FinishedGroup(JsonFacts):
    """A verified group, ready to be swapped in. `checksums`: base offset and CRC-32C of each
    source's `.log`; `next_offset`: where the new segment ends.
    """

    base_offset: int
    next_offset: int
    sources: tuple[int, ...]
    fingerprint: str
    outputs: tuple[OutputFile, ...]
    checksums: tuple[tuple[int, int], ...]


def fingerprint(blocks: Iterable[NDArray[np.void]]) -> str:
    """A digest of a segment's batches from their headers, BATCH_ROW[b] in blocks of any size; the
    CRCs stand for the rest.
    """
    digest = hashlib.sha256()
    for rows in blocks:
        # Row by row in one order and width, whatever the blocks are: the digest is of the rows
        # alone.
        fields = np.empty((rows.size, len(_FINGERPRINT_FIELDS)), "<i8")
        for place, name in enumerate(_FINGERPRINT_FIELDS):
            fields[:, place] = rows[name]
        digest.update(fields.tobytes())
    return digest.hexdigest()
