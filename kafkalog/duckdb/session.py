"""Statements of SQL, in Spark's dialect, over the tables of a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkalog.dialect.translation import MACROS, Translation, UnknownViewError, translation
from kafkalog.duckdb.connection import MEMORY_LIMIT, open_connection, register_table
from kafkalog.duckdb.dataset import Failures
from kafkalog.duckdb.tables import LogTables, Reads
from kafkalog.errors import InvalidConfigError, KafkaLogError

if TYPE_CHECKING:
    pass

# Rows of a batch of a result, at most.
# How long Ctrl-C may wait.
_SIGNALS_EVERY_S = 0.2
_BATCH_ROWS = 16_384
_WORD = re.compile(r"\w+")
_KIND_OF_ERROR = re.compile(r"^[A-Z]\w+( \w+)* Error: ")
_MACRO_NAME = re.compile(r"MACRO\s+(\w+)")


class SqlSession:
    """A connection for statements one after the other; views that they create stay in it.

    A statement's tables are as of its time. schemas: of the tables and of the views that were
    created, by their names.
    """

    def __init__(self, log: LogTables, *, memory_limit: str | int = MEMORY_LIMIT) -> None:
        self._failures = Failures()
        self._reads = Reads(log)
        self._tables = {table.name: table for table in log.tables(log.names(), self._reads)}
        self.schemas = {name: table.schema for name, table in self._tables.items()}
        self._lengths = {name: table.lengths for name, table in self._tables.items()}
        # What takes DuckDB a tenth of a second altogether is done for what a statement names.
        self._unregistered = set(self._tables)
        self._macros = {_MACRO_NAME.findall(text)[0]: text for text in MACROS}
        self._connection = open_connection(
            (), self._failures, memory_limit=memory_limit, threads=log.threads
        )
        self._thread = ThreadPoolExecutor(1, "kafkalog-sql")

    def run(self, statement: str) -> pa.RecordBatchReader | None:
        """The rows of a statement as a stream, None of one that has no rows (CREATE VIEW). The next
        statement ends the stream.

        InvalidConfigError for what is no SQL, names nothing that is there, or is not for logs, with
        `--engine spark` in it where Spark would know an answer; KafkaLogError for a value that is
        not what an operator takes, or too little memory. While the stream is read: what the readers
        of the log raise, in place of DuckDB's error.
        """
        import duckdb

        self._reads.renew()
        self._failures.take()
        try:
            return self._run(statement)
        except (duckdb.Error, RuntimeError) as error:
            raise self._own(error) from None

    def interrupt(self) -> None:
        """End the statement that runs, from another thread."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.interrupt()
        self._thread.shutdown()
        self._connection.close()

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- statements --------------------------------------------------------------------------------

    def _run(self, statement: str) -> pa.RecordBatchReader | None:
        found = self._translated(statement)
        if found.creates is not None:
            self._connection.execute(found.sql)
            self.schemas[found.creates] = found.schema
            self._lengths.pop(found.creates.lower(), None)
            return None
        if found.drops is not None:
            self._connection.execute(found.sql)
            self.schemas.pop(found.drops, None)
            return None
        reader = self._wait(self._reader, found.sql)
        batches = self._batches(reader, found.schema)
        return pa.RecordBatchReader.from_batches(found.schema, batches)

    def _reader(self, sql: str) -> pa.RecordBatchReader:
        return self._connection.sql(sql).to_arrow_reader(_BATCH_ROWS)

    def _translated(self, query: str) -> Translation:
        """The statement for DuckDB, which knows its tables and functions afterwards."""
        # Any word of the text may be a table's name: one too many costs its registration and
        # nothing else.
        words = {word.lower() for word in _WORD.findall(query)}
        for name in sorted(name for name in self._unregistered if name.lower() in words):
            register_table(self._connection, self._tables[name], self._failures, lengths=True)
            self._unregistered.discard(name)
        try:
            found = translation(query, self.schemas, self._lengths)
        except UnknownViewError as error:
            raise self._with_topic(error) from None
        self._know_macros(found.sql)
        return found

    def _with_topic(self, error: UnknownViewError) -> UnknownViewError:
        """Of the name of a topic that is here where its records are."""
        import duckdb

        name = error.name
        if "partitions" not in self.schemas:  # of ZooKeeper alone
            return error
        try:
            found = self._translated("SELECT DISTINCT topic FROM partitions")
            topics = self._wait(self._reader, found.sql).read_all()["topic"].to_pylist()
        except (KafkaLogError, duckdb.Error):  # none are known
            return error
        if name not in topics:
            return error
        hint = f": it is a topic: SELECT … FROM records WHERE topic = '{name}'"
        return UnknownViewError(name, error.place, hint)

    def _know_macros(self, sql: str) -> None:
        for name in set(_WORD.findall(sql)) & set(self._macros):
            # Macros may call macros: those first, and each once a session.
            text = self._macros.pop(name, None)
            if text is not None:
                self._know_macros(text)
                self._connection.execute(text)

    def _batches(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import duckdb

        try:
            while (batch := self._wait(next, reader, None)) is not None:
                yield batch if batch.schema == schema else batch.cast(schema)
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._own(error) from None

    def _wait(self, call: Callable[..., Any], *given: Any) -> Any:
        """What a call returns that may take long, made by a thread: while this one was in DuckDB's
        code no signal would reach it, and Ctrl-C would end no query.
        """
        pending = self._thread.submit(call, *given)
        try:
            # A system may give a signal to any thread. Python acts on it in this one only, which it
            # does not wake: so it wakes by itself.
            while not pending.done():
                wait([pending], timeout=_SIGNALS_EVERY_S)
            return pending.result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            raise

    # -- errors ------------------------------------------------------------------------------------

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
        wrong = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
        kind = InvalidConfigError if isinstance(error, wrong) else KafkaLogError
        return kind(_KIND_OF_ERROR.sub("", text))
