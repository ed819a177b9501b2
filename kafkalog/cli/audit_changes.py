"""The screen of `kafkalog audit --since`: what has changed, in place of all there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkalog.auditing.changes import GONE, NEW, SAME
from kafkalog.cli.tables import show_table
from kafkalog.texts import format_bytes, format_count, format_duration, format_timestamp

Row = dict[str, Any]
_TOPIC = (
    "topic", "bytesBefore", "bytes", "bytesPerDay", "addedBytes", "grownBytes", "deletedBytes",
    "removedBytes", "shrunkBytes", "overdueBytes", "newlyDueBytes",
)  # fmt: skip
_CHOSEN = ("topic", "bytesBefore", "bytes", "bytesPerDay", "deletedBytes", "overdueBytes")
_SIZES = tuple(name for name in _TOPIC[3:] if name != "bytesPerDay")
# Lines of the longer tables, on the screen.
_MOST_LINES = 40


def write_changes(section: Row, tell: Callable[[str], None]) -> None:
    """Topics that changed, directories that came and went, settings, findings."""
    topics = [row for row in section["topics"] if _has_changed(row)]
    show_table(topics, _TOPIC, chosen=_CHOSEN, tell=tell)
    moved = [
        {"change": row["change"], "path": row["path"], "bytes": row["bytesBefore"] or row["bytes"]}
        for row in section["partitions"]
        if row["change"] in (NEW, GONE)
    ]
    _write(moved, tell)
    _write(section["settings"], tell)
    findings = [_finding(row) for row in section["findings"] if row["change"] != SAME]
    _write(findings, tell)


def _has_changed(row: Row) -> bool:
    return row["bytes"] != row["bytesBefore"] or any(row[name] for name in _SIZES)


def _finding(row: Row) -> Row:
    return {
        "change": row["change"],
        "severity": row["severity"],
        "id": row["id"],
        "since": format_timestamp(row["sinceMs"]),
        "text": row["text"],
        "path": row["path"],
    }


def _write(rows: list[Row], tell: Callable[[str], None]) -> None:
    if rows:
        chosen = [name for name in rows[0] if name != "path"] + ["path"]
        show_table(rows[:_MOST_LINES], chosen=chosen, is_main=False, tell=tell)
    if len(rows) > _MOST_LINES:
        tell(f"{len(rows) - _MOST_LINES} more: --json")


def changes_note(section: Row, now_ms: int) -> str:
    """All of it in a few sentences."""
    sums = section["totals"]
    ago_ms = now_ms - section["nowMs"]
    more = sums["bytes"] - sums["bytesBefore"]
    parts = [f"{format_bytes(abs(more))} {'more' if more >= 0 else 'less'}"]
    for change, words in ((NEW, "new"), (GONE, "gone")):
        if sums[f"{change}Partitions"]:
            parts.append(f"{format_count(sums[f'{change}Partitions'], 'partition')} {words}")
    if sums["deletedSegments"]:
        unforeseen = sums["unforeseenBytes"]
        text = f"{_segments(sums, 'deleted')} deleted at the front"
        parts.append(
            f"{text}, {format_bytes(unforeseen)} of it not foreseen" if unforeseen else text
        )
    if sums["overdueSegments"]:
        parts.append(f"{_segments(sums, 'overdue')} due then already and still there")
    if sums["newlyDueSegments"]:
        parts.append(f"{_segments(sums, 'newlyDue')} due since")
    if section["settings"]:
        parts.append(f"{format_count(len(section['settings']), 'setting')} changed")
    stays = [row["sinceMs"] for row in section["findings"] if row["change"] == SAME]
    oldest = f" (since {format_timestamp(min(stays))} and later)" if stays else ""
    findings = f"findings: {sums['newFindings']} new, {sums['goneFindings']} gone, "
    when = f"{format_timestamp(section['nowMs'])}, {format_duration(ago_ms)} ago"
    return (
        f"since {section['run']} ({when}): {'; '.join(parts)}; "
        f"{findings}{len(stays)} still there{oldest}"
    )


def _segments(sums: Mapping[str, int], name: str) -> str:
    count = format_count(sums[f"{name}Segments"], "segment")
    return f"{count}, {format_bytes(sums[f'{name}Bytes'])}"
