"""Groups that change their type, and what a broker of Kafka 4.3.1 makes of each when it loads them
(`tests/oracle/test_group_types.py` asks one again).
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalog.messages.consumer_group_records import (
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
)
from kafkalog.messages.coordinator_record import RecordType
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.messages.share_group_records import SHARE_GROUP_METADATA
from kafkalog.messages.streams_group_records import STREAMS_GROUP_METADATA
from tests.support.message_encoder import encode_key, encode_value

# What stands for a record in CHANGES; with a minus its tombstone.
_TYPES: dict[str, tuple[RecordType, dict[str, object]]] = {
    "classic": (GROUP_METADATA, {"protocolType": "consumer", "generation": 2}),
    "simple": (GROUP_METADATA, {"protocolType": "", "generation": 0}),
    "consumer": (CONSUMER_GROUP_METADATA, {"epoch": 3}),
    "member": (CONSUMER_GROUP_MEMBER_METADATA, {}),
    "target": (CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 3}),
    "share": (SHARE_GROUP_METADATA, {"epoch": 4}),
    "streams": (STREAMS_GROUP_METADATA, {"epoch": 5}),
    "commit": (OFFSET_COMMIT, {"offset": 7, "metadata": "", "commitTimestamp": 1}),
}


@dataclass(frozen=True)
class Change:
    """The records of one group; the type it has afterwards, None for no group, or the number of the
    record with which the load fails.
    """

    records: tuple[str, ...]
    kind: str | None = None
    fails_at: int | None = None

    def pairs(self, group: str) -> list[tuple[bytes, bytes | None]]:
        """Keys and values."""
        found = []
        for name in self.records:
            known, fields = _TYPES[name.lstrip("-")]
            own = {"group": group, "topic": "orders", "partition": 0}
            if known not in (GROUP_METADATA, OFFSET_COMMIT):
                own = {"groupId": group, "memberId": "m-1"}
            version = min(3, known.value.versions.last)
            value = None if name.startswith("-") else encode_value(known.value, version, fields)
            found.append((encode_key(known.key, own), value))
        return found


# A coordinator wants to hear of the end of the assignment first.
GONE = ("-target", "-consumer")
CHANGES: dict[str, Change] = {
    "classic-to-consumer": Change(("classic", "consumer"), fails_at=1),
    "classic-to-consumer-in-order": Change(("classic", "-classic", "consumer"), "consumer"),
    "classic-to-share": Change(("classic", "share"), fails_at=1),
    "classic-to-streams": Change(("classic", "streams"), fails_at=1),
    "consumer-to-classic": Change(("consumer", "member", "classic"), "classic"),
    "consumer-to-share": Change(("consumer", "share"), fails_at=1),
    "share-to-consumer": Change(("share", "member"), fails_at=1),
    "streams-to-classic": Change(("streams", "classic"), "classic"),
    "simple-to-consumer": Change(("simple", "consumer"), "consumer"),
    "simple-to-streams": Change(("simple", "streams"), "streams"),
    "simple-to-share": Change(("simple", "share"), fails_at=1),
    "commit-to-consumer": Change(("commit", "consumer"), "consumer"),
    "commit-to-share": Change(("commit", "-commit", "share"), fails_at=2),
    "share-and-commit": Change(("share", "commit"), "share"),
    "classic-tombstone-of-consumer": Change(("consumer", "-classic"), None),
    "consumer-tombstone-of-classic": Change(("classic", "-consumer"), fails_at=1),
    "consumer-tombstones-of-simple": Change(("simple", *GONE), None),
    "member-tombstone-of-simple": Change(("simple", "-member"), "consumer"),
    "consumer-tombstone-of-nothing": Change(("-consumer", "classic"), "classic"),
    "consumer-to-share-in-order": Change(("consumer", *GONE, "share"), "share"),
}
