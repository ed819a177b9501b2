"""What type a group has while a coordinator loads its partition, record by record.

A group is made by the first record that is about it, and has that record's type until it is
removed. A record of another type in between fails the load of the whole partition:

 record                              no group      of its type    simple             of another type
 GroupMetadata                       classic       classic        classic            classic
 GroupMetadata, a tombstone          -             removed        removed            removed
 of a consumer or streams group      made          as it is       takes its place    the load fails
 of a share group                    made          as it is       the load fails     the load fails
 …, a tombstone                      -             as it is *     as above *         the load fails
 an offset commit                    simple        as it is       as it is           as it is

* removed, if it is that of the group's own metadata. A simple group is a classic one that has
neither members nor a type of protocol. (A coordinator also wants the tombstones of a group's
members and assignments in front of that of the group. Their order is not looked at here.)

Source: Kafka GroupMetadataManager.replay, getOrMaybeCreatePersistedConsumerGroup and its like,
OffsetMetadataManager.replay; seen with 4.3.1 (tests/oracle).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkalog.messages.coordinator_record import CoordinatorRecord

CLASSIC = "classic"
# A group that has nothing but offsets.
SIMPLE = "simple"
# What the names of the new protocols' messages begin with, and the type of their groups.
KINDS = {"ConsumerGroup": "consumer", "ShareGroup": "share", "StreamsGroup": "streams"}
# 4.1 has forgotten it and passes it over.
_PASSED_OVER = "ShareGroupPartitionMetadata"
_METADATA = "Metadata"


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """What a record says of its group's type: `kind` one of classic, simple, consumer, share and
    streams. removes: its tombstone takes the group away. is_tombstone: makes no group.
    """

    group: str
    kind: str
    is_tombstone: bool = False
    removes: bool = False


def kind_of(message_type: str) -> tuple[str | None, str]:
    """The kind of group that a message is of, None of one about no group, and what it is."""
    if message_type == "GroupMetadata":
        return CLASSIC, _METADATA
    for prefix, kind in KINDS.items():
        if message_type.startswith(prefix):
            return kind, message_type.removeprefix(prefix)
    return None, message_type


def group_event(record: CoordinatorRecord) -> GroupEvent | None:
    """None of a record that is not about a group, offset commits among them."""
    return event_of(record.type.name, record.key, record.value)


def event_of(
    message_type: str, key: Mapping[str, Any], value: Mapping[str, Any] | None
) -> GroupEvent | None:
    """The same of the parts of a record, as values or as JSON."""
    kind, what = kind_of(message_type)
    group = key.get("group", key.get("groupId"))
    if kind is None or group is None or message_type == _PASSED_OVER:
        return None
    if value is None:
        return GroupEvent(group, kind, is_tombstone=True, removes=what == _METADATA)
    if kind == CLASSIC and not value["protocolType"] and not value["members"]:
        kind = SIMPLE
    return GroupEvent(group, kind)


def commit_event(group: str) -> GroupEvent:
    """What an offset commit says of its group."""
    return GroupEvent(group, "")


@dataclass(slots=True)
class GroupTypes:
    """The groups that are there after the records so far."""

    kinds: dict[str, str] = field(default_factory=dict)

    def replay(self, event: GroupEvent) -> str | None:
        """The next record; why the load fails with it, None if it does not."""
        group, kind = event.group, event.kind
        known = self.kinds.get(group)
        if not kind:
            self.kinds.setdefault(group, SIMPLE)
        elif kind in (CLASSIC, SIMPLE):
            self._set(group, None if event.is_tombstone else kind)
        elif known is None or known == kind or (known == SIMPLE and kind != KINDS["ShareGroup"]):
            if event.removes:
                self._set(group, None)
            elif known is not None or not event.is_tombstone:
                self._set(group, kind)
        else:
            return f"its group is a {known} group, and the record is of a {kind} group"
        return None

    def _set(self, group: str, kind: str | None) -> None:
        if kind is None:
            self.kinds.pop(group, None)
        else:
            self.kinds[group] = kind
