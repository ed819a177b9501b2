"""Records of Kafka Streams' changelogs and repartition topics, as an application wrote them into a
broker.

`python -m tests.oracle.streams_records` makes tests/support/streams_records.txt anew. The
application (`java/client/StreamsRecords.java`) has a store of each kind. Beside the oracle's jars
those of Streams and of RocksDB, which it keeps its stores in, are needed.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tests.oracle.client_programs import client_program
from tests.oracle.jars import KAFKA_VERSION, LockedJar
from tests.support.broker import running_broker
from tests.support.streams_records import RECORDS_FILE

_JARS = [
    LockedJar(
        *("org.apache.kafka", "kafka-streams", KAFKA_VERSION),
        "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b", (),
    ),
    LockedJar(
        *("org.rocksdb", "rocksdbjni", "10.1.3"),
        "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498", (),
    ),
]  # fmt: skip
# The records are of a time long ago: nothing may be deleted or compacted before it is read.
_SETTINGS = {
    "log.retention.check.interval.ms": "3600000",
    "log.cleaner.backoff.ms": "3600000",
}


def kafkas_records() -> str:
    """The text of the file; OracleUnavailableError without Java or the jars."""
    with (
        tempfile.TemporaryDirectory() as folder,
        client_program("StreamsRecords", _JARS) as command,
        running_broker(Path(folder), _SETTINGS) as broker,
    ):
        # Streams keeps its stores below the system's folder for temporary files.
        command.insert(1, f"-Djava.io.tmpdir={folder}")
        done = subprocess.run(
            [*command, broker.bootstrap_servers], stdout=subprocess.PIPE, text=True, check=True
        )
    return done.stdout


if __name__ == "__main__":
    RECORDS_FILE.write_text(kafkas_records())
