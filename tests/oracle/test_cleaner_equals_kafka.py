"""Our compaction and Kafka's cleaner on the same logs, release by release: the same bytes, round
after round.

`KAFKALOG_ORACLE_SEEDS=a-b pytest -m oracle` plays these scenarios with every release instead
of the default ones. A failed scenario is kept in `.cache/oracle/failed/`; `python -m
tests.fuzz.run_fuzz --scenario N --kafka-version X.Y` plays it alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from tests.oracle.jars import RELEASES
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.rounds import Outcome, compact_with_kafkalog, play_and_keep_failed
from tests.oracle.scripts import CODECS, Scenario, random_scenario, seed_scenario

pytestmark = pytest.mark.oracle

CHUNK = 10
# three fifths with the default release
SEEDS = {
    "4.1": range(10_000, 10_040),
    "4.2": range(8000, 8040),
    "4.3": range(170),
    "4.4": range(9000, 9040),
}
if "KAFKALOG_ORACLE_SEEDS" in os.environ:
    FIRST, LAST = map(int, os.environ["KAFKALOG_ORACLE_SEEDS"].split("-"))
    SEEDS = dict.fromkeys(RELEASES, range(FIRST, LAST + 1))
# Chunks that `make test` plays: of the default release and of the newest.
QUICK = {"4.3": 2, "4.4": 1}
CHUNKS = [
    pytest.param(
        line,
        seeds[n : n + CHUNK],
        marks=() if n < QUICK.get(line, 0) * CHUNK else pytest.mark.thorough,
    )
    for line, seeds in SEEDS.items()
    for n in range(0, len(seeds), CHUNK)
]
PLAYED: list[tuple[str, Outcome]] = []
KEYLESS_LEGACY_SEEDS = range(3_000_100, 3_000_105)


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    with Kafkas() as running:
        yield running


@pytest.mark.parametrize(("line", "seeds"), CHUNKS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_random_rounds_equal_kafkas(kafkas: Kafkas, line: str, seeds: range) -> None:
    outcomes = [_played(seed_scenario(seed), kafkas.of(line)) for seed in seeds]
    PLAYED.extend((line, outcome) for outcome in outcomes)
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
def test_they_were_600_partition_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    """What the test above played, when all of it ran: few rounds without anything to do, few that
    Kafka gives up, and full maps and deleted segments in every release.
    """
    if len(PLAYED) != sum(map(len, SEEDS.values())):
        pytest.skip("only some of the random rounds were played in this process")
    rounds: Counter[str] = Counter()
    for line, outcome in PLAYED:
        rounds[line] += outcome.rounds
    with capsys.disabled():
        print(f" {rounds.total()} partition rounds: {dict(rounds)}", end="")  # noqa: T201  # asked for
    outcomes = [outcome for _, outcome in PLAYED]
    assert rounds.total() >= 600
    assert rounds["4.3"] >= 360
    assert min(rounds[line] for line in RELEASES) >= 75
    assert sum(outcome.cleaned for outcome in outcomes) > rounds.total() / 2
    assert sum(outcome.kafka_failures for outcome in outcomes) < rounds.total() / 20
    full_maps, deletions = Counter[str](), Counter[str]()
    for line, outcome in PLAYED:
        full_maps[line] += outcome.full_maps
        deletions[line] += outcome.deletions
    assert min(full_maps[line] for line in RELEASES) > 5, full_maps
    assert min(deletions[line] for line in RELEASES) > 0, deletions


@pytest.mark.parametrize(
    "line", [pytest.param(r, marks=pytest.mark.thorough) if r < "4.4" else r for r in RELEASES]
)
def test_where_kafka_gives_up_on_legacy_batches_we_refuse(kafkas: Kafkas, line: str) -> None:
    """Keyless last records: the state a broker's cleaner calls illegal, in most of these."""
    scenarios = [random_scenario(seed, legacy=True, keyless=True) for seed in KEYLESS_LEGACY_SEEDS]
    outcomes = [_played(scenario, kafkas.of(line)) for scenario in scenarios]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome.kafka_failures for outcome in outcomes) > 1


KINDS = {"keyed": {}, "keyless": {"keyless": True}, "transactional": {"transactional": True}}


@pytest.mark.parametrize(
    ("codec", "kind"),
    [
        pytest.param(
            codec, kind, marks=() if kind == "keyed" or codec == "zstd" else pytest.mark.thorough
        )
        for codec in CODECS
        for kind in KINDS
    ],
)
def test_each_codec_equals_kafkas(kafka: Kafka, codec: str, kind: str) -> None:
    outcomes = [
        _played(random_scenario(seed, codec=codec, **KINDS[kind]), kafka)
        for seed in (1_000_003, 1_000_004)
    ]
    wrong = [str(outcome) for outcome in outcomes if outcome.complaints]
    assert not wrong, "\n".join(wrong)
    assert any(outcome.cleaned for outcome in outcomes)


def test_scenarios_of_each_release_mix_everything() -> None:
    for seeds in SEEDS.values():
        of_line = list(map(seed_scenario, seeds))
        few = _rounds(of_line) / 10
        assert _rounds(s for s in of_line if s.transactional_share) > few
        assert _rounds(s for s in of_line if s.legacy_share) > few
        assert _rounds(s for s in of_line if s.dedupe_buffer_size) > few
        assert _rounds(s for s in of_line if "retention.ms" in s.config) > few
        assert _rounds(s for s in of_line if s.legacy_share and s.transactional_share)
        assert _rounds(s for s in of_line if s.legacy_share and s.dedupe_buffer_size)
        assert _rounds(s for s in of_line if s.transactional_share and s.dedupe_buffer_size)
        assert any(s.keyless for s in of_line)
        for lag in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
            assert any(lag in s.config for s in of_line)
        assert len({s.config["min.cleanable.dirty.ratio"] for s in of_line}) > 2
        assert {codec for s in of_line for codec in s.codecs} == set(CODECS)


def _rounds(scenarios: Iterable[Scenario]) -> int:
    return sum(scenario.rounds for scenario in scenarios)


def _played(scenario: Scenario, kafka: Kafka) -> Outcome:
    return play_and_keep_failed(scenario, kafka, compact_with_kafkalog)
