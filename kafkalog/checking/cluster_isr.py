"""Partitions without a leader, under min.insync.replicas, or short of a replica, and since when.

min.insync.replicas in force is the topic's own, else the dynamic default of all brokers, else the
static one (server.properties), else 1, and never more than there are replicas. It may change while
a partition stays as it is, so an episode is cut where either changes.

Source: Kafka Partition.effectiveMinIsr.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kafkalog.checking.cluster_view import MIN_ISR, ClusterView, by_partition
from kafkalog.checking.finding import Finding
from kafkalog.cluster.moments import Row


@dataclass(frozen=True, slots=True)
class Episode:
    """A time in which a partition had fewer replicas in sync than it needs; until None: still."""

    topic: str
    topic_id: str
    partition: int
    min_isr: int
    smallest_isr: int
    from_offset: int
    from_ms: int | None
    until_offset: int | None = None
    until_ms: int | None = None

    def to_row(self, end_ms: int | None) -> dict[str, Any]:
        """For the document, in camelCase, with its length up to `end_ms` where it still goes on."""
        names = {"min_isr": "minInsyncReplicas", "smallest_isr": "smallestIsr"}
        row = {
            names.get(key, "".join(w.title() if n else w for n, w in enumerate(key.split("_")))): v
            for key, v in asdict(self).items()
        }
        until = end_ms if self.until_offset is None else self.until_ms
        row["durationMs"] = None if until is None or self.from_ms is None else until - self.from_ms
        return row


def check_isr(view: ClusterView) -> Iterator[Finding]:
    """What is so where the history ends."""
    # Only what is so at the end is a finding; what was is in the document.
    current = {(e.topic_id, e.partition): e for e in episodes(view) if e.until_offset is None}
    changes = dict(by_partition(view.history.rows["partition_changes"]))
    end_ms = view.history.end_ms
    for state in view.states:
        rows = changes[state["topicId"], state["partition"]]
        for row in rows:
            if row["isUnclean"]:
                yield view.finding(
                    "unclean-election",
                    f"broker {row['leader']} in leader epoch {row['leaderEpoch']}",
                    state,
                    offset=row["offset"],
                )
        is_short = set(state["isr"]) < set(state["replicas"])
        if state["leader"] < 0:
            since = _since(rows, lambda row: row["leader"] < 0)
            if not view.is_of_stop(since["offset"]):
                yield view.finding(
                    "no-leader", f"since {_when(since, end_ms)}", state, offset=since["offset"]
                )
        episode = current.get((state["topicId"], state["partition"]))
        if episode is not None and view.is_of_stop(episode.from_offset):
            continue
        if episode is not None:
            duration = _duration(episode.from_ms, end_ms)
            yield view.finding(
                "under-min-isr",
                f"{len(state['isr'])} in sync {state['isr']}, {episode.min_isr} needed, since "
                f"offset {episode.from_offset}{duration}",
                state,
                offset=episode.from_offset,
            )
        elif is_short:
            since = _since(rows, lambda row: set(row["isr"]) < set(row["replicas"]))
            if not view.is_of_stop(since["offset"]):
                yield view.finding(
                    "under-replicated",
                    f"in sync {state['isr']} of {state['replicas']}, since {_when(since, end_ms)}",
                    state,
                    offset=since["offset"],
                )


def episodes(view: ClusterView) -> list[Episode]:
    """All times under min.insync.replicas, in the order of partitions and offsets."""
    found: list[Episode] = []
    needs = _Needs(view)
    for (topic_id, number), rows in by_partition(view.history.rows["partition_changes"]):
        topic = rows[-1]["topic"]
        # A partition comes under its minimum when its ISR shrinks, or when the setting is raised:
        # both are moments to look at, in the order of the metadata log.
        moments = sorted({row["offset"] for row in rows} | needs.changes(topic))
        start: Episode | None = None
        for offset in (o for o in moments if o >= rows[0]["offset"]):
            row = [each for each in rows if each["offset"] <= offset][-1]
            is_gone = row["event"] == "deleted"
            said, at_ms = needs.at(topic, offset)
            needed = min(said, len(row["replicas"]))  # Kafka asks for no more than there are
            when = row["timestampMs"] if row["offset"] == offset else at_ms
            is_under = not is_gone and len(row["isr"]) < needed
            # An episode ends when it is over, and with another minimum another one begins.
            if start is not None and (not is_under or start.min_isr != needed):
                found.append(_ended(start, offset, when))
                start = None
            if is_under:
                size = len(row["isr"])
                if start is None:
                    start = Episode(topic, topic_id, number, needed, size, offset, when)
                elif size < start.smallest_isr:
                    start = _with_isr(start, size)
        if start is not None:
            found.append(start)
    return sorted(found, key=lambda e: (e.topic, e.partition, e.from_offset))


class _Needs:
    """min.insync.replicas over time."""

    def __init__(self, view: ClusterView) -> None:
        self._static = _number(view.static.get(MIN_ISR, "1"))
        self._spans: dict[tuple[str, str | None], list[Row]] = {}
        for row in view.history.rows["configs"]:
            if row["key"] == MIN_ISR:
                self._spans.setdefault((row["entityType"], row["entity"]), []).append(row)

    def changes(self, topic: str) -> set[int]:
        """Offsets at which it may change for a topic."""
        rows = [*self._spans.get(("topic", topic), ()), *self._spans.get(("broker", None), ())]
        ends = {row["endOffset"] for row in rows} - {None}
        return {row["offset"] for row in rows} | ends

    def at(self, topic: str, offset: int) -> tuple[int, int | None]:
        """(replicas needed, when that began) at an offset."""
        for entity in (("topic", topic), ("broker", None)):
            for row in self._spans.get(entity, ()):
                end = row["endOffset"]
                if row["offset"] <= offset and (end is None or end > offset):
                    return _number(row["value"]), row["timestampMs"]
        return self._static, None


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 1


def _ended(episode: Episode, offset: int, at_ms: int | None) -> Episode:
    fields = asdict(episode) | {"until_offset": offset, "until_ms": at_ms}
    return Episode(**fields)


def _with_isr(episode: Episode, size: int) -> Episode:
    return Episode(**(asdict(episode) | {"smallest_isr": size}))


def _since(rows: list[Row], is_so: Any) -> Row:
    """The first row of the last run in which something is so."""
    first = rows[-1]
    for row in reversed(rows):
        if not is_so(row):
            break
        first = row
    return first


def _when(row: Row, end_ms: int | None) -> str:
    return f"offset {row['offset']}{_duration(row['timestampMs'], end_ms)}"


def _duration(from_ms: int | None, end_ms: int | None) -> str:
    """`, for 1.5 s`: up to the last record of the log, which knows no later time."""
    if from_ms is None or end_ms is None:
        return ""
    return f", for {(end_ms - from_ms) / 1000:.1f} s up to the last record"
