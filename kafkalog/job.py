"""The frame of the scripts in `jobs/`: arguments of a verb, a session, one call, an exit code.

spark-submit merges a Python driver's stderr into its stdout, so what a job says goes out by
spark-submit's JVM, whose own stderr is not merged.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.display import set_display
from kafkalog.cli.main import report_error
from kafkalog.cli.output import finish_output, say
from kafkalog.cli.remote_cache import executor_settings, told_remote_cache
from kafkalog.spark import configure_spark
from kafkalog.spark.submitted import master_of_spark_submit, stderr_of_spark_submit

Tell = Callable[[str], None]
DriverWork = Callable[[argparse.Namespace, Tell], int]
Work = Callable[[SparkSession, argparse.Namespace, Tell], int]


def run_job(verb: str, script: str, argv: Sequence[str], work: Work) -> int:
    """`work` in a session of its own, with the arguments of `kafkalog VERB`; its exit code, or that
    of the error it raised. `script` is the path of the job, for its usage text.
    """

    return run_driver_job(verb, script, argv, lambda args, tell: in_session(verb, args, tell, work))


def in_session(
    verb: str,
    args: argparse.Namespace,
    tell: Tell,
    work: Work,
    settings: Mapping[str, str] | None = None,
) -> int:
    """`work` in a session of its own with some more settings, which is stopped behind it."""
    builder = SparkSession.builder.appName(f"kafkalog {verb}")
    builder = configure_spark(builder, master=master_of_spark_submit())
    for key, value in {**(settings or {}), **executor_settings(args)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        return work(spark, args, tell)
    finally:
        spark.stop()


def run_driver_job(verb: str, script: str, argv: Sequence[str], work: DriverWork) -> int:
    """The same for work that the driver does alone: no session is started."""
    with stderr_of_spark_submit():
        try:
            args = parse_verb_arguments(verb, argv, prog=Path(script).name)
            set_display(args)
            with told_remote_cache(args):
                code = work(args, say)
            finish_output()
        except Exception as error:
            return report_error(error)
        return code
