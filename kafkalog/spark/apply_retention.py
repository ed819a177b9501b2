"""Retention beside Spark's other verbs: planned and carried out by the driver.

Deleting a segment is a few renames, some 2 ms, which the disk does one after the other whoever
asks: tasks would cost more than they save. The driver must see the log dirs anyway, to lock them
and to plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from pyspark.sql import SparkSession

from kafkalog.operations.retain import (
    RetentionRun,
    apply_retention_run,
    plan_retention_run,
)
from kafkalog.requests.run_request import RunOptions, run_request


def retain(
    spark: SparkSession,
    log_dirs: Sequence[str],
    *,
    apply: bool = False,
    **options: Unpack[RunOptions],
) -> RetentionRun:
    """Plan retention of the selected partitions; with `apply` delete what it allows.

    The options are those of `kafkalog retain`, as in `compact`; the session starts no task.

    Raises InvalidConfigError for what Kafka would refuse, LogDirLockedError if a broker runs. What
    stops one partition is in its result.
    """
    request = run_request(log_dirs, options)
    return apply_retention_run(request) if apply else plan_retention_run(request)
