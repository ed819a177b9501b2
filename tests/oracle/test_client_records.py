"""The records that tests of Connect's and MirrorMaker's views read are what Kafka writes."""

from __future__ import annotations

import json

import pytest

from tests.oracle.client_records import kafkas_records
from tests.support.client_records import RECORDS_FILE

pytestmark = pytest.mark.oracle


def test_the_kept_records_are_what_kafka_writes() -> None:
    kept, made = (_parts(text) for text in (RECORDS_FILE.read_text(), kafkas_records()))
    assert len(kept) > 20
    assert made == kept


def _parts(text: str) -> list[tuple[object, ...]]:
    """JSON as what it says: Kafka takes its maps' fields in no order."""
    return [tuple(_meaning(part) for part in line.split()) for line in text.splitlines()]


def _meaning(part: str) -> object:
    try:
        return json.loads(bytes.fromhex(part))
    except ValueError:
        return part
