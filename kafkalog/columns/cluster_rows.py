"""Rows of the cluster's tables → Arrow. They are few: a row for each thing that happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafkalog.columns.arrow_arrays import timestamp_array
from kafkalog.columns.column import TIMESTAMP, Column, arrow_schema


def build_cluster_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pa.Table:
    """Rows by column name as a table; what a row does not have is null. A timestamp is made of the
    milliseconds in the column named like it with `Ms` behind.
    """
    arrays = [
        _times([row.get(f"{column.name}Ms") for row in rows])
        if column.type == TIMESTAMP
        else pa.array([row.get(column.name) for row in rows], column.type)
        for column in columns
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _times(milliseconds: Sequence[int | None]) -> pa.Array:
    known = np.array([ms is not None for ms in milliseconds], np.bool_)
    return timestamp_array(np.array([ms or 0 for ms in milliseconds], np.int64), known)
