"""Groups that changed their type: of the last records of their keys those that still count.

A coordinator has a group as one type at a time, see `messages.group_types`. So what lies in front
of a record of the classic group, or of the tombstone of the group's own metadata, is gone; and
where records of two types are left the coordinator does not load the partition. (Seen are the last
records of keys, as compaction leaves them. Whether the load failed before that `verify` tells,
which reads all.)
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkalog.errors import CorruptRecordError
from kafkalog.messages.group_types import CLASSIC, SIMPLE, GroupEvent, GroupTypes, event_of

_NEEDED = (
    "offsetsPartition", "recordOffset", "messageType", "key", "value", "isTombstone", "error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Seen:
    """A record: its row, offset and what it says; is_readable: it is no row with an error."""

    row: int
    offset: int
    event: GroupEvent
    is_readable: bool


def settle_types(records: pa.Table, *, fails_fast: bool) -> pa.Table:
    """What `parts.latest_messages` gives, LATEST_RECORDS, without those that were replaced. For
    a group that no coordinator loads a row with the error; with `fails_fast` CorruptRecordError.
    """
    is_message = pc.and_(pc.is_valid(records["messageType"]), pc.is_valid(records["key"]))
    places = np.flatnonzero(is_message.to_numpy())
    groups: dict[tuple[int, str], list[_Seen]] = defaultdict(list)
    for row, found in zip(
        places.tolist(), records.select(_NEEDED).filter(is_message).to_pylist(), strict=True
    ):
        event = _event(found)
        if event is not None:
            place = found["offsetsPartition"], event.group
            groups[place].append(_Seen(row, found["recordOffset"], event, found["error"] is None))
    gone: list[int] = []
    problems = []
    for seen in groups.values():
        replaced, problem = _settle(sorted(seen, key=lambda each: each.offset))
        gone += replaced
        if problem is not None:
            row, text = problem
            bad = records.slice(row, 1).to_pylist()[0]
            if fails_fast:
                raise CorruptRecordError(text, path=bad["path"], offset=bad["recordOffset"])
            problems.append(bad | {"value": None, "isTombstone": True, "error": text})
    if not gone:
        return records
    stays = np.ones(len(records), np.bool_)
    stays[gone] = False
    kept = records.filter(pa.array(stays))
    return pa.concat_tables([kept, pa.Table.from_pylist(problems, records.schema)])


def _event(row: dict[str, Any]) -> GroupEvent | None:
    value = None if row["value"] is None else json.loads(row["value"])
    return event_of(row["messageType"], json.loads(row["key"]), value)


def _settle(seen: list[_Seen]) -> tuple[list[int], tuple[int, str] | None]:
    """Rows that do not count, and the row with which a load fails and why."""
    if len({each.event.kind for each in seen}) == 1:
        return [], None
    ends: dict[str, int] = {}
    for each in seen:
        if each.is_readable and each.event.kind in (CLASSIC, SIMPLE):
            ends[""] = each.offset
        if each.is_readable and each.event.removes:
            ends[each.event.kind] = each.offset
    left: list[_Seen] = []
    gone: list[_Seen] = []
    for each in seen:
        end = max(ends.get("", -1), ends.get(each.event.kind, -1))
        (gone if each.is_readable and each.offset < end else left).append(each)
    types = GroupTypes()
    for each in left:
        problem = types.replay(each.event) if each.is_readable else None
        if problem is not None:
            return [each.row for each in seen], (each.row, problem)
    if types.kinds.get(seen[0].event.group) not in (CLASSIC, SIMPLE):
        gone += [e for e in left if e.is_readable and e.event.kind in (CLASSIC, SIMPLE)]
    return [each.row for each in gone], None
