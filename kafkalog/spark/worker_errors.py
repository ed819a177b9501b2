"""Errors of options as one line.

Spark shows what the process that plans a read raised with its traceback, a dozen frames of Spark's
and ours, and the sentence last. Before 4.0 there is no such process.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from kafkalog.errors import KafkaLogError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

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


def _is_process_of_spark() -> bool:
    """Not the driver's own, where a caller sees the exception itself."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
