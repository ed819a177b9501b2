"""A view of a log as rows of a table: the readers of `reading`, asked for the columns and pruned by
the comparisons of one query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from kafkalog.columns.column import arrow_schema
from kafkalog.duckdb.decoding import decode_in_order

if TYPE_CHECKING:
    from kafkalog.reading.view_reader import ScanTask
from kafkalog.reading.conditions import RowFilter
from kafkalog.reading.pushing import Comparison, push_comparison
from kafkalog.reading.source_options import SourceOptions, parse_options
from kafkalog.reading.views import select_columns, view_named

# So small that several threads stay close to one another, within what may lie ready.
_SPLIT_BYTES = 8 * 1024 * 1024


class Progress(Protocol):
    """Who shows how far a query is."""

    def begin(self, total_bytes: int) -> None:
        """A scan of so many bytes of log begins."""

    def advance(self, done_bytes: int) -> None:
        """So many of them are read."""


class _NoProgress:
    def begin(self, total_bytes: int) -> None:
        pass

    def advance(self, done_bytes: int) -> None:
        pass


@dataclass(frozen=True)
class LogRows:
    """One view below some paths with its options; decoded by some threads at once, in the order of
    topic, partition and offset."""

    options: SourceOptions
    schema: pa.Schema
    threads: int
    progress: Progress | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        view: str,
        paths: Sequence[str],
        options: Mapping[str, str],
        threads: int,
        progress: Progress | None = None,
    ) -> LogRows:
        """InvalidConfigError for options that are unknown or malformed."""
        import json

        parsed = parse_options({**options, "view": view, "paths": json.dumps(list(paths))})
        return cls(parsed, _schema(parsed, parsed.column_names), threads, progress)

    def with_columns(self, names: Iterable[str]) -> LogRows:
        """With these columns of the view too."""
        wanted = tuple(dict.fromkeys([*self.schema.names, *names]))
        return replace(self, schema=_schema(self.options, wanted))

    def read(
        self, columns: Sequence[str], comparisons: Sequence[Comparison]
    ) -> Iterator[pa.RecordBatch]:
        """See `dataset.RowSource`."""
        # The readers need kernels, for which nobody waits before there is something to read.
        from kafkalog.reading.scan import open_paths, plan_scan, read_task
        from kafkalog.reading.view_reader import ScanNeeds

        view = self.options.view
        # Comparisons only leave out what cannot match. One that the view cannot use changes
        # nothing, for the filter itself is applied to all rows that come.
        row_filter = _pruned(view, self.options.row_filter, comparisons)
        if row_filter.is_impossible:
            return
        chosen = select_columns(view, columns, with_error=self.options.is_permissive)
        schema = _schema(self.options, columns)
        request = replace(self.options, row_filter=row_filter).request(chosen, schema)
        inventory, named = open_paths(self.options.paths, self.options.selection)
        sizes = (
            view_named(view)
            .reader()
            .sizes_of(
                request,
                split_bytes=self.options.max_bytes_per_partition or _SPLIT_BYTES,
                min_splits=self.options.min_partitions,
            )
        )
        tasks = plan_scan(
            view, inventory, self.options.selection.naming(named), ScanNeeds.of(request, sizes)
        )
        progress = self.progress or _NoProgress()
        progress.begin(sum(map(_log_bytes, tasks)))
        yield from decode_in_order(
            tasks,
            partial(read_task, request=request),
            self.threads,
            done=lambda task: progress.advance(_log_bytes(task)),
        )


def _log_bytes(task: ScanTask[Any]) -> int:
    """Those of records and batches; of the views of small files nobody waits for progress."""
    return sum(getattr(piece, "log_bytes", 0) for piece in task.pieces)


def _pruned(view: str, row_filter: RowFilter, comparisons: Sequence[Comparison]) -> RowFilter:
    for one in comparisons:
        row_filter = push_comparison(view, row_filter, one) or row_filter
    return row_filter


def _schema(options: SourceOptions, names: Sequence[str]) -> pa.Schema:
    columns = select_columns(options.view, names, with_error=options.is_permissive)
    return arrow_schema(columns, all_nullable=options.is_permissive)
