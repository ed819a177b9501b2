"""Which findings are new, gone and still there between two audits.

The words of a finding have numbers in them that change from day to day, and so may the segment it
names first. The same are those of one kind in one directory (of a policy: of one rule); where one
audit has more of them than the other, those that name the same file and words are taken for the
same first, then those of the same file, then any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import eq, itemgetter
from typing import Any

from kafkalog.auditing.policy_kinds import POLICY_KINDS

Row = Mapping[str, Any]
# What two findings that are the same without a doubt have in common.
_telling = itemgetter("text", "path", "segmentBaseOffset", "id", "partition", "topic", "logDir")
_POLICY = frozenset(kind.id for kind in POLICY_KINDS)


def same_findings(before: Sequence[Row], now: Sequence[Row]) -> list[int | None]:
    """Of each finding of now which one of the earlier audit it is, None for a new one."""
    if len(before) == len(now) and all(map(eq, map(_telling, before), map(_telling, now))):
        return list(range(len(now)))  # as between two audits of a disk where nothing happens
    old: dict[Hashable, list[int]] = defaultdict(list)
    for at, row in enumerate(before):
        old[_subject(row)].append(at)
    new: dict[Hashable, list[int]] = defaultdict(list)
    for at, row in enumerate(now):
        new[_subject(row)].append(at)
    found: list[int | None] = [None] * len(now)
    for subject, places in new.items():
        left = old.get(subject, [])
        for key in (_words, _file, _any):
            places, left = _match(before, now, places, left, key, found)
    return found


def _match(
    before: Sequence[Row],
    now: Sequence[Row],
    places: list[int],
    left: list[int],
    key: Callable[[Row], Hashable],
    found: list[int | None],
) -> tuple[list[int], list[int]]:
    """What is matched goes into `found`; what is left of both."""
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for at in reversed(left):
        by_key[key(before[at])].append(at)
    rest = []
    for at in places:
        same = by_key.get(key(now[at]))
        if same:
            found[at] = same.pop()
        else:
            rest.append(at)
    return rest, sorted(at for own in by_key.values() for at in own)


def _subject(row: Row) -> Hashable:
    rule = row["text"].split(": ")[1:2] if row["id"] in _POLICY else ()
    return row["id"], row["logDir"], row["topic"], row["partition"], *rule


def _words(row: Row) -> Hashable:
    return row["path"], row["segmentBaseOffset"], row["text"]


def _file(row: Row) -> Hashable:
    return row["path"], row["segmentBaseOffset"]


def _any(_: Row) -> Hashable:
    return ()


def dated(findings: Sequence[Row], last: Sequence[Row], now_ms: int) -> list[Row]:
    """The findings with `sinceMs`: as the last audit had them, else from now on."""
    same = same_findings(last, findings)
    return [
        {**row, "sinceMs": now_ms if at is None else last[at]["sinceMs"]}
        for row, at in zip(findings, same, strict=True)
    ]
