"""The records that tests of Kafka Streams' views read are what an application writes."""

from __future__ import annotations

import pytest

from tests.oracle.streams_records import kafkas_records
from tests.support.streams_records import RECORDS_FILE

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.slow, pytest.mark.soak]

# The one kind of store whose records have the time of the clock.
SUPPRESS = "-KTABLE-SUPPRESS-STATE-STORE-"


def test_the_kept_records_are_what_an_application_writes() -> None:
    kept, made = (_parts(text) for text in (RECORDS_FILE.read_text(), kafkas_records()))
    assert len(kept) > 100
    assert made == kept


def _parts(text: str) -> list[tuple[str, ...]]:
    found = []
    for line in text.splitlines():
        topic, timestamp, *pair = line.split()
        found.append((topic, "" if SUPPRESS in topic else timestamp, *pair))
    return found
