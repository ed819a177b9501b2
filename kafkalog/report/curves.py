"""What-if curves: bytes kept over time as configured and with each other setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.report.figures import Figure, bytes_figure, condition, count_figure, time_figure

MOST_TOPICS = 8
# The topic of the points that are all topics' sum.
TOTAL = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A time and what is kept then; x and y in percent of the chart, y downwards."""

    at: Figure
    bytes: Figure
    records: Figure
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One setting's points in order of time."""

    series: int
    label: str
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        """As an SVG path."""
        return " ".join(
            f"{'L' if number else 'M'}{point.x:g} {point.y:g}"
            for number, point in enumerate(self.points)
        )


@dataclass(frozen=True, slots=True)
class CurveChart:
    """All settings for one topic, or for TOTAL."""

    topic: str
    curves: tuple[Curve, ...]
    most: Figure


def curve_charts(what_if: Sequence[Mapping[str, Any]]) -> tuple[CurveChart, ...]:
    """The total, then the topics with the most bytes."""
    if not what_if:
        return ()
    sizes: Counter[str] = Counter()
    for entry in what_if:
        for point in entry["points"]:
            sizes[point["topic"]] = max(sizes[point["topic"]], point["bytes"])
    sizes.pop(TOTAL, None)
    charts = [_chart(what_if, TOTAL)]
    if len(sizes) > 1:
        charts += [_chart(what_if, topic) for topic, _ in sizes.most_common(MOST_TOPICS)]
    return tuple(charts)


def setting_label(entry: Mapping[str, Any]) -> str:
    """The words of a curve."""
    return str(entry["label"]) or "as configured"


def _chart(what_if: Sequence[Mapping[str, Any]], topic: str) -> CurveChart:
    kept = [_kept(entry, topic) for entry in what_if]
    times = [at for each in kept for at in each]
    first, last = min(times, default=0), max(times, default=0)
    most = max((size for each in kept for size, _ in each.values()), default=0)
    which = condition("topic", "=", topic)
    curves = []
    for number, (entry, each) in enumerate(zip(what_if, kept, strict=True)):
        points = []
        for at_ms in sorted(each):
            size, records = each[at_ms]
            at = f"whatIf.{number}.points{which}{condition('atMs', '=', at_ms)}"
            points.append(
                Point(
                    time_figure(at_ms, ""),
                    bytes_figure(size, f"{at}.bytes"),
                    count_figure(records, f"{at}.records"),
                    round(100 * (at_ms - first) / (last - first), 3) if last > first else 0.0,
                    round(100 - 100 * size / most, 3) if most else 100.0,
                )
            )
        curves.append(Curve(number, setting_label(entry), tuple(points)))
    sizes = [point.bytes for curve in curves for point in curve.points]
    highest = max(sizes, key=lambda figure: figure.value, default=bytes_figure(None, ""))
    return CurveChart(topic, tuple(curves), highest)


def _kept(entry: Mapping[str, Any], topic: str) -> dict[int, tuple[int, int]]:
    """By time: bytes and records."""
    return {
        point["atMs"]: (point["bytes"], point["records"])
        for point in entry["points"]
        if point["topic"] == topic
    }
