"""Streams that run to the end of what is there now."""

from __future__ import annotations

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

WAIT_S = 600
_TRIES = 5


def run_to_end(writer: DataStreamWriter, path: str | None = None) -> StreamingQuery:
    """The query when it has ended. Before its first batch Spark gives the Python process that plans
    ten seconds to start, which no setting changes and a busy machine may exceed: then again.
    """
    for _ in range(_TRIES):
        query = writer.trigger(availableNow=True).start(path)
        try:
            assert query.awaitTermination(WAIT_S)
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
        else:
            return query
    raise AssertionError(f"no worker came up, {_TRIES} times")
