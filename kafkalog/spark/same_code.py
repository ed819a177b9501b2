"""Functions of Spark tasks that run only where the code is that of the driver.

After `pip install .` in a clone's folder the driver takes the installed package and the workers the
folder's. The function given to Spark here is made of nothing of this package, so that it says so on
any worker, one with an older release or none too; what it wraps is unpickled behind the check.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.errors import PySparkException

from kafkalog.code_digest import code_digest
from kafkalog.errors import CodeDiffersError

Batches = Iterator[pa.RecordBatch]
Given = TypeVar("Given")
Made = TypeVar("Made")

# Around the sentence, to find it in what Spark makes of an exception.
_BEGIN, _END = "<<other code: ", ">>"


def on_same_code(
    work: Callable[[Iterator[Given]], Iterator[Made]],
) -> Callable[[Iterator[Given]], Iterator[Made]]:
    """`work`, for `mapInArrow` or `mapPartitions`; a task on other code raises before anything of
    it is loaded.
    """
    packed: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    planned, begin, end, load = code_digest(), _BEGIN, _END, pickle.loads

    def checked(given: Iterator[Given]) -> Iterator[Made]:
        try:
            from kafkalog.code_digest import check_same_code as check
        except ImportError as error:
            text = f"the plan was made by kafkalog {planned}, this task has none like it: {error}"
            raise RuntimeError(f"{begin}{text}{end}") from None
        try:
            check(planned)
        except Exception as error:
            raise RuntimeError(f"{begin}{error}{end}") from None
        from kafkalog.spark.worker_errors import in_one_line_of_task

        yield from in_one_line_of_task(load(packed)(given))

    return checked


@contextmanager
def code_differences() -> Iterator[None]:
    """Raises CodeDiffersError where a job inside failed for that."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = re.search(f"{re.escape(_BEGIN)}(.*?){re.escape(_END)}", str(error), re.DOTALL)
        if found is None:
            raise
        raise CodeDiffersError(found[1]) from None
