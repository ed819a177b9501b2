"""The stderr of a driver that spark-submit runs, and its master.

spark-submit starts a Python driver with one pipe for stdout and stderr, and hands on what comes
(`org.apache.spark.deploy.PythonRunner`). Whoever parses the data would find talk in it; so talk is
written by spark-submit's own process, the JVM that the driver is connected with anyway.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from pyspark import SparkConf, SparkContext

# Set by PythonRunner for the driver, which finds its JVM there.
_PORT_OF_JVM = "PYSPARK_GATEWAY_PORT"


class _StderrOfJvm(io.TextIOBase):
    """What is written goes to the JVM's stderr; to Python's where the JVM has gone."""

    encoding = "utf-8"

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        try:
            self._stream.print(text)
        except Exception:
            print(text, end="", file=sys.__stderr__)
        return len(text)


@contextmanager
def stderr_of_spark_submit() -> Iterator[None]:
    """Inside, `sys.stderr` is that of spark-submit; in a plain Python process it stays as it is."""
    if _PORT_OF_JVM not in os.environ:
        yield
        return
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    with redirect_stderr(_StderrOfJvm(jvm.java.lang.System.err)):
        yield


def master_of_spark_submit() -> str | None:
    """The master that spark-submit gives the driver's session, asked within
    `stderr_of_spark_submit`; None in a plain Python process."""
    return SparkConf().get("spark.master") if _PORT_OF_JVM in os.environ else None
