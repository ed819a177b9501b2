"""What has changed since an earlier audit: the section `since` of the document.

Pure: two states in, rows out. Nothing is read again for it; both audits have judged by the rules of
their own time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkalog.auditing.audit_state import AuditState, Directory, default_of, numbers
from kafkalog.auditing.finding_changes import same_findings
from kafkalog.auditing.segment_changes import SegmentChanges, segment_changes

Row = dict[str, Any]
NEW, GONE, SAME = "new", "gone", "same"
_CHANGED = "changed"
_DAY_MS = 86_400_000
# Of a directory: the sums of SegmentChanges under the document's names.
_SUMS = {
    "added": "added", "grown": "grown", "shrunk": "shrunk", "deleted": "deleted",
    "unforeseen": "unforeseen", "removed": "removed", "overdue": "overdue",
    "newlyDue": "newly_due",
}  # fmt: skip
_FINDING = (
    "id", "severity", "logDir", "topic", "partition", "segmentBaseOffset", "path", "text",
)  # fmt: skip


def changes_since(before: AuditState, now: AuditState) -> Row:
    """The section. Findings of `now` have `sinceMs`, see `finding_changes.dated`."""
    known = {directory.path: place for place, directory in enumerate(now.directories)}
    places = numbers(known.get(directory.path, -1) for directory in before.directories)
    segments = segment_changes(before.segments, now.segments, places, before.now_ms, now.now_ms)
    partitions = list(_partitions(before, now, places.tolist(), segments))
    findings = list(_findings(before, now))
    topics = _topics(before, now, partitions)
    return {
        "run": before.name,
        "nowMs": before.now_ms,
        "totals": _totals(before, now, partitions, findings),
        "topics": topics,
        "partitions": [row for row in partitions if _says_something(row)],
        "segments": list(_segments(before, now, segments)),
        "settings": list(_setting_changes(before, now)),
        "findings": findings,
    }


def _partitions(
    before: AuditState, now: AuditState, places: Sequence[int], segments: SegmentChanges
) -> Iterator[Row]:
    """A row a directory of either audit; those of now in their order, then those that are gone."""
    earlier = {place: at for at, place in enumerate(places) if place >= 0}
    columns = {
        name: (segments.sums[own][0].tolist(), segments.sums[own][1].tolist())
        for name, own in _SUMS.items()
    }
    old_counts, counts = before.segments.counts.tolist(), now.segments.counts.tolist()
    for place, directory in enumerate(now.directories):
        at = earlier.get(place)
        was = None if at is None else before.directories[at]
        yield {
            "change": NEW if was is None else _CHANGED,
            **_place(directory),
            "bytesBefore": 0 if was is None else was.bytes,
            "bytes": directory.bytes,
            "segmentsBefore": 0 if at is None else old_counts[at],
            "segments": counts[place],
            "appendedOffsets": 0
            if was is None
            else max(directory.log_end_offset - was.log_end_offset, 0),
            **_sums({name: (own[0][place], own[1][place]) for name, own in columns.items()}),
        }
    nothing = _sums(dict.fromkeys(_SUMS, (0, 0)))
    for at, place in enumerate(places):
        if place < 0:
            gone = before.directories[at]
            yield {
                "change": GONE,
                **_place(gone),
                "bytesBefore": gone.bytes,
                "bytes": 0,
                "segmentsBefore": old_counts[at],
                "segments": 0,
                "appendedOffsets": 0,
                **nothing,
            }


def _place(directory: Directory) -> Row:
    return {
        "logDir": directory.log_dir,
        "topic": directory.topic,
        "partition": directory.partition,
        "kind": directory.kind,
        "path": directory.path,
    }


def _sums(values: Mapping[str, tuple[int, int]]) -> Row:
    return {
        name + what: value
        for name, pair in values.items()
        for what, value in zip(("Segments", "Bytes"), pair, strict=True)
    }


def _says_something(row: Row) -> bool:
    return row["change"] != _CHANGED or (
        row["bytes"] != row["bytesBefore"]
        or row["appendedOffsets"] > 0
        or any(row[f"{name}Segments"] for name in _SUMS)
    )


def _topics(before: AuditState, now: AuditState, partitions: Sequence[Row]) -> list[Row]:
    """A row a topic of either audit, by name. What a new directory has is added, too."""
    names = ("bytesBefore", "bytes", *(f"{name}Bytes" for name in _SUMS))
    sums: dict[str, Row] = defaultdict(lambda: dict.fromkeys(names, 0))
    for row in partitions:
        own = sums[row["topic"]]
        for name in names:
            own[name] += row[name]
    days = (now.now_ms - before.now_ms) / _DAY_MS
    return [
        {
            "topic": topic,
            **own,
            "bytesPerDay": round((own["bytes"] - own["bytesBefore"]) / days) if days else None,
        }
        for topic, own in sorted(sums.items())
    ]


def _segments(before: AuditState, now: AuditState, changes: SegmentChanges) -> Iterator[Row]:
    """A row a segment that is not as it was, of directories that both audits saw."""
    old_sizes, new_sizes = before.segments.sizes, now.segments.sizes
    rows = zip(changes.place.tolist(), changes.before.tolist(), changes.after.tolist(), strict=True)
    for place, old, new in rows:
        size_before = int(old_sizes[old]) if old >= 0 else 0
        size = int(new_sizes[new]) if new >= 0 else 0
        if old >= 0 and new >= 0 and size == size_before:
            continue
        state, at = (now, new) if new >= 0 else (before, old)
        directory = now.directories[place]
        yield {
            "change": NEW if old < 0 else GONE if new < 0 else _CHANGED,
            "logDir": directory.log_dir,
            "topic": directory.topic,
            "partition": directory.partition,
            "baseOffset": int(state.segments.base_offsets[at]),
            "bytesBefore": size_before,
            "bytes": size,
        }


def _setting_changes(before: AuditState, now: AuditState) -> Iterator[Row]:
    """Of topics that both audits saw, and settings that both tell of."""
    for topic in sorted(before.settings.keys() & now.settings.keys()):
        was, own = before.settings[topic], now.settings[topic]
        for key in sorted(was.keys() | own.keys()):
            if before.known_keys is not None and key not in before.known_keys:
                continue
            old, new = was.get(key, default_of(key)), own.get(key, default_of(key))
            if old != new:
                yield {"topic": topic, "key": key, "before": old, "now": new}


def _findings(before: AuditState, now: AuditState) -> Iterator[Row]:
    """New ones, those that are gone, those that stay; each in the order of its audit."""
    same = same_findings(before.findings, now.findings)
    for row, at in zip(now.findings, same, strict=True):
        if at is None:
            yield _finding(row, NEW, row["sinceMs"])
    stays = set(same)
    for at, row in enumerate(before.findings):
        if at not in stays:
            yield _finding(row, GONE, row["sinceMs"] or before.now_ms)
    for row, at in zip(now.findings, same, strict=True):
        if at is not None:
            # Where no audit in between is kept, the earlier one is the first that is known.
            known_ms = before.findings[at]["sinceMs"] or before.now_ms
            since_ms = row["sinceMs"] if row["sinceMs"] < now.now_ms else known_ms
            yield _finding(row, SAME, since_ms)


def _finding(row: Mapping[str, Any], change: str, since_ms: int) -> Row:
    return {"change": change, **{name: row[name] for name in _FINDING}, "sinceMs": since_ms}


def _totals(
    before: AuditState, now: AuditState, partitions: Sequence[Row], findings: Sequence[Row]
) -> Row:
    sums = {
        name: sum(row[name] for row in partitions)
        for name in (
            "bytesBefore", "bytes", *(n + what for n in _SUMS for what in ("Segments", "Bytes")),
        )
    }  # fmt: skip
    return {
        **sums,
        **{
            f"{change}{what}": sum(row["change"] == change for row in rows)
            for what, rows, changes in (
                ("Partitions", partitions, (NEW, GONE)),
                ("Findings", findings, (NEW, GONE, SAME)),
            )
            for change in changes
        },
    }


def has_new_failures(section: Row) -> bool:
    """Whether a finding is new that is more than information."""
    return any(row["change"] == NEW and row["severity"] != "info" for row in section["findings"])
