"""The oracle's JVM, one for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.kafka import Kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running
