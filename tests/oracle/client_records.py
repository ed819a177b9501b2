"""Writes records of Kafka Connect and MirrorMaker 2 by Kafka's own classes.

`python -m tests.oracle.client_records` makes tests/support/client_records.txt anew. Beside the
oracle's jars, which have Connect's, MirrorMaker's are needed.
"""

from __future__ import annotations

import subprocess

from tests.oracle.client_programs import client_program
from tests.oracle.jars import KAFKA_VERSION, LockedJar
from tests.support.client_records import RECORDS_FILE

_MIRROR = {
    "connect-mirror": "0d091c7ba172827dc42ed09fdf4390876a90ab627fd8d2bb002016f9785617e1",
    "connect-mirror-client": "c11ebb023021dccb8f18c6b57019b9dbe7c74e0b9495196a895a5d40b9faf1a8",
}


def kafkas_records() -> str:
    """The text of the file; OracleUnavailableError without Java or the jars."""
    mirror = [
        LockedJar("org.apache.kafka", module, KAFKA_VERSION, sha256, ())
        for module, sha256 in _MIRROR.items()
    ]
    with client_program("ClientRecords", mirror) as command:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    RECORDS_FILE.write_text(kafkas_records())
