"""Entries of small files → Arrow: parallel columns of numbers, and the place they all share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from kafkalog.columns.arrow_arrays import constant_array

Numbers = npt.NDArray[Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """`count` entries: `columns` have one value each, `place` is the same for all. Both by column
    name.
    """

    count: int
    columns: Mapping[str, Numbers]
    place: Mapping[str, object]


def build_entries(entries: Entries, schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    """One Arrow batch with the columns `names` under the names and nullability of `schema`; a
    column that entries do not have is null.
    """
    columns = []
    for name, field in zip(names, schema, strict=True):
        values = entries.columns.get(name)
        if values is None:
            array = constant_array(entries.place.get(name), field.type, entries.count)
        else:
            array = pa.array(values, field.type)
        columns.append(array)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
