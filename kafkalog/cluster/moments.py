"""When and where something happened, and what rows have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

METADATA_LOG = "metadata log"
METADATA_SNAPSHOT = "metadata snapshot"
QUORUM_STATE = "quorum-state"


@dataclass(frozen=True, slots=True)
class Moment:
    """A record: its offset and time (None where it is not known), its leader's epoch, where it
    lies.

    Of a snapshot's records offset and time are those of the last record the snapshot contains, for
    it does not tell when each of them was written.
    """

    offset: int
    timestamp_ms: int | None
    epoch: int
    source: str
    path: str
    cluster_id: str | None

    def row(self, **columns: Any) -> Row:
        """A row of what happened then."""
        return {
            **columns,
            "timestampMs": self.timestamp_ms,
            "offset": self.offset,
            "source": self.source,
            "clusterId": self.cluster_id,
            "path": self.path,
        }


class Spans:
    """Rows that hold from a moment on, until the same thing is gone or is something else."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._open: dict[Hashable, tuple[Hashable, Row]] = {}

    def hold(
        self, key: Hashable, value: Hashable, moment: Moment, columns: Mapping[str, Any]
    ) -> None:
        """From a moment on `key` is `value`, which the columns show (a secret does not)."""
        if key in self._open and self._open[key][0] == value:
            return
        self.end(key, moment)
        row = moment.row(**columns, endTimestampMs=None, endOffset=None)
        self.rows.append(row)
        self._open[key] = value, row

    def end(self, key: Hashable, moment: Moment) -> Row | None:
        """It is gone; its row, if it was there."""
        _, row = self._open.pop(key, (None, None))
        if row is not None:
            row.update(endTimestampMs=moment.timestamp_ms, endOffset=moment.offset)
        return row

    def end_all(self, moment: Moment, **like: Any) -> None:
        """All rows with these columns are gone."""
        for key, (_, row) in list(self._open.items()):
            if all(row[name] == value for name, value in like.items()):
                self.end(key, moment)

    def row(self, key: Hashable) -> Row | None:
        """The row that holds now."""
        return self._open[key][1] if key in self._open else None
