"""`kafkalog.sql` and `kafkalog.connect`: SQL over logs from Python, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from kafkalog.dialect.translation import MACROS
from kafkalog.duckdb.connection import MEMORY_LIMIT, open_connection, usable_cores
from kafkalog.duckdb.dataset import Failures
from kafkalog.duckdb.session import SqlSession
from kafkalog.duckdb.tables import LogTables, Reads
from kafkalog.errors import InvalidConfigError
from kafkalog.log.names import paths_in
from kafkalog.reading.request import ReadMode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
OptionValue = str | bool | int


def sql(
    path: Paths,
    query: str,
    *,
    mode: str = ReadMode.FAILFAST,
    zookeeper_dir: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    zk_root: str | None = None,
    memory_limit: str | int = MEMORY_LIMIT,
    threads: int | None = None,
    decode: bool = False,
    **options: OptionValue,
) -> pa.Table:
    """The rows of a query over the views of the logs below `path` (a log dir, partition directory,
    `.log` file, glob, or several of them), in Spark's SQL.

    Only what the query names is decoded; conditions on partition, offset, key and their like reach
    the readers. `mode`: what cannot be read raises (FAILFAST), is a row with an `error` in views of
    records, batches and files and of groups (PERMISSIVE), or is left out and counted in a warning
    (DROPMALFORMED, and PERMISSIVE in the other views). `options` are those of the data source
    (`subscribe`, `isolationLevel` …) and go to the views that take them. With `zookeeper_dir` there
    are the views `zookeeper_…` of a dead ZooKeeper, of the cluster below `zk_root` or of all. What
    does not fit into `memory_limit` (bytes, or `512MB`; default a quarter of the machine's) goes to
    temporary files; `threads` are the cores used (default all). With `decode` there is a table
    `topic_…` of each topic whose keys or values have a schema in the topic `_schemas` there, with
    key and value as their types (`payloads.topic_table`).

    InvalidConfigError for a query that is wrong, and as `read_records` raises.
    """
    log = _log(path, {"mode": mode, **options}, zookeeper_dir, zk_root, threads, decode)
    with SqlSession(log, memory_limit=memory_limit) as session:
        found = session.run(query)
        if found is None:
            raise InvalidConfigError("the statement has no rows: a query is expected")
        return found.read_all()


def connect(
    path: Paths,
    *,
    mode: str = ReadMode.FAILFAST,
    zookeeper_dir: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    zk_root: str | None = None,
    memory_limit: str | int = MEMORY_LIMIT,
    threads: int | None = None,
    decode: bool = False,
    **options: OptionValue,
) -> DuckDBPyConnection:
    """A DuckDB connection with the views of the logs below `path`, for queries in DuckDB's own
    dialect; arguments as of `sql`. `spark_text(key)` is the text of bytes, as a cast is in Spark.

    Views of records, batches and files are read by each query anew; those about groups, clusters
    and ZooKeeper once for the connection. It reaches no file, and its settings are locked. Errors
    of the readers come as DuckDB's, with their text.
    """
    log = _log(path, {"mode": mode, **options}, zookeeper_dir, zk_root, threads, decode)
    tables = log.tables(log.names(), Reads(log))
    return open_connection(
        tables, Failures(), macros=MACROS, memory_limit=memory_limit, threads=log.threads
    )


def _log(
    path: Paths,
    options: dict[str, OptionValue],
    zookeeper_dir: str | PathLike[str] | Iterable[str | PathLike[str]],
    zk_root: str | None,
    threads: int | None,
    decode: bool,
) -> LogTables:
    log = LogTables(
        paths=tuple(str(each) for each in paths_in(path)),
        options={name: _text(value) for name, value in options.items()},
        threads=threads or usable_cores(),
        zookeeper_dir=tuple(str(each) for each in paths_in(zookeeper_dir)),
        zk_root=zk_root,
    )
    return log.with_topics() if decode else log


def _text(value: OptionValue) -> str:
    """As Spark's own options take them: True is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)
