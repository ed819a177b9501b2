"""The timeline: how many bytes retention takes and when, a bar a day, week or month.

Bars are stacked by the topics that lose most. What was due before today is one bar in front, what
goes later than the last bar one behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.report.figures import DAY_MS, Figure, bytes_figure, condition, time_text

# Colours there are; the others are one more.
MOST_SERIES = 6
_MOST_BARS = 48
_STEPS_DAYS = (1, 7, 30)


@dataclass(frozen=True, slots=True)
class BarPart:
    """A topic's share of a bar: where it begins and how high it is, in percent of the chart."""

    series: int
    figure: Figure
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of time and what goes in it."""

    label: str
    figure: Figure
    x: float
    width: float
    parts: tuple[BarPart, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The chart. `series`: topics by colour, the last one may be all others; `step_days`: how wide
    a bar is; `most`: what its height stands for.
    """

    series: tuple[str, ...]
    bars: tuple[Bar, ...]
    step_days: int
    most: Figure


@dataclass(frozen=True, slots=True)
class _Span:
    label: str
    start_ms: int | None
    end_ms: int | None

    @property
    def conditions(self) -> str:
        start = "" if self.start_ms is None else condition("dayMs", ">=", self.start_ms)
        end = "" if self.end_ms is None else condition("dayMs", "<", self.end_ms)
        return start + end

    def holds(self, day_ms: int) -> bool:
        return (self.start_ms is None or day_ms >= self.start_ms) and (
            self.end_ms is None or day_ms < self.end_ms
        )


def timeline(rows: Sequence[Mapping[str, Any]], now_ms: int) -> Timeline:
    """The bars of `rows` (topic, dayMs, bytes)."""
    per_topic: Counter[str] = Counter()
    for row in rows:
        per_topic[row["topic"]] += row["bytes"]
    ranked = [topic for topic, size in per_topic.most_common() if size > 0]
    named = ranked if len(ranked) <= MOST_SERIES + 1 else ranked[:MOST_SERIES]
    others = "".join(condition("topic", "!=", topic) for topic in named)
    places = {topic: place for place, topic in enumerate(named)}
    today = now_ms // DAY_MS * DAY_MS
    days = [row["dayMs"] for row in rows if row["bytes"] > 0]
    step = next(
        (s for s in _STEPS_DAYS if max(days, default=today) < today + _MOST_BARS * s * DAY_MS), 30
    )
    spans = list(_spans(today, step, days))
    sums: list[Counter[int]] = [Counter() for _ in spans]
    for row in rows:
        number = next((n for n, span in enumerate(spans) if span.holds(row["dayMs"])), None)
        if number is not None and row["bytes"] > 0:
            sums[number][places.get(row["topic"], len(named))] += row["bytes"]
    highest = max((sum(each.values()) for each in sums), default=0)
    width = 100 / max(len(spans), 1)
    bars = tuple(
        Bar(
            span.label,
            bytes_figure(sum(each.values()), f"timeline{span.conditions}.bytes"),
            round(number * width, 3),
            round(width, 3),
            tuple(_parts(each, named, others, span, highest)),
        )
        for number, (span, each) in enumerate(zip(spans, sums, strict=True))
    )
    series = (*named, "all other topics") if len(named) < len(ranked) else tuple(named)
    most = max((bar.figure for bar in bars), key=lambda f: f.value, default=bytes_figure(0, ""))
    return Timeline(series, bars, step, most)


def _spans(today: int, step_days: int, days: Sequence[int]) -> Iterator[_Span]:
    """From what is overdue to what is far off; empty ends are left out."""
    if not days:
        return
    if min(days) < today:
        yield _Span("overdue", None, today)
    step = step_days * DAY_MS
    last = max(days)
    for number in range(min(_MOST_BARS, max(0, last - today) // step + 1)):
        start = today + number * step
        yield _Span(time_text(start, "%Y-%m-%d"), start, start + step)
    far = today + _MOST_BARS * step
    if last >= far:
        yield _Span(f"from {time_text(far, '%Y-%m-%d')}", far, None)


def _parts(
    sums: Mapping[int, int], named: Sequence[str], others: str, span: _Span, highest: int
) -> Iterator[BarPart]:
    y = 100.0
    for place in sorted(sums):
        height = 100 * sums[place] / highest
        y -= height
        which = condition("topic", "=", named[place]) if place < len(named) else others
        at = f"timeline{span.conditions}{which}.bytes"
        yield BarPart(place, bytes_figure(sums[place], at), round(y, 3), round(height, 3))
