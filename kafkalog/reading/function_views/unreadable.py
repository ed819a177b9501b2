"""What of an internal topic cannot be read, in a table that is made of its rows: in mode PERMISSIVE
a row that has nothing but `error`.

Such a record may be the latest of its key, so what it would have changed is not in the table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from kafkalog.columns.schemas import ERROR

_logger = logging.getLogger(__name__)

ERRORS = pa.schema([(ERROR.name, pa.string())])
# The column of a view that says where its row lies in the partition.
_OFFSETS = {"offset_commits": "recordOffset", "batches": "baseOffset"}


def columns_with_errors(view: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The same, and those that say where an error lies; `error` itself comes with the mode."""
    return tuple(dict.fromkeys([*columns, "path", _OFFSETS.get(view, "offset")]))


def sound_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Of rows with a column `error`, those without one."""
    return batch.filter(batch[ERROR.name].is_null())


def errors_of(view: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """ERRORS of rows of `columns_with_errors`: file, offset and what is wrong."""
    for batch in batches:
        its = batch.filter(batch[ERROR.name].is_valid())
        offsets = its[_OFFSETS.get(view, "offset")]
        texts = [
            f"{path}: {error}" if offset is None else f"{path}, offset {offset}: {error}"
            for path, offset, error in zip(
                its["path"].to_pylist(),
                offsets.to_pylist(),
                its[ERROR.name].to_pylist(),
                strict=True,
            )
        ]
        yield pa.record_batch([pa.array(texts, pa.string())], schema=ERRORS)


def with_errors(table: pa.Table, errors: Sequence[str]) -> pa.Table:
    """The table with a column `error`, and a row for each of these; says once how many."""
    if errors:
        _logger.warning(
            "%d records or batches cannot be read, and what they say is not shown; the first: %s",
            len(errors), errors[0],
        )  # fmt: skip
    sound = table.append_column(ERROR.name, pa.nulls(len(table), pa.string()))
    bad = pa.table([pa.array(errors, pa.string())], schema=ERRORS)
    return pa.concat_tables([sound, bad], promote_options="default").select(sound.column_names)
