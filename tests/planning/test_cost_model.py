"""What the cost model says of work, by properties and by runs that were measured."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.planning.compaction_work import CompactionWork, Workers, distinct_keys
from kafkalog.planning.cost_model import Cost, Rates, audit_cost, compaction_cost
from kafkalog.planning.reference_rates import REFERENCE
from kafkalog.resources.memory import usual_budget

MIB, GIB = 1 << 20, 1 << 30
BUDGET = usual_budget(512 * MIB, 2**31 - 1, on_spark=False)
ONE = Workers(1, BUDGET.pool_bytes, BUDGET.finished_bytes, BUDGET.window_records)
WORK = CompactionWork(GIB, 8_000_000, 8_000_000, 2_000_000, GIB // 4, 8, 8)
LARGER = st.sampled_from(["source_bytes", "keys", "kept_bytes"])


def times(rates: Rates, factor: float) -> Rates:
    """All seconds so many times."""
    values = [
        tuple(v * factor for v in value) if isinstance(value, tuple) else value * factor
        for value in astuple(rates)
    ]
    return replace(
        Rates(*values), base_bytes=rates.base_bytes, audit_base_bytes=rates.audit_base_bytes
    )


@st.composite
def works(draw: st.DrawFn) -> CompactionWork:
    size = draw(st.integers(MIB, 1 << 45))
    records = draw(st.integers(1, size // 8))
    return CompactionWork(
        source_bytes=size,
        records=records,
        dirty_records=draw(st.integers(0, records)),
        keys=draw(st.integers(1, records)),
        kept_bytes=draw(st.integers(0, size)),
        segments=draw(st.integers(1, 1000)),
        groups=draw(st.integers(1, 1000)),
        codec=draw(st.integers(0, 4)),
        across_tasks=draw(st.booleans()),
        is_compared=draw(st.booleans()),
    )


@settings(max_examples=30)
@given(works(), LARGER, st.integers(2, 9))
def test_more_of_anything_never_costs_less(work: CompactionWork, name: str, times: int) -> None:
    less = compaction_cost([work], ONE, REFERENCE)
    more = compaction_cost([replace(work, **{name: getattr(work, name) * times})], ONE, REFERENCE)
    for one, other in zip(astuple(less), astuple(more), strict=True):
        assert other >= one - 1e-9 * abs(one) - 1


@settings(max_examples=30)
@given(works(), st.integers(2, 9))
def test_more_records_in_as_many_bytes_take_no_less_memory_and_disk(
    work: CompactionWork, times: int
) -> None:
    """What stays of them lies closer to the end, so less of the log may be read again."""
    less = compaction_cost([work], ONE, REFERENCE)
    more = compaction_cost([replace(work, records=work.records * times)], ONE, REFERENCE)
    for name in ("memory_bytes", "bytes_spilled", "bytes_shuffled", "bytes_written"):
        assert getattr(more, name) >= getattr(less, name)


@settings(max_examples=30)
@given(works(), st.integers(1, 1 << 40))
def test_room_for_what_is_ready_saves_reading_up_to_once(work: CompactionWork, room: int) -> None:
    none = compaction_cost([work], replace(ONE, finished_bytes=0), REFERENCE)
    some = compaction_cost([work], replace(ONE, finished_bytes=room), REFERENCE)
    assert 0 <= none.bytes_read - some.bytes_read <= work.source_bytes
    assert some.cpu_seconds <= none.cpu_seconds


@settings(max_examples=30)
@given(st.lists(works(), min_size=1, max_size=5), st.integers(1, 500), st.booleans())
def test_more_workers_are_never_slower_and_do_the_same_work(
    several: list[CompactionWork], count: int, on_spark: bool
) -> None:
    few = compaction_cost(several, replace(ONE, count=count, on_spark=on_spark), REFERENCE)
    many = compaction_cost(several, replace(ONE, count=2 * count, on_spark=on_spark), REFERENCE)
    assert many.seconds <= few.seconds * (1 + 1e-9)
    assert replace(many, seconds=0.0) == replace(few, seconds=0.0)
    # Workers share what there is to do, and no more.
    assert few.seconds * count >= few.cpu_seconds * (1 - 1e-9)


@settings(max_examples=30)
@given(works(), st.integers(1, 20))
def test_partitions_add_up_and_memory_is_that_of_the_largest(
    work: CompactionWork, count: int
) -> None:
    one = compaction_cost([work], ONE, replace(REFERENCE, start=0.0))
    all_ = compaction_cost([work] * count, ONE, replace(REFERENCE, start=0.0))
    assert all_.cpu_seconds == pytest.approx(count * one.cpu_seconds)
    assert all_.memory_bytes == one.memory_bytes
    for name in ("bytes_read", "bytes_written", "bytes_spilled", "bytes_shuffled", "tasks"):
        assert getattr(all_, name) == count * getattr(one, name)


@settings(max_examples=30)
@given(works(), st.floats(0.1, 50))
def test_a_slower_machine_takes_longer_and_moves_the_same_bytes(
    work: CompactionWork, factor: float
) -> None:
    by = compaction_cost([work], ONE, REFERENCE)
    slower = compaction_cost([work], ONE, times(REFERENCE, factor))
    assert slower.seconds == pytest.approx(factor * by.seconds)
    assert slower.cpu_seconds == pytest.approx(factor * by.cpu_seconds)
    assert replace(slower, seconds=0.0, cpu_seconds=0.0) == replace(
        by, seconds=0.0, cpu_seconds=0.0
    )


@settings(max_examples=30)
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_distinct_keys_are_no_more_than_there_are(records: int, keys: int) -> None:
    found = distinct_keys(records, keys)
    assert 0 < found <= min(records, keys) * (1 + 1e-9)


def test_keys_that_fit_into_memory_are_not_spilled_and_a_dirty_key_once_a_run() -> None:
    fits = replace(WORK, records=6_000_000, dirty_records=6_000_000)
    assert compaction_cost([fits], ONE, REFERENCE).bytes_spilled == 0
    # However often they come, up to the records of a run: their flags alone then.
    often = replace(WORK, records=12_000_000, dirty_records=12_000_000, keys=1000)
    assert compaction_cost([often], ONE, REFERENCE).bytes_spilled == 12_000_000
    twice = replace(often, records=24_000_000, dirty_records=24_000_000)
    spilled = compaction_cost([twice], ONE, REFERENCE).bytes_spilled
    assert spilled == pytest.approx(24_000_000 + 2 * 24 * 1000, rel=1e-6)
    # What is clean already is looked up, whatever its key.
    clean = replace(often, dirty_records=0)
    assert compaction_cost([clean], ONE, REFERENCE).bytes_spilled == 25 * 12_000_000


# More keys than records can have twice.
DISTINCT = 2**62
# Runs of `bench_cost_model`: bytes, records, keys and kept bytes of the log; MiB of memory at the
# most, and bytes read and written beyond those of a run over next to nothing.
MEASURED = {
    "half a GiB": ((503_907_724, 4_000_000, 1_000_000, 125_057_875), 205, 673_329_094, 124_996_379),
    "distinct": (
        (503_907_724, 4_000_000, DISTINCT, 503_907_724), 311, 1_440_568_028, 503_846_210,
    ),
    "no values": ((287_942_673, 12_000_000, 3_000_000, 71_538_372), 244, 379_200_307, 88_458_804),
    "1 KB, distinct": (
        (617_287_500, 600_000, DISTINCT, 617_287_500), 191, 1_750_386_873, 617_226_886,
    ),
    "1 GiB": ((1_065_092_052, 8_454_660, 2_113_665, 264_347_021), 243, 1_618_734_353, 281_082_204),
    "4 GiB": (
        (4_260_368_222, 33_818_640, 8_454_660, 1_057_463_782), 307, 10_018_049_003, 1_455_361_845,
    ),
    "no values, distinct": (
        (575_885_349, 24_000_000, DISTINCT, 575_885_349), 350, 2_340_894_378, 1_175_508_559,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MEASURED)
def test_bytes_and_memory_are_those_of_measured_runs(name: str) -> None:
    (source, records, keys, kept), peak_mib, read, written = MEASURED[name]
    cost = compaction_cost(
        [CompactionWork(source, records, records, keys, kept, 1, 1)], ONE, REFERENCE
    )
    assert cost.memory_bytes / MIB == pytest.approx(peak_mib, rel=0.15)
    assert cost.bytes_read + cost.bytes_spilled == pytest.approx(read, rel=0.05)
    assert cost.bytes_written + cost.bytes_spilled == pytest.approx(written, rel=0.12)


def cold_seconds(work: CompactionWork, page_cache_bytes: float, workers: int = 1) -> float:
    """What disks add to the CPU of a run."""
    who = replace(ONE, count=workers, page_cache_bytes=page_cache_bytes)
    seconds = [
        compaction_cost([work], who, replace(REFERENCE, cold_byte=rate)).cpu_seconds
        for rate in (0.0, 1.0)
    ]
    return seconds[1] - seconds[0]


def test_what_the_page_cache_cannot_hold_is_read_from_a_disk_each_time() -> None:
    # 16 GiB of which 4 stay; all but the last keys are read again, and 3 GiB of entries.
    work = replace(
        WORK, source_bytes=16 * GIB, records=135_000_000, dirty_records=135_000_000,
        keys=33_800_000, kept_bytes=4 * GIB,
    )  # fmt: skip
    assert cold_seconds(work, 32 * GIB) == 0
    # What was written last is still in memory once, then new files take its place: 22.4 GiB came
    # from the disk where there was room for 20.
    assert cold_seconds(work, 18.8 * GIB) == pytest.approx(22.4 * GIB, rel=0.1)
    assert cold_seconds(work, 10 * GIB) == pytest.approx((22.4 + 16) * GIB, rel=0.1)
    assert cold_seconds(replace(work, is_cold=True), 32 * GIB) == 16 * GIB
    # The caches of two hosts hold it once.
    assert cold_seconds(work, 10 * GIB, 2) == cold_seconds(work, 18.8 * GIB)


def test_an_audit_costs_by_headers() -> None:
    cost = audit_cost(500, 5000, 80_000, ONE, REFERENCE)
    assert cost.bytes_read >= 80_000 * 4096
    more = audit_cost(1000, 10_000, 160_000, ONE, REFERENCE)
    assert more.bytes_read == 2 * cost.bytes_read
    assert more.memory_bytes > cost.memory_bytes
    shared = audit_cost(500, 5000, 80_000, replace(ONE, count=4), REFERENCE)
    assert shared.cpu_seconds == cost.cpu_seconds
    assert shared.seconds - REFERENCE.audit_start == pytest.approx(
        (cost.seconds - REFERENCE.audit_start) / 4
    )
    assert isinstance(cost, Cost)
