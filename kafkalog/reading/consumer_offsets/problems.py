"""What of `__consumer_offsets` cannot be read, in the tables of groups, members and offsets: a row
that says so, or an error beside what is known.

A record that cannot be read may be the latest of its key, so what it would have replaced is in none
of the tables. A coordinator does not load a partition that has one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafkalog.messages.group_types import SIMPLE, kind_of
from kafkalog.reading.consumer_offsets.groups import GROUP_MEMBERS, GROUPS

_logger = logging.getLogger(__name__)

ERROR_FIELD = pa.field("error", pa.string())
GROUPS_AND_ERRORS = GROUPS.append(ERROR_FIELD)
MEMBERS_AND_ERRORS = GROUP_MEMBERS.append(ERROR_FIELD)


@dataclass(frozen=True, slots=True)
class Problem:
    """A record, batch or marker that cannot be read. kind, what: as of a GroupRecord, of commits
    None and empty; group: None where the record does not tell whose it is.
    """

    kind: str | None
    what: str
    group: str | None
    member_id: str | None
    partition: int
    text: str


def problems(unreadable: pa.Table) -> Iterator[Problem]:
    """Of rows of LATEST_RECORDS with an error."""
    for row in unreadable.to_pylist():
        offset = "" if row["recordOffset"] is None else f", offset {row['recordOffset']}"
        text = f"{row['path']}{offset}: {row['error']}"
        kind, what = (None, "") if row["messageType"] is None else kind_of(row["messageType"])
        key = {} if row["key"] is None else json.loads(row["key"])
        group = row["group"] if row["messageType"] is None else key.get("group", key.get("groupId"))
        yield Problem(kind, what, group, key.get("memberId"), row["offsetsPartition"], text)


def warn_of(unreadable: pa.Table, *, is_left_out: bool) -> None:
    """Says once how much cannot be read, if anything."""
    if len(unreadable):
        _logger.warning(
            "%d records or batches of __consumer_offsets cannot be read%s, and may be the latest of"
            " their keys; the first: %s",
            len(unreadable),
            " and are left out" if is_left_out else "",
            next(problems(unreadable)).text,
        )


def with_unreadable_groups(groups: pa.Table, unreadable: pa.Table) -> pa.Table:
    """GROUPS_AND_ERRORS of GROUPS: the group's error beside it, or a row with little else where
    nothing else is known of it. A group of which only a commit cannot be read has no kind.
    """
    found = list(problems(unreadable))
    rows: list[dict[str, Any]] = []
    # A group whose own records cannot be read is not one without any.
    broken = {p.group for p in found if p.kind is not None and p.group is not None}
    for row in groups.to_pylist():
        if row["kind"] != SIMPLE or row["group"] not in broken:
            texts = _texts(found, row["group"], row["kind"])
            rows.append(row | {"error": "; ".join(texts) or None})
    known = {(row["group"], row["kind"]) for row in rows}
    names = {group for group, _ in known} | broken
    for problem in found:
        is_commit = problem.group is not None and problem.kind is None
        if problem.group is None or (
            problem.group not in names if is_commit else (problem.group, problem.kind) not in known
        ):
            error = problem.text
            if problem.group is not None:
                error = "; ".join(_texts(found, problem.group, problem.kind))
                known.add((problem.group, problem.kind))
                names.add(problem.group)
            rows.append(
                {
                    "group": problem.group, "kind": problem.kind, "error": error,
                    "coordinatorPartition": problem.partition,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, GROUPS_AND_ERRORS)


def _texts(found: Sequence[Problem], group: str | None, kind: str | None) -> list[str]:
    return [p.text for p in found if (p.group, p.kind) == (group, kind)]


def with_unreadable_members(members: pa.Table, unreadable: pa.Table) -> pa.Table:
    """MEMBERS_AND_ERRORS of GROUP_MEMBERS: the error of a member's assignment beside it, and a row
    for what may have had members.
    """
    rows = [row | {"error": None} for row in members.to_pylist()]
    of_member = {(row["group"], row["kind"], row["memberId"]): row for row in rows}
    for problem in problems(unreadable):
        member = of_member.get((problem.group or "", problem.kind or "", problem.member_id))
        if member is not None:
            member["error"] = problem.text
        elif problem.kind is not None or problem.group is None:
            rows.append(
                {
                    "group": problem.group, "kind": problem.kind, "memberId": problem.member_id,
                    "error": problem.text,
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, MEMBERS_AND_ERRORS)
