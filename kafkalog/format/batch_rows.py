"""Arrays of BATCH_ROW copied, joined and compared as bytes.

numpy does each of these field by field and row by row: a copy of 200,000 rows took 145 ms where
their bytes take 1.2, one of 16 rows 30 µs where it takes 5. Rows that are chosen are best taken
(`rows.take`, `rows.compress`), an eighth of the time of `rows[…]`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kafkalog.format.record_batch import BATCH_ROW

Rows = NDArray[np.void]

_AS_BYTES = np.dtype((np.void, BATCH_ROW.itemsize))
# Behind the last field is room that nobody writes to, so that each row begins at a word.
_USED_BYTES = sum(BATCH_ROW[name].itemsize for name in BATCH_ROW.names or ())


def copy_rows(rows: Rows) -> Rows:
    """A copy."""
    return rows.view(_AS_BYTES).copy().view(BATCH_ROW)


def put_rows(target: Rows, rows: Rows) -> None:
    """Write as many rows into `target` as it has."""
    target.view(_AS_BYTES)[:] = rows.view(_AS_BYTES)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """One array of all; empty without any."""
    if not parts:
        return np.empty(0, BATCH_ROW)
    return np.concatenate([part.view(_AS_BYTES) for part in parts]).view(BATCH_ROW)


def are_equal_rows(rows: Rows, others: Rows) -> bool:
    """Whether both have the same rows in the same order."""
    return np.array_equal(_fields(rows), _fields(others))


def _fields(rows: Rows) -> NDArray[np.uint8]:
    return (
        np.ascontiguousarray(rows).view(np.uint8).reshape(-1, BATCH_ROW.itemsize)[:, :_USED_BYTES]
    )
