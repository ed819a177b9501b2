"""What is expected of a log later, against a broker that is played batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from kafkalog.auditing.expected_growth import Outlook, arrival_pace, expected_bytes
from kafkalog.auditing.scenarios import Scenario
from kafkalog.auditing.what_if import SimulatedLog, simulate
from kafkalog.contents.header_contents import TimeSlice
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.planning.loaded_segments import loaded_segments
from kafkalog.planning.log_config import LogConfig
from tests.planning.facts import partition

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = 1_700_000_000_000
BATCH_BYTES = 20_000


@dataclass
class Broker:
    """Segments as [base time, newest time, bytes]: a batch each five minutes."""

    config: LogConfig
    segments: list[list[int]] = field(default_factory=list)

    def run(self, start_ms: int, end_ms: int) -> int:
        for at_ms in range(start_ms, end_ms, 300_000):
            active = self.segments[-1] if self.segments else None
            if (
                active is None
                or active[2] + BATCH_BYTES > self.config.segment_bytes
                or at_ms - active[0] > self.config.segment_ms
            ):
                self.segments.append([at_ms, at_ms, 0])
            self.segments[-1][1] = at_ms
            self.segments[-1][2] += BATCH_BYTES
            self.delete(at_ms)
        return self.size

    def delete(self, at_ms: int) -> None:
        limit_ms, limit = self.config.retention_ms, self.config.retention_bytes
        while limit >= 0 and self.size - self.segments[0][2] >= limit:
            self.segments.pop(0)
        while limit_ms >= 0 and at_ms - self.segments[0][1] > limit_ms:
            self.segments.pop(0)

    @property
    def size(self) -> int:
        return sum(size for _, _, size in self.segments)


@pytest.mark.parametrize(
    "settings",
    [
        {"retention.ms": -1},
        {"retention.ms": 2 * DAY_MS, "segment.bytes": 1 << 20},
        {"retention.ms": DAY_MS, "segment.ms": 6 * HOUR_MS},
        {"retention.ms": -1, "retention.bytes": 30 << 20, "segment.bytes": 2 << 20},
        {"retention.ms": 3 * DAY_MS, "retention.bytes": 200 << 20, "segment.ms": DAY_MS},
    ],
    ids=lambda settings: ",".join(settings),
)
@pytest.mark.parametrize("changed", [{}, {"retention.ms": str(DAY_MS // 2)}], ids=["same", "less"])
def test_a_log_goes_on_as_the_broker_would(
    settings: dict[str, int], changed: dict[str, str]
) -> None:
    """Within a segment, or two where an old one is cut short by the change."""
    given = {key: str(value) for key, value in settings.items()}
    broker = Broker(LogConfig.from_properties(given))
    broker.run(NOW_MS - 5 * DAY_MS, NOW_MS)
    now = broker.segments[-1][1]
    slices = [TimeSlice(first, last, size, 0, 0) for first, last, size in broker.segments]
    pace = arrival_pace(slices, now)
    assert pace == pytest.approx(BATCH_BYTES / 300_000, rel=0.02)
    before = [(newest, size) for _, newest, size in broker.segments]
    config = LogConfig.from_properties({**given, **changed})
    bytes_now, largest = broker.size, max(size for _, size in before)
    broker.config = config
    for hours in (1, 12, 36, 24 * 8, 24 * 30):
        elapsed_ms = hours * HOUR_MS
        kept = sum(
            size for newest, size in before
            if config.retention_ms < 0 or now + elapsed_ms - newest <= config.retention_ms
        )  # fmt: skip
        found = expected_bytes(
            Outlook(pace), config, kept_bytes=kept, bytes_now=bytes_now,
            largest_segment_bytes=largest, elapsed_ms=elapsed_ms, was_compacted=False, now_ms=now,
        )  # fmt: skip
        played = Broker(config, [list(each) for each in broker.segments])
        size = played.run(now + 300_000, now + elapsed_ms)
        segment = max(s for _, _, s in played.segments)
        assert found == pytest.approx(size, abs=2 * max(segment, largest)), f"{hours} h"
        assert found > 0


def test_the_pace_of_a_week() -> None:
    day = [
        TimeSlice(NOW_MS - n * DAY_MS, NOW_MS - (n - 1) * DAY_MS, 700, 0, 1) for n in range(1, 30)
    ]
    assert arrival_pace(day, NOW_MS) * DAY_MS == pytest.approx(700)
    half = [TimeSlice(NOW_MS - 14 * DAY_MS, NOW_MS, 1400, 0, 1)]
    assert arrival_pace(half, NOW_MS) * DAY_MS == pytest.approx(100)
    future = [TimeSlice(NOW_MS, NOW_MS + 1, 10**9, 0, 1), TimeSlice(-1, -1, 10**9, 0, 1)]
    assert arrival_pace(future, NOW_MS) == 0
    assert arrival_pace([TimeSlice(NOW_MS, NOW_MS, 3600, 0, 1)], NOW_MS) * HOUR_MS == 3600


def compacted(**outlook: object) -> SimulatedLog:
    config = LogConfig.from_properties({"cleanup.policy": "compact"})
    segments = loaded_segments(partition(), PartitionFacts(()))
    return SimulatedLog("orders", config, segments, [1] * 5, 0, 50, -1, Outlook(**outlook))  # type: ignore[arg-type]


def test_compaction_gives_back_when_it_is_due_and_the_trend_goes_on() -> None:
    log = compacted(gain_bytes=200, cleanable_at_ms=NOW_MS + DAY_MS, bytes_per_ms=9.0)
    times = [NOW_MS, NOW_MS + DAY_MS - 1, NOW_MS + DAY_MS, NOW_MS + 10 * DAY_MS]
    (curve,) = simulate([log], [Scenario()], times, {"orders": 7})
    points = [point for point in curve["points"] if point["topic"] == "orders"]  # type: ignore[attr-defined]
    assert [point["bytes"] for point in points] == [500] * 4
    assert [point["expectedBytes"] for point in points] == [500, 507, 307, 370]
    assert len(curve["assumptions"]) == 3  # type: ignore[arg-type]
    (curve,) = simulate([compacted()], [Scenario()], times)
    assert {point["expectedBytes"] for point in curve["points"]} == {500}  # type: ignore[attr-defined]
    assert "do not grow" in curve["assumptions"][1]  # type: ignore[index]


def test_a_log_that_is_never_cleaned_gives_nothing_back() -> None:
    log = compacted(gain_bytes=100, cleanable_at_ms=-1)
    (curve,) = simulate([log], [Scenario()], [NOW_MS, NOW_MS + DAY_MS])
    assert [point["expectedBytes"] for point in curve["points"]] == [500] * 4  # type: ignore[attr-defined]
