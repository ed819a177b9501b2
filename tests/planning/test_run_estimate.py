"""How long a plan says that it will take, and what it goes by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkalog.format.constants import CompressionType
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.compaction_work import Workers
from kafkalog.planning.run_estimate import (
    EARLIER_RUNS,
    REFERENCE_MACHINE,
    RunEstimate,
    estimate_run,
)
from tests.planning.facts import facts_of, partition, plan, segment

ONE = Workers(1, 1 << 27, 1 << 26, 1 << 28)
GIB = 1 << 30


def large_plan(*, cleaner: int | None = None, codec: int = 0) -> CompactionPlan:
    """Three segments of a GiB, 8 M records each."""
    bases = (0, 8_000_000, 16_000_000)
    segments = [segment(base, GIB) for base in bases]
    facts = [
        replace(
            facts_of(each),
            records_count=8_000_000,
            last_offset=each.base_offset + 7_999_999,
            codecs=(codec,),
        )
        for each in segments
    ]
    inventory = partition([*segments, segment(24_000_000, 0)], end=24_000_000, cleaner=cleaner)
    made = plan(inventory, facts=facts)
    assert made.status == "clean", made.reason
    return made


def estimated(
    *plans: CompactionPlan,
    workers: Workers = ONE,
    earlier: list[tuple[float, float]] | None = None,
    is_compared: bool = False,
    bytes_per_second: float | None = None,
) -> RunEstimate:
    found = estimate_run(
        plans,
        workers,
        earlier or [],
        is_compared=is_compared,
        bytes_per_second=bytes_per_second,
    )
    assert found is not None
    return found


def test_bytes_are_bounds_and_the_constants_are_the_reference_machines() -> None:
    found = estimated(large_plan())
    assert (found.bytes_read, found.bytes_written) == (9 * GIB, 3 * GIB)
    assert (found.basis, found.runs, found.taken_seconds) == (REFERENCE_MACHINE, 0, None)
    assert found.seconds == found.reference_seconds > 0
    assert "reference machine" in found.explain()


def test_time_goes_by_what_earlier_runs_took_short_ones_do_not_count() -> None:
    by_constants = estimated(large_plan())
    found = estimated(large_plan(), earlier=[(0.5, 50.0), (10.0, 20.0), (30.0, 40.0)])
    assert (found.basis, found.runs) == (EARLIER_RUNS, 2)
    assert found.seconds == pytest.approx(1.5 * by_constants.seconds, rel=1e-3)
    assert found.cpu_seconds == pytest.approx(1.5 * by_constants.cpu_seconds, rel=1e-3)
    assert found.reference_seconds == by_constants.reference_seconds
    assert "2 earlier runs" in found.explain()
    # Five at most, the newest first.
    many = estimated(large_plan(), earlier=[(10.0, 20.0)] * 5 + [(10.0, 1000.0)])
    assert (many.runs, many.seconds) == (5, pytest.approx(2 * by_constants.seconds, rel=1e-3))


def test_nothing_to_do_has_no_estimate() -> None:
    assert estimate_run([plan(partition(cleaner=40))], ONE) is None
    assert estimate_run([], ONE) is None


def test_what_is_clean_already_is_looked_up_once_a_run() -> None:
    """So many clean records leave so many entries, and of dirty ones each counts as a key."""
    dirty, clean = estimated(large_plan()), estimated(large_plan(cleaner=16_000_000))
    assert dirty.bytes_spilled > 24 * 20_000_000
    assert clean.bytes_spilled >= 24 * 16_000_000


def test_codecs_comparing_and_a_limit_of_bytes_take_longer() -> None:
    plain = estimated(large_plan())
    assert estimated(large_plan(codec=CompressionType.ZSTD)).seconds > plain.seconds
    compared = estimated(large_plan(), is_compared=True)
    assert compared.seconds > plain.seconds
    assert compared.bytes_read == 2 * plain.bytes_read
    paced = estimated(large_plan(), bytes_per_second=float(GIB // 100))
    assert paced.seconds == pytest.approx(1200, rel=0.01)


def test_partitions_are_shared_by_workers_no_further_than_one_each() -> None:
    several = [large_plan()] * 4
    one, four = estimated(*several), estimated(*several, workers=replace(ONE, count=4))
    many = estimated(*several, workers=replace(ONE, count=40))
    assert one.seconds > 3 * four.seconds
    assert many.seconds == four.seconds
    assert one.tasks == 4
    on_spark = estimated(*several, workers=replace(ONE, on_spark=True))
    assert on_spark.seconds > one.seconds


def test_an_estimate_is_the_same_after_json() -> None:
    found = estimated(large_plan()).taken(12.3456)
    assert RunEstimate.from_json(found.to_json()) == found
    assert found.document()["takenSeconds"] == 12.346
