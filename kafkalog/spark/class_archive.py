"""An archive of Spark's classes as Java has parsed and checked them once (class data sharing).

A fresh session's JVM spends half of its time on some 15,000 classes. With an archive it maps them.
`python -m kafkalog.spark.archive_classes` makes one, for this Java and these jars; a local session
of `configure_spark(…, master="local[2]")` takes it. Java itself sees that its jars, its class path
or its flags have become others, and goes on without.

It does not see that a file was cut: it crashes. So an archive is named by its size, comes to its
name when it is whole and on the disk, and is taken only if it has that size.
"""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pyspark

_KEY_LETTERS = 16
# Java's warnings would go to the driver's stdout.
_QUIET = "-Xlog:cds*=off -Xlog:cds*=error:stderr"


def archive_dir() -> Path:
    """`spark-classes` below KAFKALOG_CACHE_DIR, or `kafkalog/spark-classes` below XDG_CACHE_HOME or
    ~/.cache."""
    if chosen := os.environ.get("KAFKALOG_CACHE_DIR"):
        return Path(chosen) / "spark-classes"
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "kafkalog" / "spark-classes"


def archive_key() -> str | None:
    """What an archive is for: the Java that Spark starts, and Spark's jars. None where they are not
    found."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    if java is None:
        return None
    try:
        files = [Path(java).resolve(), *sorted((spark / "jars").iterdir())]
        facts = [(str(file), stat.st_size, stat.st_mtime_ns)
                 for file in files for stat in [file.stat()]]  # fmt: skip
    except OSError:
        return None
    return sha256(repr(facts).encode()).hexdigest()[:_KEY_LETTERS]


def kept_archive() -> Path | None:
    """The archive for this Java and these jars, if there is a whole one."""
    archives = sorted(archive_dir().glob("*.jsa"))
    # The key looks at each of Spark's jars: not where there is nothing to take.
    key = archive_key() if archives else None
    if key is None:
        return None
    for path in archives:
        try:
            if path.name == archive_name(key, path.stat().st_size):
                return path
        except OSError:
            continue  # another one took its place
    return None


def archive_name(key: str, size: int) -> str:
    return f"{key}-{size}.jsa"


def archive_options() -> str:
    """Options of a JVM that takes the kept archive; empty without one."""
    path = kept_archive()
    if path is None or '"' in str(path) or "\\" in str(path):  # as Spark splits options
        return ""
    return f'"-XX:SharedArchiveFile={path}" {_QUIET}'
