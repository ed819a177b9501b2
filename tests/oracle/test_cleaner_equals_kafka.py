"""Our compaction and Kafka's cleaner on the same logs: the same bytes, round after round.

`KAFKALOG_ORACLE_SEEDS=a-b` plays other scenarios than the default ones. A failed scenario is kept
in `.cache/oracle/failed/`; `python -m tests.fuzz.run_fuzz --scenario N` plays it alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.oracle.kafka import Kafka
from tests.oracle.rounds import Outcome, compact_with_kafkalog, play_and_keep_failed
from tests.oracle.scripts import CODECS, Scenario, random_scenario, seed_scenario

pytestmark = pytest.mark.oracle

FIRST, LAST = map(int, os.environ.get("KAFKALOG_ORACLE_SEEDS", "0-99").split("-"))
CHUNK = 10
TRANSACTIONAL_SEEDS = range(2_000_000, 2_000_040)
LEGACY_SEEDS = range(3_000_000, 3_000_020)
KEYLESS_LEGACY_SEEDS = range(3_000_100, 3_000_105)


@pytest.mark.parametrize("first", range(FIRST, LAST + 1, CHUNK))
def test_random_rounds_equal_kafkas(kafka: Kafka, first: int) -> None:
    _all_equal(kafka, [seed_scenario(seed) for seed in range(first, min(first + CHUNK, LAST + 1))])


@pytest.mark.parametrize("first", TRANSACTIONAL_SEEDS[::CHUNK])
def test_random_rounds_with_transactions_equal_kafkas(kafka: Kafka, first: int) -> None:
    seeds = range(first, first + CHUNK)
    _all_equal(kafka, [random_scenario(seed, transactional=True) for seed in seeds])


@pytest.mark.parametrize("first", LEGACY_SEEDS[::CHUNK])
def test_random_rounds_with_legacy_batches_equal_kafkas(kafka: Kafka, first: int) -> None:
    seeds = range(first, first + CHUNK)
    _all_equal(kafka, [random_scenario(seed, legacy=True) for seed in seeds])


def test_where_kafka_gives_up_on_legacy_batches_we_refuse(kafka: Kafka) -> None:
    """Keyless last records: the state a broker's cleaner calls illegal, in most of these."""
    scenarios = [random_scenario(seed, legacy=True, keyless=True) for seed in KEYLESS_LEGACY_SEEDS]
    outcomes = [_played(scenario, kafka) for scenario in scenarios]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome.kafka_failures for outcome in outcomes) > 1


KINDS = {"keyed": {}, "keyless": {"keyless": True}, "transactional": {"transactional": True}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_equals_kafkas(kafka: Kafka, codec: str, kind: str) -> None:
    outcomes = [
        _played(random_scenario(seed, codec=codec, **KINDS[kind]), kafka)
        for seed in (1_000_003, 1_000_004)
    ]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert any(outcome.cleaned for outcome in outcomes)


def test_the_default_run_is_400_partition_rounds() -> None:
    scenarios = [seed_scenario(seed) for seed in range(100)]
    transactional = [random_scenario(seed, transactional=True) for seed in TRANSACTIONAL_SEEDS]
    assert sum(scenario.rounds for scenario in [*scenarios, *transactional]) >= 400
    assert sum(scenario.rounds for scenario in transactional) >= 120
    legacy = [random_scenario(seed, legacy=True) for seed in LEGACY_SEEDS]
    assert sum(scenario.rounds for scenario in legacy) >= 60


def _all_equal(kafka: Kafka, scenarios: Sequence[Scenario]) -> None:
    outcomes = [_played(scenario, kafka) for scenario in scenarios]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    rounds = sum(outcome.rounds for outcome in outcomes)
    # rounds in which nothing is due are worth having, but not many
    assert sum(outcome.cleaned for outcome in outcomes) > rounds / 3
    assert sum(outcome.kafka_failures for outcome in outcomes) < rounds / 20


def _played(scenario: Scenario, kafka: Kafka) -> Outcome:
    return play_and_keep_failed(scenario, kafka, compact_with_kafkalog)
