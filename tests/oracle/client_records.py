"""Writes records of Kafka Connect and MirrorMaker 2 by Kafka's own classes.

`python -m tests.oracle.client_records` makes tests/support/client_records.txt anew. Beside the
oracle's jars, which have Connect's, MirrorMaker's are needed.
"""

from __future__ import annotations

import os
import subprocess

from tests.oracle.jars import (
    COMPILER,
    HERE,
    KAFKA_VERSION,
    LockedJar,
    exclusive,
    fetch_jars,
    locked_jars,
    scratch_directory,
)
from tests.oracle.setup import CACHE, JARS, ensure_oracle
from tests.support.client_records import RECORDS_FILE

_MIRROR = {
    "connect-mirror": "0d091c7ba172827dc42ed09fdf4390876a90ab627fd8d2bb002016f9785617e1",
    "connect-mirror-client": "c11ebb023021dccb8f18c6b57019b9dbe7c74e0b9495196a895a5d40b9faf1a8",
}
_SOURCE = HERE / "java" / "client" / "ClientRecords.java"


def kafkas_records() -> str:
    """The text of the file; OracleUnavailableError without Java or the jars."""
    oracle = ensure_oracle()
    mirror = [
        LockedJar("org.apache.kafka", module, KAFKA_VERSION, sha256, ())
        for module, sha256 in _MIRROR.items()
    ]
    compiler = locked_jars(COMPILER)
    with exclusive(CACHE), scratch_directory(CACHE) as scratch:
        fetch_jars(oracle.java, [*mirror, *compiler], JARS, scratch)
        jars = [*oracle.jars, *(JARS / jar.file_name for jar in mirror)]
        class_path = os.pathsep.join(map(str, jars))
        compile_ = [str(oracle.java), "-jar", str(JARS / compiler[0].file_name)]
        compile_ += ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-encoding"]
        compile_ += ["UTF-8", "-d", str(scratch), "-classpath", class_path, str(_SOURCE)]
        subprocess.run(compile_, check=True)
        run = [str(oracle.java), "-cp", os.pathsep.join([class_path, str(scratch)])]
        done = subprocess.run(
            [*run, "ClientRecords"], stdout=subprocess.PIPE, text=True, check=True
        )
    return done.stdout


if __name__ == "__main__":
    RECORDS_FILE.write_text(kafkas_records())
