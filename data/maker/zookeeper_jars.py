"""The jars of the ZooKeeper era, pinned: a ZooKeeper server, and the last Kafka that needs one.

`python -m data.maker.zookeeper_jars` fetches them, `--relock` resolves them anew and rewrites
`zookeeper_jars.lock`. They come and are checked as the oracle's do (tests/oracle/jars.py) and lie
under `.cache/zookeeper`. Only making the samples anew and the long tests need them.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.jars import (
    COMPILER,
    LockedJar,
    Module,
    exclusive,
    fetch_jars,
    read_lock,
    resolve,
    roots,
    scratch_directory,
    write_lock,
)
from tests.oracle.setup import find_java

KAFKA = "3.9.1"
ZOOKEEPER = "3.9.4"

LOCK_FILE = Path(__file__).with_name("zookeeper_jars.lock")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "zookeeper"
JARS = CACHE / "jars"

# Code of one processor each, under names of their own; nothing here asks for it.
_NATIVE = ("netty-transport-native-epoll", "netty-tcnative-boringssl-static")
_LOG_BINDING: Module = ("ch.qos.logback", "logback-classic", "1.3.15")
_MODULES: dict[str, list[Module]] = {
    # its own log binding: reload4j
    f"kafka-{KAFKA}": [
        ("org.apache.kafka", "kafka_2.13", KAFKA),
        ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    ],
    # beside it what its own pom leaves to whoever runs a server
    f"zookeeper-{ZOOKEEPER}": [
        ("org.apache.zookeeper", "zookeeper", ZOOKEEPER),
        ("io.dropwizard.metrics", "metrics-core", "4.1.12.1"),
        ("org.xerial.snappy", "snappy-java", "1.1.10.5"),
        _LOG_BINDING,
    ],
    COMPILER: roots(COMPILER),
}


@dataclass(frozen=True, slots=True)
class ZooKeeperEra:
    """Java and the class paths of its programs; `compiler` is a jar that runs by itself."""

    java: Path
    kafka: str
    zookeeper: str
    compiler: Path


def ensure_zookeeper_era() -> ZooKeeperEra:
    """The jars, fetched first where they are not there yet; OracleUnavailableError without them."""
    java = find_java()
    locked = read_lock(LOCK_FILE)
    with exclusive(CACHE):
        for name in _MODULES:  # Ivy keeps only one revision of a module at a time
            with scratch_directory(CACHE) as scratch:
                fetch_jars(java, _of(locked, name), JARS, scratch)
    (compiler,) = _of(locked, COMPILER)
    return ZooKeeperEra(
        java,
        _class_path(_of(locked, f"kafka-{KAFKA}")),
        _class_path(_of(locked, f"zookeeper-{ZOOKEEPER}")),
        JARS / compiler.file_name,
    )


def relock() -> int:
    """Resolves everything anew and rewrites the lock file; the number of jars."""
    with exclusive(CACHE), scratch_directory(CACHE) as scratch:
        found = [
            jar
            for name, modules in _MODULES.items()
            for jar in resolve(find_java(), name, scratch, modules)
            if jar.module not in _NATIVE
        ]
    return write_lock(found, LOCK_FILE)


def _of(locked: list[LockedJar], needed_by: str) -> list[LockedJar]:
    return [jar for jar in locked if needed_by in jar.needed_by]


def _class_path(jars: list[LockedJar]) -> str:
    return os.pathsep.join(str(JARS / jar.file_name) for jar in jars)


if __name__ == "__main__":
    if sys.argv[1:] == ["--relock"]:
        relock()
    ensure_zookeeper_era()
