"""Make the archive of Spark's classes that local sessions start from (`class_archive`):

    python -m kafkalog.spark.archive_classes

Starts a session that does what first queries do, over a log dir with an empty partition, and has
its JVM write the classes that it has by then when it ends: about a minute, and 160 MB of disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from kafkalog.errors import InvalidConfigError
from kafkalog.spark.class_archive import archive_dir, archive_key, archive_name
from kafkalog.spark.releases import HAS_SOURCES
from kafkalog.spark.session import SESSION_CONF, configure_spark
from kafkalog.spark.views import create_views

_OPTIONS = "spark.driver.extraJavaOptions"
_LAST_LINES = 20


def make_archive() -> Path:
    """The archive, in the place of one that is there. InvalidConfigError where there is no Java, or
    where it writes none: for a class path with a directory of settings, for instance."""
    key = archive_key()
    if key is None:
        raise InvalidConfigError("there is no Java, or no folder of Spark's jars: see JAVA_HOME")
    place = archive_dir()
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        made = Path(scratch) / "classes.jsa"
        # The JVM outlives its driver while it writes; the pipe has no end before it is done.
        done = subprocess.run(
            [sys.executable, "-m", "kafkalog.spark.archive_classes", str(made)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not made.is_file():
            lines = [line for line in done.stdout.splitlines() if "[warning][cds" not in line]
            said = "\n".join(lines[-_LAST_LINES:])
            raise InvalidConfigError(f"Java wrote no archive of Spark's classes:\n{said}")
        with made.open("rb") as file:
            os.fsync(file.fileno())
        kept = place / archive_name(key, made.stat().st_size)
        made.replace(kept)
    for other in place.glob(f"{key}-*.jsa"):
        if other != kept:
            other.unlink(missing_ok=True)
    return kept


def run_first_queries(archive: Path) -> None:
    """In a session whose JVM writes its classes there when it ends."""
    builder = configure_spark(SparkSession.builder, master="local[2]")
    options = f'{SESSION_CONF[_OPTIONS]} "-XX:ArchiveClassesAtExit={archive}"'
    builder = builder.config(_OPTIONS, options).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.parallelize([1]).map(_as_it_is).collect()
    numbers = spark.range(1000).mapInArrow(_batches_as_they_are, "id long")
    numbers.groupBy((numbers.id % 2).alias("odd")).count().orderBy("odd").collect()
    with tempfile.TemporaryDirectory() as log_dir:
        Path(log_dir, "empty-0").mkdir()
        if HAS_SOURCES:
            spark.read.format("kafkalog").load(log_dir).count()
        create_views(spark, log_dir)
        spark.sql("SELECT topic, count(*), max(offset) FROM records GROUP BY topic").collect()
        spark.sql("SELECT * FROM segments ORDER BY topic LIMIT 3").toArrow()
    spark.stop()


def _as_it_is(number: int) -> int:
    return number


def _batches_as_they_are(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    if len(sys.argv) > 1:
        run_first_queries(Path(sys.argv[1]))
        return
    kept = make_archive()
    sys.stderr.write(f"kafkalog: Spark's classes are kept in {kept}\n")


if __name__ == "__main__":
    main()
