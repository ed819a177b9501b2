"""A digest of the headers of batches, checksums among them, by which a log is known again: the plan
takes it of the source, the pass over the copy takes it of what was written.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.record_batch import BATCH_ROW


def _fields_end() -> int:
    """Bytes of a row behind which there is nothing but what aligns the next one."""
    fields = (BATCH_ROW.fields or {}).values()
    return max(int(offset) + dtype.itemsize for dtype, offset, *_ in fields)


_FIELDS_END = _fields_end()


class HeaderDigest:
    """Of consecutive batches, in as many pieces as they come."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, rows: NDArray[np.void]) -> None:
        """The next batches, BATCH_ROW[b]."""
        if rows.size:
            # What aligns rows is memory that nobody has written to.
            raw = np.ascontiguousarray(rows).view(np.uint8).reshape(rows.size, -1)
            self._hash.update(np.ascontiguousarray(raw[:, :_FIELDS_END]).data)

    def hexdigest(self) -> str:
        """Of all so far."""
        return self._hash.hexdigest()
