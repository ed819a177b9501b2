"""Sessions: what a builder needs for kafkalog, and telling a running session about the data
source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.spark.class_archive import archive_options
from kafkalog.spark.releases import HAS_FILTERS, needs, packages_conf, register_source
from kafkalog.spark.source import KafkaLogSource, PushingSource
from kafkalog.spark.worker_python import SCRIPT, is_local, set_worker_python

# Records reach the JVM in Arrow batches our own worker wrote. Arrow checks each value it hands out
# against its buffer's bounds, twice; without that a scan takes a third less of the JVM's time.
# It is read when a JVM starts: in a session that runs already it changes nothing.
_ARROW_CHECKS_OFF = (
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
# Ours, and off unless somebody asks: Spark 4.2.0 keeps the read that filters were pushed into with
# the relation, so the next query of the same frame or view gets the rows of the one before.
PUSH_FILTERS = "spark.kafkalog.pushFilters"

# By session: which source it was told of last.
_registered: WeakKeyDictionary[SparkSession, type[KafkaLogSource]] = WeakKeyDictionary()

# The same lines, each with its reason, are in spark_conf/spark-defaults.conf for spark-submit; a
# test compares them.
SESSION_CONF: dict[str, str] = {
    # Timestamps on the disk are milliseconds since the epoch, with no zone.
    "spark.sql.session.timeZone": "UTC",
    # Arrow batches go to Python functions, and back to pandas, as they are.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # With PUSH_FILTERS `WHERE offset = 5` reaches the indexes, the batch headers and the keys.
    PUSHDOWN: "true",
    "spark.driver.extraJavaOptions": _ARROW_CHECKS_OFF,
    "spark.executor.extraJavaOptions": _ARROW_CHECKS_OFF,
}


def configure_spark(
    builder: SparkSession.Builder, *, master: str | None = None, packages: bool = False
) -> SparkSession.Builder:
    """A builder with the settings kafkalog wants; what the caller sets afterwards wins.

    With `master` also that; a builder does not tell what it was given itself, and with a local one
    workers start sooner (`kafkalog.spark.worker_python`), and so does the JVM where Spark's classes
    are kept (`kafkalog.spark.class_archive`).

    With `packages` also Delta and Avro: Spark fetches their jars when its JVM starts. In a JVM that
    runs already, as under spark-submit, they come by spark_conf/packages.conf instead.
    InvalidConfigError where there is no Delta for this Spark.

    Python workers start as `python3` unless told otherwise, which may be another Python without
    kafkalog: unless PYSPARK_PYTHON is set, they become this interpreter.
    """
    if master is not None:
        builder = builder.master(master)
    for name, value in set_worker_python(master).items():
        builder = builder.config(f"spark.executorEnv.{name}", value)
    for key, value in (SESSION_CONF | (packages_conf() if packages else {})).items():
        builder = builder.config(key, value)
    if is_local(master) and (archive := archive_options()):
        options = f"{_ARROW_CHECKS_OFF} {archive}"
        builder = builder.config("spark.driver.extraJavaOptions", options)
    return builder


def register(spark: SparkSession) -> None:
    """Make `format("kafkalog")` known to this session, also where Spark did not find
    `pyspark_kafkalog` by itself; with filters pushed down where both settings say so.

    InvalidConfigError where this Spark has no data sources in Python, or pushes them no filters,
    and where the Python of this machine's workers has no kafkalog.
    """
    _check_workers(spark)
    asked = spark.conf.get(PUSH_FILTERS, "false") == "true"
    needs(HAS_FILTERS or not asked, PUSH_FILTERS, "4.1")
    is_pushing = asked and spark.conf.get(PUSHDOWN, "false") == "true"
    source = PushingSource if is_pushing else KafkaLogSource
    # Each view asks for it, and Spark warns of each source that replaces one of its name.
    if _registered.get(spark) is not source:
        register_source(spark, source)
        _registered[spark] = source


def _check_workers(spark: SparkSession) -> None:
    """Of a session whose tasks run on this machine: in a plain script without PYSPARK_PYTHON they
    are the system's `python3`, and would end in "No module named 'kafkalog'"."""
    context = getattr(spark, "sparkContext", None)  # Connect has none
    if context is None or not context.master.startswith("local"):
        return
    lacking = _python_without_kafkalog(context.pythonExec)
    if lacking is not None:
        raise InvalidConfigError(
            f"Spark's workers are {lacking}, which has no kafkalog: make the session with"
            f" configure_spark(SparkSession.builder), or set PYSPARK_PYTHON={sys.executable} before"
        )


@cache
def _python_without_kafkalog(command: str) -> str | None:
    """The path behind a command that starts a Python which cannot find this package."""
    path = shutil.which(command)
    own = (SCRIPT, Path(sys.executable).absolute())
    if path is None or Path(path).absolute() in own:
        return None
    found = subprocess.run(
        [path, "-c", "from importlib.util import find_spec; print(find_spec('kafkalog') is None)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return path if found.stdout.strip() == "True" else None
