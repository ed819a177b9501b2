"""`.kafka_cleanshutdown`: the last broker on this log dir closed its logs in order.

                                        before Kafka 3.7: empty
 {"version":0,"brokerEpoch":14}         since 3.7

The file being there is what counts. It is written when all logs are closed and deleted first thing
at the next start, so one that is there covers all logs of the dir except `__cluster_metadata`,
which is always recovered. Whatever the text holds, it is a clean shutdown: a text that is not as
above only has no broker epoch.

Source: Kafka CleanShutdownFileHandler; KIP-966.
"""

from __future__ import annotations

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.json_text import parse_json_object, whole_number

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


def parse_clean_shutdown(data: bytes, path: str | None = None) -> int | None:
    """The broker epoch of the shutdown; None where the text tells none. Never raises."""
    try:
        return whole_number(parse_json_object(data, path).get("brokerEpoch"), 64)
    except CorruptCheckpointError:
        return None
