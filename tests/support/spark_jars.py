"""Jars that Spark does not ship and the tests need, pinned in `spark_jars.lock`: Delta and Avro for
each release of Spark, and Spark's own Kafka source, which benchmarks compare with.

`python -m tests.support.spark_jars` fetches them, `--relock` writes the lock anew. They come and
are checked as the oracle's do (tests/oracle/jars.py) and lie under `.cache/spark`. Only what Spark
lacks is in the list: all that Delta's pom names would hide Spark's own jackson, scala and parquet.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafkalog.spark.releases import RELEASE, WITH_DELTA, packages_conf
from tests.oracle.jars import (
    Module,
    exclusive,
    fetch_jars,
    read_lock,
    resolve,
    scratch_directory,
    write_lock,
)
from tests.oracle.setup import find_java

# Of the release in requirements.lock, which the benchmarks run on.
SPARK = "4.2.0"
LOCK_FILE = Path(__file__).with_name("spark_jars.lock")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "spark"
JARS = CACHE / "jars"

# What Delta's own artifact needs beside Spark, by its release.
_BESIDE_DELTA: dict[str, list[Module]] = {
    "3.3.3": [("io.delta", "delta-storage", "3.3.3")],
    "4.4.0": [
        ("io.delta", "delta-storage", "4.4.0"),
        ("io.delta", "delta-kernel-api", "4.4.0"),
        ("io.delta", "delta-kernel-defaults", "4.4.0"),
        ("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
        ("io.unitycatalog", "unitycatalog-client", "0.6.0"),
        ("io.unitycatalog", "unitycatalog-hadoop", "0.6.0"),
    ],
}


def session_of(release: str) -> str:
    """What a session of the tests on this Spark has, by its name in the lock."""
    return f"session-{release}"


def _session_modules(release: str) -> list[Module]:
    delta, avro = (
        (organisation, module, revision)
        for organisation, module, revision in (
            each.split(":") for each in packages_conf(release)["spark.jars.packages"].split(",")
        )
    )
    return [delta, *_BESIDE_DELTA[delta[2]], avro]


# The Kafka source is for benchmarks.
KAFKA_SOURCE = "kafka-source"
_MODULES: dict[str, list[Module]] = {
    **{session_of(release): _session_modules(release) for release in WITH_DELTA},
    KAFKA_SOURCE: [
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", SPARK),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    ],
}


def ensure_spark_jars(needed_by: str = session_of(RELEASE)) -> list[Path]:
    """The jars of a use, fetched first where they are not there yet; OracleUnavailableError without
    them."""
    wanted = [jar for jar in read_lock(LOCK_FILE) if needed_by in jar.needed_by]
    paths = [JARS / jar.file_name for jar in wanted]
    if not all(path.is_file() for path in paths):
        with exclusive(CACHE), scratch_directory(CACHE) as scratch:
            fetch_jars(find_java(), wanted, JARS, scratch)
    return paths


def session_settings() -> dict[str, str]:
    """Delta and Avro for a session of the tests, as `spark_conf/packages.conf` gives them, but from
    the files that setup has fetched; nothing where there is no Delta for this Spark."""
    if RELEASE not in WITH_DELTA:
        return {}
    jars = ",".join(map(str, ensure_spark_jars()))
    settings = packages_conf()
    del settings["spark.jars.packages"]
    return settings | {"spark.jars": jars}


def relock() -> int:
    """Looks every jar up anew and rewrites the lock file; the number of jars."""
    with exclusive(CACHE), scratch_directory(CACHE) as scratch:
        found = [
            jar
            for name, modules in _MODULES.items()
            for jar in resolve(find_java(), name, scratch, modules, transitive=False)
        ]
    return write_lock(found, LOCK_FILE)


if __name__ == "__main__":
    if sys.argv[1:] == ["--relock"]:
        relock()
    for use in (session_of(RELEASE),) if sys.argv[1:] != ["--all"] else _MODULES:
        ensure_spark_jars(use)
