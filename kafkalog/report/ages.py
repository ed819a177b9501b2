"""Age histograms: bytes by the age of their records, for all topics and for the largest ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.report.figures import Figure, bytes_figure, condition, duration_text

# Small charts beside the one of all topics.
MOST_TOPICS = 12


@dataclass(frozen=True, slots=True)
class AgeBar:
    """A bucket: its closed and its active bytes, heights in percent of the chart."""

    label: str
    closed: Figure
    active: Figure
    x: float
    width: float
    closed_height: float
    active_height: float
    is_beyond: bool


@dataclass(frozen=True, slots=True)
class Histogram:
    """A topic's ages, or with no name those of all. `retention_ms`: None if nothing is promised."""

    topic: str | None
    bars: tuple[AgeBar, ...]
    most: Figure
    retention_ms: int | None


def histograms(
    rows: Sequence[Mapping[str, Any]], topics: Sequence[Mapping[str, Any]]
) -> tuple[Histogram, ...]:
    """All topics together, then those with the most bytes. A bar is beyond the promise where all
    of its ages are above `retention.ms` of a topic that deletes.
    """
    buckets = sorted({(row["fromMs"], row["toMs"]) for row in rows}, key=lambda b: b[0])
    if not buckets:
        return ()
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["topic"]] += row["closedBytes"] + row["activeBytes"]
    promised = {
        topic["topic"]: topic["retentionMs"]
        for topic in topics
        if "delete" in topic["cleanupPolicy"] and topic["retentionMs"] >= 0
    }
    largest = [topic for topic, size in sizes.most_common(MOST_TOPICS) if size > 0]
    by_topic: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_topic[row["topic"]].append(row)
    found = [_histogram(None, rows, buckets, None)]
    if len(by_topic) > 1:
        found += [_histogram(t, by_topic[t], buckets, promised.get(t)) for t in largest]
    return tuple(found)


def bucket_label(from_ms: int, to_ms: int | None) -> str:
    """`1 d – 7 d`, `in the future`, `without a time`."""
    if from_ms < 0:
        return "in the future" if to_ms == 0 else "without a time"
    if to_ms is None or to_ms < 0 or to_ms >= 2**62:
        return f"over {duration_text(from_ms)}"
    return f"{duration_text(from_ms) if from_ms else '0'} – {duration_text(to_ms)}"


def _histogram(
    topic: str | None,
    rows: Sequence[Mapping[str, Any]],
    buckets: Sequence[tuple[int, int | None]],
    retention_ms: int | None,
) -> Histogram:
    closed: Counter[int] = Counter()
    active: Counter[int] = Counter()
    for row in rows:
        closed[row["fromMs"]] += row["closedBytes"]
        active[row["fromMs"]] += row["activeBytes"]
    highest = max((closed[start] + active[start] for start, _ in buckets), default=0)
    which = "" if topic is None else condition("topic", "=", topic)
    width = 100 / len(buckets)
    bars = []
    for number, (start, end) in enumerate(buckets):
        at = f"ageHistogram{which}{condition('fromMs', '=', start)}"
        bars.append(
            AgeBar(
                bucket_label(start, end),
                bytes_figure(closed[start], f"{at}.closedBytes"),
                bytes_figure(active[start], f"{at}.activeBytes"),
                round(number * width, 3),
                round(width, 3),
                round(100 * closed[start] / highest, 3) if highest else 0.0,
                round(100 * active[start] / highest, 3) if highest else 0.0,
                is_beyond=retention_ms is not None and start >= retention_ms,
            )
        )
    tallest = max((start for start, _ in buckets), key=lambda start: closed[start] + active[start])
    at = f"ageHistogram{which}{condition('fromMs', '=', tallest)}.closedBytes+activeBytes"
    return Histogram(topic, tuple(bars), bytes_figure(highest, at), retention_ms)
