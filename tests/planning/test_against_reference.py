"""The planner against a slow reading of the same rules, on random logs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.log.inventory import SegmentInfo
from kafkalog.planning.compaction import CLEAN
from tests.planning.facts import NOW_MS, facts_of, partition, plan, segment

MAX_INT32 = 2**31 - 1


@dataclass
class Case:
    """One partition and the settings of the round."""

    segments: list[SegmentInfo]
    end: int
    start: int
    cleaner: int | None
    high_watermark: int
    min_lag_ms: int
    max_lag_ms: int
    ratio: float
    segment_bytes: int
    index_bytes: int
    first_batch_ages: list[int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    gaps = draw(st.lists(st.sampled_from([1, 3, 10, MAX_INT32 - 5]), min_size=1, max_size=8))
    bases = [sum(gaps[:number]) for number in range(len(gaps) + 1)]
    segments = [
        segment(
            base,
            draw(st.sampled_from([0, 0, 1, 50, 100, 1000])),
            offset_index_bytes=8 * draw(st.integers(0, 4)),
            time_index_bytes=12 * draw(st.integers(0, 3)),
            largest_timestamp_ms=draw(st.sampled_from([-1, NOW_MS - 11, NOW_MS - 10, NOW_MS - 9])),
            modification_time_ms=draw(st.sampled_from([NOW_MS - 100, NOW_MS])),
        )
        for base in bases
    ]
    end = bases[-1] + draw(st.integers(0, 10))
    near = st.sampled_from([*bases, *(base + 1 for base in bases), end, end + 1])
    start = min(draw(near), end)
    return Case(
        segments,
        end,
        start,
        cleaner=draw(st.none() | near),
        high_watermark=draw(near),
        min_lag_ms=draw(st.sampled_from([0, 10])),
        max_lag_ms=draw(st.sampled_from([10, 2**62])),
        ratio=draw(st.sampled_from([0, 0.25, 0.5, 1])),
        segment_bytes=draw(st.sampled_from([1, 100, 150, 2**31 - 1])),
        index_bytes=draw(st.sampled_from([4, 24, 48, 2**31 - 1])),
        first_batch_ages=[draw(st.sampled_from([9, 10, 11, NOW_MS])) for _ in segments],
    )


def _values(segments: list[SegmentInfo], a: int, b: int) -> list[SegmentInfo]:
    if a >= b:
        return []
    below = [s for s in segments if s.base_offset <= a]
    first = below[-1] if below else segments[0]
    return [s for s in segments[segments.index(first) :] if s.base_offset < b]


def _reference(case: Case) -> dict[str, object]:
    segments, active = case.segments, case.segments[-1]
    first_dirty = case.cleaner
    if first_dirty is None or not case.start <= first_dirty <= case.end:
        first_dirty = case.start
    bounds = [min(max(case.high_watermark, case.start), case.end), active.base_offset]
    for s in _values(segments, first_dirty, active.base_offset):
        age = s.largest_timestamp_ms if s.largest_timestamp_ms >= 0 else s.modification_time_ms
        if case.min_lag_ms > 0 and age > NOW_MS - case.min_lag_ms:
            bounds.append(s.base_offset)
            break
    first_uncleanable = max(first_dirty, min(bounds))
    past = _values(segments, first_uncleanable, active.base_offset)
    end_offset = past[0].base_offset if past else active.base_offset
    cleanable = sum(
        s.size_in_bytes for s in _values(segments, min(first_dirty, end_offset), end_offset)
    )
    clean = sum(s.size_in_bytes for s in segments if s.base_offset < first_dirty)
    ratio = cleanable / (clean + cleanable) if clean + cleanable else 0.0
    firsts = [
        NOW_MS - age
        for s, age in zip(segments, case.first_batch_ages, strict=True)
        if s in _values(segments, first_dirty, active.base_offset) and s.size_in_bytes
    ]
    must = any(0 < first < NOW_MS - case.max_lag_ms for first in firsts)
    chosen = cleanable > 0 and (must or ratio > case.ratio)
    return {
        "first_dirty_offset": first_dirty,
        "first_uncleanable_offset": first_uncleanable,
        "end_offset": end_offset,
        "cleanable_bytes": cleanable,
        "clean_bytes": clean,
        "cleanable_ratio": ratio,
        "must_compact": must,
        "status": CLEAN if chosen else "skip",
        "groups": _reference_groups(case, _values(segments, 0, end_offset), end_offset)
        if chosen
        else [],
    }


def _reference_groups(case: Case, sources: list[SegmentInfo], end: int) -> list[list[int]]:
    groups: list[list[int]] = []
    while sources:
        group = [sources.pop(0)]
        while sources:
            last = (sources[1].base_offset if len(sources) > 1 else end) - 1
            tried = [*group, sources[0]]
            if (
                sum(s.size_in_bytes for s in tried) > case.segment_bytes
                or sum(s.offset_index_bytes for s in tried) > case.index_bytes
                or sum(s.time_index_bytes for s in tried) > case.index_bytes
                or (sources[0].size_in_bytes and last - group[0].base_offset > MAX_INT32)
            ):
                break
            group.append(sources.pop(0))
        groups.append([s.base_offset for s in group])
    return groups


@settings(max_examples=400)
@given(case=cases())
def test_plan_is_what_the_spec_says(case: Case) -> None:
    inventory = partition(
        case.segments,
        end=case.end,
        start=case.start,
        cleaner=case.cleaner,
        high_watermark=case.high_watermark,
    )
    facts = [
        facts_of(s, first_batch_max_timestamp_ms=NOW_MS - age if s.size_in_bytes else None)
        for s, age in zip(inventory.segments, case.first_batch_ages, strict=True)
    ]
    made = plan(
        inventory,
        f"min.compaction.lag.ms={case.min_lag_ms}",
        f"max.compaction.lag.ms={case.max_lag_ms}",
        f"min.cleanable.dirty.ratio={case.ratio}",
        f"internal.segment.bytes={case.segment_bytes}",
        f"segment.index.bytes={case.index_bytes}",
        facts=facts,
    )
    expected = _reference(case)
    groups = [[source.base_offset for source in group.sources] for group in made.groups]
    assert {name: getattr(made, name) for name in expected if name != "groups"} | {
        "groups": groups
    } == expected
