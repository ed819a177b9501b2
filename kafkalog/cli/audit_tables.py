"""Tables of `kafkalog audit` about contents, simulations and leftovers; only what has something to
say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkalog.cli.tables import show_table
from kafkalog.texts import format_bytes, format_duration, format_timestamp

Row = dict[str, Any]
_MOST_LEFTOVERS = 20
_DAY_MS = 86_400_000
# Columns in which a partition has something to say, and whose shares of its bytes.
_COUNTS = (
    "tombstones", "stuckTombstones", "stuckTombstoneBatches", "stuckMarkers", "fakeTombstones",
    "keylessRecords", "readableBeyondPolicyRecords", "distinctKeys",
)  # fmt: skip
_OF_COMPACTED = ("tombstones", "keylessRecords")
_SHARES = ("committedBytes", "abortedBytes", "openBytes", "markerBytes")


def write_contents_tables(document: Mapping[str, Any]) -> None:
    """Contents by topic, what would be under other settings, safe offsets, leftovers."""
    _write(_contents(document["contents"]))
    _write(_ages(document["ageHistogram"]))
    if len(document["whatIf"]) > 1:
        _write(_simulations(document["whatIf"]))
    _write(document["safeDeleteOffsets"])
    _write(document["deleteBefore"])
    _write(
        {"left over": row["path"], "kind": row["kind"], "bytes": format_bytes(row["bytes"])}
        for row in document["leftovers"][:_MOST_LEFTOVERS]
    )


def simulation_notes(scenarios: Iterable[Row]) -> list[str]:
    """What the simulations leave out, a line each."""
    scenarios = list(scenarios)
    notes: list[str] = []
    if len(scenarios) > 1:
        notes += dict.fromkeys(text for scenario in scenarios for text in scenario["assumptions"])
    for scenario in scenarios:
        if scenario["notModelled"]:
            notes.append(
                f"{scenario['label']}: {', '.join(scenario['notModelled'])} change what is written "
                "from then on, not the segments that are there: they show in ceilings and in what "
                "is expected"
            )
        notes += [
            f"{r['topic']}: {scenario['label']} refused: {r['text']}" for r in scenario["refused"]
        ]
    return notes


def capacity_notes(log_dirs: Iterable[Row]) -> list[str]:
    """Of each log dir whose size is given: how full it is and when it will be, a line each."""
    return [
        f"{row['path']}: {format_bytes(row['bytes'])} of {format_bytes(row['capacityBytes'])}, "
        f"{_outlook(row)}"
        for row in log_dirs
        if row["capacityBytes"] is not None
    ]


def _outlook(row: Row) -> str:
    growth, days = row["growthBytesPerDay"], row["daysUntilFull"]
    if days == 0:
        return "full"
    if growth is None:
        return "how fast it grows is not known: no earlier audit of it is kept"
    if days is None:
        return "it does not grow"
    return f"{format_bytes(growth)} more a day: full in {format_duration(int(days * _DAY_MS))}"


def _write(rows: Iterable[Row]) -> None:
    found = list(rows)
    if found:
        show_table(found, is_main=False)


def _contents(partitions: Iterable[Row]) -> list[Row]:
    """A row a topic that has more in it than committed data by policy."""
    by_topic: dict[str, Row] = {}
    for row in partitions:
        sums = by_topic.setdefault(row["topic"], {"topic": row["topic"]})
        for name in (*_COUNTS, "compactionGainBytes", *_SHARES):
            sums[name] = sums.get(name, 0) + (row[name] or 0)
    return [_shown(sums) for sums in by_topic.values() if _says_something(sums)]


def _says_something(sums: Row) -> bool:
    """Tombstones and missing keys say nothing of a topic that is not compacted."""
    return any(sums[name] for name in (*_COUNTS, *_SHARES[1:]) if name not in _OF_COMPACTED)


def _shown(sums: Row) -> Row:
    total = sum(sums[name] for name in _SHARES)
    shares = {name.removesuffix("Bytes"): f"{sums[name] / max(total, 1):.1%}" for name in _SHARES}
    gain = {"compactionGain": format_bytes(sums["compactionGainBytes"])}
    return {name: sums[name] for name in ("topic", *_COUNTS)} | gain | shares


def _ages(rows: Iterable[Row]) -> list[Row]:
    """Bytes of all topics by age."""
    sums: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        entry = sums.setdefault((row["fromMs"], row["toMs"]), [0, 0, 0])
        for at, name in enumerate(("closedBytes", "activeBytes", "records")):
            entry[at] += row[name]
    return [
        {
            "age": _age(*edges),
            "closed": format_bytes(closed),
            "active": format_bytes(active),
            "records": records,
        }
        for edges, (closed, active, records) in sorted(sums.items())
    ]


def _age(from_ms: int, to_ms: int) -> str:
    if from_ms < 0:
        return "in the future" if to_ms == 0 else "without a time"
    return f"from {_span(from_ms)}" + ("" if to_ms < 0 else f" to {_span(to_ms)}")


def _span(ms: int) -> str:
    hours = ms // 3_600_000
    return f"{hours} h" if hours < 24 else f"{hours // 24} d"


def _simulations(scenarios: list[Row]) -> list[Row]:
    """A row a time: what all topics together keep under each scenario."""
    rows: dict[int, Row] = {}
    has_remote = any(point["remoteBytes"] for each in scenarios for point in each["points"])
    for scenario in scenarios:
        for point in scenario["points"]:
            if not point["topic"]:
                row = rows.setdefault(point["atMs"], {"at": format_timestamp(point["atMs"])})
                label = scenario["label"] or "as configured"
                row[label] = format_bytes(point["bytes"])
                row[f"{label}, expected"] = format_bytes(point["expectedBytes"])
                if has_remote:
                    row[f"{label}, remote"] = format_bytes(point["remoteBytes"])
                if has_remote and point["remoteCostPerMonth"] is not None:
                    row[f"{label}, a month"] = f"{point['remoteCostPerMonth']:.6g}"
    return list(rows.values())
