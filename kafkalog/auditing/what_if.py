"""What would be there if settings were others: bytes and records over time, per topic and in all.

A simulation goes by what the segments' headers said and reads no file. At a time T under changed
settings it keeps what Kafka's `deleteOldSegments`, called at T, would keep of the segments that are
there now (`planning.retention`), so it equals `retain --now T` with those settings.

Modelled: cleanup.policy, retention.ms, retention.bytes, of tiered topics local.retention, and the
time that passes. The log start, the high watermark and what is uploaded are those of now. In remote
storage it keeps what a leader's pass at T would leave (`planning.remote_retention`).

Not modelled in `bytes`: records that arrive from now on, hence no rolling of segments
(`segment.bytes`, `segment.ms`, `segment.jitter.ms` and `max.compaction.lag.ms` change which
segments will be made, not those that are there), and what compaction takes out. `expectedBytes`
estimates these (`expected_growth`), and each curve names what it assumes. The cluster's metadata
log, whose snapshots decide, keeps all it has. Where no checkpoint tells the high watermark, the
log's end is taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kafkalog.auditing.expected_growth import (
    GAIN,
    NO_GAIN,
    NO_TREND,
    PACE,
    TIERED,
    TREND,
    WINDOW_MS,
    Outlook,
    expected_bytes,
)
from kafkalog.auditing.scenarios import Scenario
from kafkalog.auditing.sound_partitions import SoundGroup, SoundPartition
from kafkalog.auditing.sound_sections import by_topic as sums_by_topic
from kafkalog.auditing.sound_sections import is_still, kept_by_time
from kafkalog.errors import InvalidConfigError
from kafkalog.log.inventory import CLUSTER_METADATA_TOPIC
from kafkalog.planning.loaded_segments import LoadedSegment
from kafkalog.planning.local_retention import is_tiered, local_config
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.remote_retention import (
    CopyStage,
    RemoteLog,
    cost_per_month,
    plan_remote_retention,
)
from kafkalog.planning.retention import RetentionLimits
from kafkalog.planning.retention_forecast import NEVER, due_times

_DAY_MS = 86_400_000


Simulated = Callable[[SoundPartition], "SimulatedLog"]


@dataclass(frozen=True, slots=True)
class SimulatedLog:
    """One partition's log as a simulation needs it.

    `segments` as a broker has them after loading, `records` of each; `uploaded_offset`: the last
    one in remote storage, -1 for nothing; `remote`: what is there, of one replica.
    """

    topic: str
    config: LogConfig
    segments: Sequence[LoadedSegment]
    records: Sequence[int]
    log_start_offset: int
    high_watermark: int
    uploaded_offset: int = -1
    outlook: Outlook = field(default_factory=Outlook)
    remote: RemoteLog | None = None

    @property
    def size_in_bytes(self) -> int:
        """Of all segments now."""
        return sum(segment.size_in_bytes for segment in self.segments)

    @property
    def largest_segment_bytes(self) -> int:
        """Of the largest segment."""
        return max((segment.size_in_bytes for segment in self.segments), default=0)


def kept_at(log: SimulatedLog, config: LogConfig, times_ms: Sequence[int]) -> list[tuple[int, int]]:
    """(bytes, records) of the log's segments that retention leaves at each of these times, in
    ascending order, under these settings.
    """
    due: list[tuple[int, str]] = []
    if log.topic != CLUSTER_METADATA_TOPIC:
        limits = RetentionLimits(
            local_config(config),
            times_ms[0],
            log.high_watermark,
            log.log_start_offset,
            log.uploaded_offset if is_tiered(config) else None,
        )
        due = due_times(log.segments, limits)
    size = log.size_in_bytes
    records, gone, kept = sum(log.records), 0, []
    # Retention takes segments from the front only, and `due` never goes back in time: one pass over
    # both, whatever number of times is asked for.
    for at_ms in times_ms:
        while gone < len(due) and due[gone][0] <= at_ms:
            size -= log.segments[gone].size_in_bytes
            records -= log.records[gone]
            gone += 1
        kept.append((size, records))
    return kept


def remote_bytes_at(log: SimulatedLog, config: LogConfig, at_ms: int) -> tuple[int, int]:
    """Bytes that are left in remote storage after a pass at this time under these settings: of
    segments as they were, and as they are billed."""
    if log.remote is None:
        return 0, 0
    kept = plan_remote_retention(log.remote, config, at_ms).kept
    own = [v.segment for v in kept if v.segment.stage is CopyStage.FINISHED]
    return sum(s.size_in_bytes for s in own), sum(s.billed_bytes for s in own)


def ceiling_bytes(logs: Iterable[tuple[LogConfig, int]]) -> int | None:
    """What `retention.bytes` lets a topic's partitions on these disks come to, as (settings,
    bytes of the largest segment): it counts for each partition, and a pass leaves at least so much
    and less than one segment more. None without a limit.

    Between two passes what arrives comes on top.
    """
    total = 0
    for config, largest_segment_bytes in logs:
        if config.retention_bytes < 0 or "delete" not in config.cleanup_policy:
            return None
        # A pass deletes a segment only if at least retention.bytes remain without it, so nearly one
        # segment more may stay (UnifiedLog.deleteRetentionSizeBreachedSegments).
        total += config.retention_bytes + max(config.segment_bytes, largest_segment_bytes)
    return total


def simulate(
    logs: Iterable[SimulatedLog],
    scenarios: Sequence[Scenario],
    times_ms: Sequence[int],
    growth: Mapping[str, int] | None = None,
    price: float | None = None,
    groups: Iterable[tuple[SoundGroup, Sequence[SoundPartition], Simulated]] = (),
) -> list[dict[str, object]]:
    """Rows `whatIf` of the audit's document: a curve a scenario, a point a topic and time, and one
    of topic "" for all together. Times are ascending, the first one is now. `growth`: bytes a day
    of each topic as a history of audits tells; `price`: of a GiB in remote storage a month. Each
    log is looked at once, under all scenarios. `groups`: more logs, by their columns, and what
    makes a SimulatedLog of one of them.
    """
    curves = [_Curve(scenario, times_ms) for scenario in scenarios]
    for log in logs:
        for curve in curves:
            curve.add(log)
    for group, own, make in groups:
        still = is_still(group, WINDOW_MS)
        for curve in curves:
            left = curve.add_still(group, [each for each in own if still[each.number]])
            for each in (*left, *(each for each in own if not still[each.number])):
                curve.add(make(each))
    return [curve.row(growth or {}, price) for curve in curves]


class _Curve:
    """What one scenario makes of the logs. `_points`: (bytes, records, expected bytes, bytes in
    remote storage, as they were and as billed) of each topic by time, in the end those of topic ""
    for all together; `_by_topic`: settings, and bytes of the largest segment, of each partition;
    `_only_compacted`: topics of which nothing is deleted; `_refused`: of topics whose settings a
    broker would not take.
    """

    def __init__(self, scenario: Scenario, times_ms: Sequence[int]) -> None:
        self._scenario, self._times_ms = scenario, times_ms
        self._points: dict[str, list[list[int]]] = {}
        self._by_topic: dict[str, list[tuple[LogConfig, int]]] = {}
        self._only_compacted: set[str] = set()
        self._refused: dict[str, str] = {}
        self._knows_gain = False

    def add(self, log: SimulatedLog) -> None:
        """One log under the scenario's settings; its own where a broker would not take these."""
        config, times_ms = log.config, self._times_ms
        try:
            config = self._scenario.config(config)
        except InvalidConfigError as error:
            self._refused.setdefault(log.topic, error.reason)
        local, largest = local_config(config), log.largest_segment_bytes
        bytes_now, outlook = log.size_in_bytes, log.outlook
        # Where nothing arrives and nothing is given back, what is kept is all there will be.
        is_still = not outlook.bytes_per_ms and not outlook.gain_bytes
        for point, at_ms, (size, records) in zip(
            self._points_of(log.topic), times_ms, kept_at(log, config, times_ms), strict=True
        ):
            expected = size
            if not is_still:
                expected = expected_bytes(
                    outlook,
                    local,
                    kept_bytes=size,
                    bytes_now=bytes_now,
                    largest_segment_bytes=largest,
                    elapsed_ms=at_ms - times_ms[0],
                    was_compacted=log.config.is_compacted,
                    now_ms=times_ms[0],
                )
            point[0] += size
            point[1] += records
            point[2] += expected
            if log.remote is not None:
                was, billed = remote_bytes_at(log, config, at_ms)
                point[3] += was
                point[4] += billed
        self._by_topic.setdefault(log.topic, []).append((config, largest))
        if config.cleanup_policy == ("compact",):
            self._only_compacted.add(log.topic)
        self._knows_gain = self._knows_gain or log.outlook.gain_bytes is not None

    def add_still(
        self, group: SoundGroup, partitions: Sequence[SoundPartition]
    ) -> list[SoundPartition]:
        """Logs to which nothing comes, by their columns; those that are to be looked at one by one:
        from which not time alone deletes under the scenario's settings.
        """
        retention = np.full(len(group.columns), NEVER, np.int64)
        settings: dict[int, LogConfig | None] = {}
        by_time = []
        for each in partitions:
            if id(each.config) not in settings:
                settings[id(each.config)] = self._by_time(each.config)
            if (config := settings[id(each.config)]) is not None:
                retention[each.number] = config.retention_ms
                by_time.append((each, config))
        kept, is_certain = kept_by_time(group, retention, self._times_ms)
        largest = np.maximum.reduceat(group.due.sizes, group.columns.firsts).tolist()
        certain = is_certain.tolist()
        own = [(each, config) for each, config in by_time if certain[each.number]]
        for each, config in own:
            self._by_topic.setdefault(each.topic, []).append((config, largest[each.number]))
        columns = [column for moment in kept for column in moment]
        for topic, sums in sums_by_topic(group, [each for each, _ in own], columns):
            for place, point in enumerate(self._points_of(topic)):
                size, records = sums[2 * place : 2 * place + 2]
                point[0] += size
                point[1] += records
                point[2] += size
        done = {each.number for each, _ in own}
        return [each for each in partitions if each.number not in done]

    def _by_time(self, config: LogConfig) -> LogConfig | None:
        """The scenario's settings where time alone deletes by them."""
        try:
            own = self._scenario.config(config)
        except InvalidConfigError:
            return None
        is_one = own.cleanup_policy == ("delete",) and own.retention_bytes < 0
        return own if is_one and not own.remote_storage_enable else None

    def _points_of(self, topic: str) -> list[list[int]]:
        if topic not in self._points:
            self._points[topic] = [[0] * 5 for _ in self._times_ms]
        return self._points[topic]

    def row(self, growth: Mapping[str, int], price: float | None) -> dict[str, object]:
        """To be called once."""
        if self._points:
            self._points[""] = [
                [sum(numbers) for numbers in zip(*points, strict=True)]
                for points in zip(*self._points.values(), strict=True)
            ]
        self._follow(growth)
        scenario, by_topic = self._scenario, self._by_topic
        return {
            "label": scenario.label,
            "settings": dict(scenario.settings),
            "notModelled": list(scenario.not_modelled),
            "assumptions": _assumptions(
                by_topic, self._only_compacted, growth, knows_gain=self._knows_gain
            ),
            "refused": [
                {"topic": topic, "text": text} for topic, text in sorted(self._refused.items())
            ],
            "ceilings": [
                {"topic": topic, "bytes": ceiling_bytes(configs)}
                for topic, configs in sorted(by_topic.items())
            ],
            "points": [
                {
                    "topic": topic, "atMs": at_ms, "bytes": size, "records": records,
                    "expectedBytes": expected, "remoteBytes": remote,
                    "remoteCostPerMonth": cost_per_month(billed, price),
                }
                for topic, points in sorted(self._points.items())
                for at_ms, (size, records, expected, remote, billed) in zip(
                    self._times_ms, points, strict=True
                )
            ],
        }  # fmt: skip

    def _follow(self, growth: Mapping[str, int]) -> None:
        """Of topics that are only compacted what arrives mostly replaces what is there: the pace of
        arrival says nothing of their size, the history of audits does. They shrink to nothing at
        most.
        """
        for topic in self._only_compacted & growth.keys():
            for at_ms, own, of_all in zip(
                self._times_ms, self._points[topic], self._points[""], strict=True
            ):
                trend = round(growth[topic] * (at_ms - self._times_ms[0]) / _DAY_MS)
                trend = max(trend, -own[2])
                own[2] += trend
                of_all[2] += trend


def _assumptions(
    by_topic: Mapping[str, Sequence[tuple[LogConfig, int]]],
    only_compacted: Collection[str],
    growth: Mapping[str, int],
    *,
    knows_gain: bool,
) -> list[str]:
    """What expectedBytes goes by, as far as it matters to these topics."""
    configs = [config for found in by_topic.values() for config, _ in found]
    found = [PACE]
    if only_compacted:
        found += [TREND] if any(topic in growth for topic in only_compacted) else [NO_TREND]
    if any(config.is_compacted for config in configs):
        found += [GAIN] if knows_gain else [NO_GAIN]
    if any(map(is_tiered, configs)):
        found.append(TIERED)
    return found
