"""Statements of SQL, in Spark's dialect, over the tables of a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.duckdb.connection import open_connection
from kafkalog.duckdb.dataset import Failures
from kafkalog.duckdb.tables import LogTables, Reads
from kafkalog.errors import InvalidConfigError, KafkaLogError

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

_OF_VIEWS = re.compile(
    r"\s*(create\s+(or\s+replace\s+)?(temp(orary)?\s+)?view|drop\s+view)\b", re.IGNORECASE
)
_UNKNOWN_TABLE = re.compile(r"Table with name (\S+) does not exist")
# Rows of a batch of a result, at most.
_BATCH_ROWS = 16_384


class SqlSession:
    """A connection for statements one after the other; views that they create stay in it.

    for_text: only tables whose names are somewhere in this text are there; without it all. A
    statement's tables are as of its time.
    """

    def __init__(
        self, log: LogTables, *, for_text: str | None = None, memory_limit: str | None = None
    ) -> None:
        self._failures = Failures()
        self._reads = Reads(log)
        self._names = names = log.names()
        if for_text is not None:
            words = set(re.findall(r"\w+", for_text.lower()))
            names = [name for name in names if name in words]
        tables = log.tables(names, self._reads)
        self.schemas = {table.name: table.schema for table in tables}
        self._connection = open_connection(
            tables, self._failures, memory_limit=memory_limit, threads=log.threads
        )

    def run(self, statement: str) -> pa.RecordBatchReader | None:
        """The rows of a statement as a stream, None of one that has no rows (CREATE VIEW). The next
        statement ends the stream.

        InvalidConfigError for what is no SQL, names nothing that is there, or is not allowed;
        KafkaLogError for a value that is not what an operator takes, or too little memory. While
        the stream is read: what the readers of the log raise, in place of DuckDB's error.
        """
        import duckdb

        self._reads.renew()
        self._failures.take()
        try:
            relation = self._relation(statement)
            if relation is None:
                return None
            reader = relation.to_arrow_reader(_BATCH_ROWS)
        except (duckdb.Error, RuntimeError) as error:
            raise self._own(error) from None
        schema = pa.schema(
            [_spark_type(f, t) for f, t in zip(reader.schema, relation.types, strict=True)]
        )
        return pa.RecordBatchReader.from_batches(schema, self._batches(reader, schema))

    def interrupt(self) -> None:
        """End the statement that runs, from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _relation(self, statement: str) -> DuckDBPyRelation | None:
        import duckdb

        kinds = [parsed.type for parsed in self._connection.extract_statements(statement)]
        if len(kinds) != 1:
            raise InvalidConfigError(f"one statement is expected, not {len(kinds)}")
        has_rows = kinds[0] in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
        if not has_rows and not _OF_VIEWS.match(statement):
            raise InvalidConfigError(
                f"{kinds[0].name} is not for logs: there are queries, CREATE VIEW and DROP VIEW"
            )
        relation = self._connection.sql(statement)
        return relation if has_rows else None

    def _batches(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import duckdb

        try:
            for batch in reader:
                yield batch if batch.schema == schema else batch.cast(schema)
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._own(error) from None

    def _own(self, error: Exception) -> BaseException:
        """What a reader of the log raised, or DuckDB's error as one of ours."""
        import duckdb

        noted = self._failures.take()
        if noted is not None:
            return noted
        text = str(error).strip()
        if isinstance(error, RuntimeError):
            # What it makes of Ctrl-C; anything else is a fault.
            return KeyboardInterrupt() if "interrupted" in text else error
        if unknown := _UNKNOWN_TABLE.search(text):
            there = ", ".join(self._names)
            return InvalidConfigError(f"there is no view {unknown[1]}; there are: {there}")
        if isinstance(error, duckdb.ProgrammingError | duckdb.PermissionException):
            return InvalidConfigError(text)
        return KafkaLogError(text)


def _spark_type(field: pa.Field, duckdb_type: object) -> pa.Field:
    """Spark has no numbers of 128 bits and none without a sign: a sum of LONG is a LONG."""
    if str(duckdb_type) == "HUGEINT":
        return field.with_type(pa.int64())
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    return field.with_type(wider.get(field.type, field.type))
