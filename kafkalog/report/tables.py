"""The tables of the page: the numbers of its charts as rows, and what has no chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.report.ages import bucket_label
from kafkalog.report.curves import setting_label
from kafkalog.report.figures import (
    Figure,
    bytes_figure,
    count_figure,
    duration_figure,
    text_figure,
    time_figure,
    time_text,
)
from kafkalog.report.treemap import KINDS

Row = Mapping[str, Any]
Maker = Callable[[Any, str], Figure]


@dataclass(frozen=True, slots=True)
class Table:
    """`columns`: a heading and whether it is one of numbers. `all`: how many rows there are in the
    document, of which `rows` are the first ones.
    """

    id: str
    name: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Figure, ...], ...]
    all: Figure
    note: str = ""

    @property
    def left_out(self) -> bool:
        """Whether there are more rows than shown."""
        return len(self.rows) < int(self.all.value)


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    path: str
    make: Maker

    def cell(self, row: Row, at: str) -> Figure:
        value: Any = row
        for name in self.path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return self.make(value, f"{at}.{self.path}")


def _join(value: Any, at: str) -> Figure:
    return text_figure(value if isinstance(value, str) else ", ".join(value or ()), at)


def _limit(value: Any, at: str) -> Figure:
    return Figure(value, at, "no limit", "bytes") if value == -1 else bytes_figure(value, at)


def _days(value: Any, at: str) -> Figure:
    return Figure(value, at, "–" if value is None else f"{value:,.1f}", "count")


TOPIC_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Bytes", "bytes", bytes_figure),
    *(_Column(kind, f"bytesByKind.{kind}", bytes_figure) for kind in KINDS),
    _Column("Partitions", "partitions", count_figure),
    _Column("Segments", "segments", count_figure),
    _Column("Records", "records", count_figure),
    _Column("cleanup.policy", "cleanupPolicy", _join),
    _Column("retention.ms", "retentionMs", duration_figure),
    _Column("retention.bytes", "retentionBytes", _limit),
    _Column("Ceiling", "retentionCeilingBytes", _limit),
    _Column("Oldest record", "oldestTimestampMs", time_figure),
    _Column("Newest record", "newestTimestampMs", time_figure),
    _Column("Due", "dueBytes", bytes_figure),
    _Column("Blocked", "blockedBytes", bytes_figure),
)
LOG_DIR_COLUMNS = (
    _Column("Log dir", "path", text_figure),
    _Column("Broker", "brokerId", count_figure),
    _Column("Bytes", "bytes", bytes_figure),
    _Column("Capacity", "capacityBytes", bytes_figure),
    _Column("Growth a day", "growthBytesPerDay", bytes_figure),
    _Column("Days until full", "daysUntilFull", _days),
)
CONTENT_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Partition", "partition", count_figure),
    _Column("Tombstones", "tombstones", count_figure),
    _Column("with a horizon", "tombstonesWithHorizon", count_figure),
    _Column("next goes", "nextTombstoneMs", time_figure),
    _Column("stuck", "stuckTombstones", count_figure),
    _Column("Markers", "markers", count_figure),
    _Column("stuck markers", "stuckMarkers", count_figure),
    _Column("Empty values", "emptyValues", count_figure),
    _Column("“null” values", "nullTextValues", count_figure),
    _Column("Without a key", "keylessRecords", count_figure),
    _Column("Committed", "committedBytes", bytes_figure),
    _Column("Aborted", "abortedBytes", bytes_figure),
    _Column("Open", "openBytes", bytes_figure),
    _Column("Marker bytes", "markerBytes", bytes_figure),
    _Column("Readable beyond policy", "readableBeyondPolicyRecords", count_figure),
    _Column("Distinct keys", "distinctKeys", count_figure),
    _Column("Compaction gains", "compactionGainBytes", bytes_figure),
)
LEFTOVER_COLUMNS = (
    _Column("Path", "path", text_figure),
    _Column("Kind", "kind", text_figure),
    _Column("Bytes", "bytes", bytes_figure),
    _Column("Topic", "topic", text_figure),
    _Column("Partition", "partition", count_figure),
)
SAFE_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Partition", "partition", count_figure),
    _Column("Offset", "offset", count_figure),
    _Column("Group furthest behind", "group", text_figure),
    _Column("Bytes before it", "bytes", bytes_figure),
)
POLICY_COLUMNS = (
    _Column("Rule", "name", text_figure),
    _Column("Topics", "topics", _join),
    _Column("Asks for", "asks", _join),
    _Column("Topics it applies to", "matchedTopics", count_figure),
    _Column("Violations", "violations", count_figure),
)
GROWTH_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Growth a day", "bytesPerDay", bytes_figure),
)
SINCE_TOPIC_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Bytes then", "bytesBefore", bytes_figure),
    _Column("Bytes", "bytes", bytes_figure),
    _Column("Growth a day", "bytesPerDay", bytes_figure),
    _Column("New", "addedBytes", bytes_figure),
    _Column("Grown", "grownBytes", bytes_figure),
    _Column("Deleted in front", "deletedBytes", bytes_figure),
    _Column("not due by now", "unforeseenBytes", bytes_figure),
    _Column("Cleaned or cut", "removedBytes", bytes_figure),
    _Column("Due then, still there", "overdueBytes", bytes_figure),
    _Column("Due since", "newlyDueBytes", bytes_figure),
)
SINCE_SETTING_COLUMNS = (
    _Column("Topic", "topic", text_figure),
    _Column("Setting", "key", text_figure),
    _Column("Then", "before", text_figure),
    _Column("Now", "now", text_figure),
)
SINCE_FINDING_COLUMNS = (
    _Column("Change", "change", text_figure),
    _Column("Severity", "severity", text_figure),
    _Column("Kind", "id", text_figure),
    _Column("Since", "sinceMs", time_figure),
    _Column("Text", "text", text_figure),
    _Column("Path", "path", text_figure),
)


def table(
    id: str, name: str, at: str, rows: Sequence[Row], columns: Sequence[_Column],
    *, most: int, largest_by: str | None = None, note: str = "",
) -> Table:  # fmt: skip
    """Rows of the list at `at` of the document, at most so many, by their order there or the
    largest first.
    """
    order = list(range(len(rows)))
    if largest_by is not None:
        order.sort(key=lambda n: -(rows[n].get(largest_by) or 0))
    cells = tuple(
        tuple(column.cell(rows[n], f"{at}.{n}") for column in columns) for n in order[:most]
    )
    numeric = _numeric(columns)
    return Table(id, name, numeric, cells, count_figure(len(rows), f"count({at})"), note)


def _numeric(columns: Sequence[_Column]) -> tuple[tuple[str, bool], ...]:
    return tuple((c.heading, c.make not in (text_figure, _join)) for c in columns)


def timeline_table(rows: Sequence[Row], most: int) -> Table:
    """A row a topic and day."""
    order = sorted(range(len(rows)), key=lambda n: (rows[n]["dayMs"], -rows[n]["bytes"]))[:most]
    cells = tuple(
        (
            text_figure(rows[n]["topic"], f"timeline.{n}.topic"),
            _day(rows[n]["dayMs"], f"timeline.{n}.dayMs"),
            bytes_figure(rows[n]["bytes"], f"timeline.{n}.bytes"),
            count_figure(rows[n]["segments"], f"timeline.{n}.segments"),
        )
        for n in order
    )
    columns = (("Topic", False), ("Day", True), ("Bytes", True), ("Segments", True))
    everything = count_figure(len(rows), "count(timeline)")
    return Table("timeline-table", "What goes when", columns, cells, everything)


def _day(value: int, at: str) -> Figure:
    return Figure(value, at, time_text(value, "%Y-%m-%d"), "time")


def curves_table(what_if: Sequence[Row], most: int) -> Table:
    """A row a setting, topic and time; the largest topics first."""
    cells = []
    total = 0
    for number, entry in enumerate(what_if):
        points = entry["points"]
        total += len(points)
        order = sorted(range(len(points)), key=lambda n: (-points[n]["bytes"], points[n]["atMs"]))
        for n in order[: max(1, most // len(what_if))]:
            at = f"whatIf.{number}.points.{n}"
            settings = " ".join(f"{key}={value}" for key, value in entry["settings"].items())
            cells.append(
                (
                    Figure(points[n]["topic"], f"{at}.topic", points[n]["topic"] or "all", "text"),
                    Figure(setting_label(entry), "", setting_label(entry), "text"),
                    Figure(settings, "", settings or "–", "text"),
                    time_figure(points[n]["atMs"], f"{at}.atMs"),
                    bytes_figure(points[n]["bytes"], f"{at}.bytes"),
                    count_figure(points[n]["records"], f"{at}.records"),
                )
            )
    columns = (
        ("Topic", False), ("Setting", False), ("Settings", False), ("At", True), ("Bytes", True),
        ("Records", True),
    )  # fmt: skip
    return Table(
        "what-if-table",
        "What if",
        columns,
        tuple(cells),
        count_figure(total, "count(whatIf.*.points)"),
    )


def ages_table(rows: Sequence[Row], most: int) -> Table:
    """A row a topic and bucket that has bytes."""
    full = [n for n, row in enumerate(rows) if row["closedBytes"] or row["activeBytes"]]
    cells = tuple(
        (
            text_figure(rows[n]["topic"], f"ageHistogram.{n}.topic"),
            Figure(rows[n]["fromMs"], f"ageHistogram.{n}.fromMs", _bucket(rows[n]), "duration"),
            bytes_figure(rows[n]["closedBytes"], f"ageHistogram.{n}.closedBytes"),
            bytes_figure(rows[n]["activeBytes"], f"ageHistogram.{n}.activeBytes"),
            count_figure(rows[n]["records"], f"ageHistogram.{n}.records"),
        )
        for n in full[:most]
    )
    columns = (
        ("Topic", False), ("Age", True), ("Closed", True), ("Active", True), ("Records", True)
    )  # fmt: skip
    return Table("ages-table", "Ages", columns, cells, count_figure(len(full), ""))


def _bucket(row: Row) -> str:
    return bucket_label(row["fromMs"], row["toMs"])
