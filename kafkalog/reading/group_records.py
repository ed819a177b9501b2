"""The last record of each key of `__consumer_offsets` that is no offset commit: groups and their
members, as type and JSON.

There are few of them among the commits, and of each key only the last is decoded, piece by piece.
As in view `group_messages` types that are not known do not count; a version that is not known, or
bytes that are no record, are an error: an older record would pass for the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kafkalog.batches.offset_commits import Int64s, Spans, span_at
from kafkalog.errors import KafkaLogError
from kafkalog.format.topics import OFFSETS_TOPIC
from kafkalog.messages.internal_topics import INTERNAL_TOPICS

# The types of offset commits' keys are 0 and 1, their first byte is 0.
_LAST_COMMIT_TYPE = 1


def others_than_commits(keys: Spans) -> Int64s:
    """Which keys are long enough to have a type, and have another one than commits."""
    which = np.flatnonzero(keys.lengths >= 2)
    starts = keys.starts[which]
    is_other = (keys.buf[starts] != 0) | (keys.buf[starts + 1] > _LAST_COMMIT_TYPE)
    found: Int64s = which[is_other]
    return found


@dataclass(slots=True)
class LatestGroupRecords:
    """Memory: what is kept of a coordinator's groups, as the coordinator has it."""

    _rows: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def add(
        self, keys: Spans, values: Spans, offsets: Int64s, timestamps: Int64s, path: str
    ) -> None:
        """Records behind those so far; timestamps in ms. CorruptRecordError, or
        UnsupportedMessageVersionError, for the last one of a key that cannot be read.
        """
        by_key: dict[bytes, list[int]] = {}
        for at in others_than_commits(keys).tolist():
            by_key.setdefault(span_at(keys, at) or b"", []).append(at)
        for key, places in by_key.items():
            at = places[-1]
            try:
                row = _row(key, span_at(values, at))
            except KafkaLogError as error:
                raise type(error)(error.reason, path=path, offset=int(offsets[at])) from None
            if row is not None:
                place = {"recordOffset": int(offsets[at]), "timestampMs": int(timestamps[at])}
                self._rows[key] = row | place

    def rows(self) -> list[dict[str, Any]]:
        """messageType, key, value (JSON, None of a tombstone), isTombstone, recordOffset and
        timestampMs of each.
        """
        return list(self._rows.values())


def _row(key: bytes, value: bytes | None) -> dict[str, Any] | None:
    """None of a type that is not known. Raises as the decoder."""
    record = INTERNAL_TOPICS[OFFSETS_TOPIC](key, value)
    if record.key is None:
        return None
    return {
        "messageType": record.type,
        "key": record.key,
        "value": record.value,
        "isTombstone": value is None,
    }
