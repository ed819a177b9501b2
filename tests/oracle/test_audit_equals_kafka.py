"""What an audit says that will happen is what Kafka's own code does: `deleteOldSegments` at several
moments, and the cleaner manager's verdict, release by release.

`KAFKALOG_AUDIT_SEEDS=a-b pytest -m oracle` plays these logs with every release instead
of the default ones.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.cleaning.record_outcomes import ABORTED, EXPIRED, MARKER, REPLACED, STAYS
from tests.oracle.auditing import AuditTally, forecast_of, play_forecast, play_verdicts
from tests.oracle.jars import RELEASES
from tests.oracle.kafka import Kafkas
from tests.oracle.retention import NAME, RetentionCall
from tests.oracle.rounds import copy_log_dir
from tests.oracle.scripts import START_MS

pytestmark = pytest.mark.oracle

SEEDS = {
    "4.1": range(1000, 1008),
    "4.2": range(2000, 2008),
    "4.3": range(30),
    "4.4": range(3000, 3008),
}
if "KAFKALOG_AUDIT_SEEDS" in os.environ:
    FIRST, LAST = map(int, os.environ["KAFKALOG_AUDIT_SEEDS"].split("-"))
    SEEDS = dict.fromkeys(RELEASES, range(FIRST, LAST + 1))
MANY = {"4.1": range(5000, 5030), "4.2": range(6000, 6030), "4.3": range(300, 600)}
CHUNKS = [
    *(
        pytest.param(line, seeds, marks=() if line == "4.3" else pytest.mark.thorough)
        for line, seeds in SEEDS.items()
    ),
    *(pytest.param(line, seeds, marks=pytest.mark.soak) for line, seeds in MANY.items()),
]


def _named(value: object) -> str:
    return value if isinstance(value, str) else f"{len(value)}-logs"  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kafkas() -> Iterator[Kafkas]:
    with Kafkas() as running:
        yield running


@pytest.mark.parametrize(("line", "seeds"), CHUNKS, ids=_named)
def test_segments_go_when_they_were_said_to(
    kafkas: Kafkas, line: str, seeds: range, log_dir: Path
) -> None:
    tally = AuditTally()
    for seed in seeds:
        play_forecast(seed, kafkas.of(line), log_dir / "case", tally)
        shutil.rmtree(log_dir / "case")
    assert not tally.complaints, "\n".join(tally.complaints)
    assert tally.logs == len(seeds)
    assert tally.tiered
    assert tally.deleting > tally.moments / 5
    assert tally.waiting > tally.moments / 20
    if len(seeds) > 100:
        assert tally.rolled


@pytest.mark.parametrize("limit", ["local.retention.ms=10", "local.retention.bytes=0"])
def test_a_tiered_log_without_records_rolls_and_goes_in_the_next_pass(
    kafkas: Kafkas, limit: str, log_dir: Path
) -> None:
    """Nothing is uploaded, all records are deleted."""
    kafka = kafkas.of("4.3")
    records = [{"offset": n, "ts": START_MS, "key": None, "value": None} for n in range(3)]
    lines = [{"records": records}, {"log_start": 3}]
    written = kafka.write(log_dir / NAME, lines, now_ms=START_MS, config={})
    kafka.open_once(log_dir, NAME, now_ms=int(written["now"]), config={})
    config = {"remote.storage.enable": "true", "retention.ms": "-1"} | dict([limit.split("=")])
    call = RetentionCall(START_MS + 1000, config, 3, "4.3")
    forecast = forecast_of(log_dir, call, uploaded=-1, line="4.3")
    assert [segment.base_offset for segment in forecast.segments] == [0]
    assert [s.base_offset for s in forecast.segments if s.due_ms <= call.now_ms] == [0]
    assert "a pass rolls it" in forecast.segments[0].text
    for passes, deleted in ((1, []), (2, [0])):
        copy = log_dir.parent / f"{log_dir.name}-{passes}"
        copy_log_dir(log_dir, copy)
        answer = kafka.retain(
            copy, NAME, now_ms=call.now_ms, config=config, high_watermark=3, uploaded=-1,
            passes=passes,
        )  # fmt: skip
        shutil.rmtree(copy)
        assert (answer["deleted"], answer["remaining"][-1]) == (deleted, 3)


@pytest.mark.parametrize(("line", "seeds"), CHUNKS, ids=_named)
def test_compaction_begins_when_it_was_said_to(
    kafkas: Kafkas, line: str, seeds: range, log_dir: Path
) -> None:
    tally = AuditTally()
    for seed in seeds:
        play_verdicts(seed, kafkas.of(line), log_dir / "case", tally)
        shutil.rmtree(log_dir / "case")
    assert not tally.complaints, "\n".join(tally.complaints)
    assert tally.cleanable > tally.moments / 5
    if len(seeds) > 20:
        assert tally.later > 2
        assert {"active", "high", "transaction"} <= tally.uncleanable_reasons
        assert {STAYS, REPLACED, EXPIRED, ABORTED, MARKER} <= set(tally.outcomes)
