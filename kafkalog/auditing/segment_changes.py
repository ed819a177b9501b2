"""Which segments came, went and grew between two audits: sums of each directory that both saw.

A segment is the same if it has the same place and base offset. One that went and lay in front of
the first there is now was deleted: by retention, by `kafka-delete-records`, by `kafkalog retain`.
One that went from behind was cleaned, or its log was cut. All over columns, whatever their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kafkalog.auditing.audit_state import SegmentColumns
from kafkalog.format.constants import MAX_INT64
from kafkalog.planning.retention_forecast import NEVER


@dataclass(frozen=True, slots=True)
class SegmentChanges:
    """A row a segment of either audit: the directory of now that has it, and its rows in the two,
    -1 for none. `sums`: (segments, bytes) by directory of now; `added`, `grown`, `shrunk`;
    `deleted` in front, `unforeseen` those of them that were not due by now as the earlier audit saw
    it; `removed` from behind; `overdue`: due then, due now, still there; `newly_due`: due now
    alone.
    """

    place: np.ndarray
    before: np.ndarray
    after: np.ndarray
    sums: dict[str, tuple[np.ndarray, np.ndarray]]


def segment_changes(
    before: SegmentColumns,
    after: SegmentColumns,
    places: np.ndarray,
    before_ms: int,
    now_ms: int,
) -> SegmentChanges:
    """`places`: of each directory of the earlier audit that of the same one now, -1 without."""
    old_places = np.repeat(places, before.counts)
    old_rows = np.flatnonzero(old_places >= 0)
    new_places = np.repeat(np.arange(len(after.counts)), after.counts)
    place, old, new = _paired(
        (old_places[old_rows], before.base_offsets[old_rows], old_rows),
        (new_places, after.base_offsets),
    )
    both = (old >= 0) & (new >= 0)
    old_sizes, new_sizes = _of(before.sizes, old, 0), _of(after.sizes, new, 0)
    old_due, new_due = _of(before.due_ms, old, NEVER), _of(after.due_ms, new, NEVER)
    was_due, is_due = _is_due(old_due, before_ms), _is_due(new_due, now_ms)
    firsts = np.full(len(after.counts), MAX_INT64, np.int64)
    np.minimum.at(firsts, new_places, after.base_offsets)
    is_gone = new < 0
    in_front = is_gone & (_of(before.base_offsets, old, 0) < firsts[place])
    more = new_sizes - old_sizes
    chosen = {
        "added": (old < 0, new_sizes),
        "grown": (both & (more > 0), more),
        "shrunk": (both & (more < 0), -more),
        "deleted": (in_front, old_sizes),
        "unforeseen": (in_front & ~_is_due(old_due, now_ms), old_sizes),
        "removed": (is_gone & ~in_front, old_sizes),
        "overdue": (both & was_due & is_due, new_sizes),
        "newly_due": (is_due & ~(both & was_due), new_sizes),
    }
    size = len(after.counts)
    sums = {name: _sums(place[mask], of[mask], size) for name, (mask, of) in chosen.items()}
    return SegmentChanges(place, old, new, sums)


def _paired(
    before: tuple[np.ndarray, np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All of both in the order of place and base offset; the rows that each is in either, or -1."""
    places = np.concatenate([before[0], after[0]])
    bases = np.concatenate([before[1], after[1]])
    rows = np.concatenate([before[2], np.arange(len(after[0]))])
    is_after = np.arange(len(places)) >= len(before[0])
    order = np.lexsort((is_after, bases, places))
    places, bases, rows, is_after = places[order], bases[order], rows[order], is_after[order]
    is_pair = np.zeros(len(places), bool)  # with the next one
    is_pair[:-1] = (
        (places[1:] == places[:-1]) & (bases[1:] == bases[:-1]) & ~is_after[:-1] & is_after[1:]
    )
    old = np.where(is_after, -1, rows)
    new = np.where(is_after, rows, -1)
    new[:-1][is_pair[:-1]] = rows[1:][is_pair[:-1]]
    stays = np.ones(len(places), bool)
    stays[1:] = ~is_pair[:-1]
    return places[stays], old[stays], new[stays]


def _of(column: np.ndarray, rows: np.ndarray, missing: int) -> np.ndarray:
    """Of each row, `missing` where it is -1."""
    if not len(column):
        return np.full(len(rows), missing, np.int64)
    return np.where(rows >= 0, column[rows], missing)


def _is_due(due_ms: np.ndarray, at_ms: int) -> np.ndarray:
    return (due_ms > NEVER) & (due_ms <= at_ms)


def _sums(places: np.ndarray, sizes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    total = np.zeros(count, np.int64)
    np.add.at(total, places, sizes)
    return np.bincount(places, minlength=count), total
