"""Errors of options and logs as one line.

Spark shows what a process that plans a read, or a task, raised with its traceback, a dozen frames
of Spark's and ours, and the sentence last. Before 4.0 it cannot be told to leave that away.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from pyspark import TaskContext

from kafkalog.errors import KafkaLogError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Row = TypeVar("Row")

# pyspark's, read when an error is sent to the JVM; the process ends behind it.
_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"


def in_one_line(planning: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that plans: what it says of options and logs comes without a traceback. Faults of
    ours keep theirs."""

    @functools.wraps(planning)
    def planned(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return planning(*args, **kwargs)
        except KafkaLogError:
            if _is_process_of_spark():
                os.environ[_HIDE_TRACEBACK] = "1"
            raise

    return planned


def in_one_line_of_task(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows of a task; what is said of a log comes likewise. The worker ends behind it, too."""
    try:
        yield from rows
    except KafkaLogError:
        if _is_process_of_spark():
            os.environ[_HIDE_TRACEBACK] = "1"
        raise


def _is_process_of_spark() -> bool:
    """Not the driver's own, where a caller sees the exception itself."""
    if TaskContext.get() is not None:
        return True
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
