"""Records of coordinators' topics as they should not be, and what a broker of Kafka 4.3.1 makes of
each when it loads the partition (`tests/oracle/test_coordinator_loading.py` asks one again).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum

from kafkalog.format.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kafkalog.messages.consumer_group_records import CONSUMER_GROUP_METADATA
from kafkalog.messages.coordinator_record import RecordType
from kafkalog.messages.group_records import GROUP_METADATA, OFFSET_COMMIT
from kafkalog.messages.share_state_records import SHARE_STATE_TYPES
from kafkalog.messages.transaction_records import TRANSACTION_LOG
from tests.support.message_encoder import encode_key, encode_value

NOW_MS = 1_795_900_000_000


class Loads(StrEnum):
    """What a coordinator makes of a record."""

    YES = "yes"
    PASSED_OVER = "passed over"
    NO = "no"


@dataclass(frozen=True)
class Variant:
    topic: str
    key: bytes | None
    value: bytes | None
    loads: Loads


def _text(data: bytes) -> bytes:
    return struct.pack(">h", len(data)) + data


def _short(number: int) -> bytes:
    return struct.pack(">h", number)


def _value(kind: RecordType, version: int | None = None, **fields: object) -> bytes:
    last = kind.value.versions.last
    return encode_value(kind.value, last if version is None else version, fields)


_KEY = encode_key(OFFSET_COMMIT.key, {"group": "g1", "topic": "orders", "partition": 0})
_COMMIT = _value(OFFSET_COMMIT, 3, offset=7, leaderEpoch=-1, metadata="", commitTimestamp=NOW_MS)
_COMMIT_4 = _value(OFFSET_COMMIT, 4, offset=7, metadata="", commitTimestamp=NOW_MS)
_GROUP_KEY = encode_key(GROUP_METADATA.key, {"group": "g2"})
_GROUP = _value(GROUP_METADATA, protocolType="consumer")
_NEW_KEY = encode_key(CONSUMER_GROUP_METADATA.key, {"groupId": "g3"})
_NEW = _value(CONSUMER_GROUP_METADATA, epoch=3)
_ID = encode_key(TRANSACTION_LOG.key, {"transactionalId": "tx1"})
_STATE = {
    "producerId": 7, "producerEpoch": 0, "transactionTimeoutMs": 60_000, "transactionStatus": 0,
    "transactionPartitions": None, "transactionLastUpdateTimestampMs": NOW_MS,
    "transactionStartTimestampMs": NOW_MS,
}  # fmt: skip
_TRANSACTION = _value(TRANSACTION_LOG, 0, **_STATE)
_SNAPSHOT = SHARE_STATE_TYPES[0]
_SHARE_KEY = encode_key(
    _SNAPSHOT.key, {"groupId": "s", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 0}
)
_SHARE = _value(_SNAPSHOT, snapshotEpoch=1, stateEpoch=1, leaderEpoch=0, startOffset=0)

_OFFSETS: dict[str, tuple[bytes | None, bytes | None, Loads]] = {
    "commit": (_KEY, _COMMIT, Loads.YES),
    "commit cut": (_KEY, _COMMIT[:14], Loads.NO),
    "commit of version 9": (_KEY, _short(9) + _COMMIT_4[2:], Loads.NO),
    "commit of version -1": (_KEY, _short(-1) + _COMMIT[2:], Loads.NO),
    "commit and more": (_KEY, _COMMIT + b"zz", Loads.YES),
    "commit with null metadata": (
        _KEY, struct.pack(">hqihq", 3, 7, -1, -1, NOW_MS), Loads.NO,
    ),
    "commit with a cut tag": (_KEY, _COMMIT_4[:-1] + b"\1\0\20ab", Loads.NO),
    "commit of an empty value": (_KEY, b"", Loads.NO),
    "commit of one byte": (_KEY, b"\0", Loads.NO),
    "tombstone": (_KEY, None, Loads.YES),
    "unknown type": (_short(99) + b"abc", b"xyz", Loads.PASSED_OVER),
    "tombstone of an unknown type": (_short(100), None, Loads.PASSED_OVER),
    "negative type": (_short(-1) + b"abc", b"xyz", Loads.PASSED_OVER),
    "no key": (None, _COMMIT, Loads.NO),
    "empty key": (b"", _COMMIT, Loads.NO),
    "key cut": (_KEY[:9], _COMMIT, Loads.NO),
    "tombstone with a cut key": (_KEY[:9], None, Loads.NO),
    "key and more": (_KEY + b"zz", _COMMIT, Loads.YES),
    "group": (_GROUP_KEY, _GROUP, Loads.YES),
    "group cut": (_GROUP_KEY, _GROUP[:9], Loads.NO),
    "group of version 9": (_GROUP_KEY, _short(9) + _GROUP[2:], Loads.NO),
    "group and more": (_GROUP_KEY, _GROUP + b"zz", Loads.YES),
    "consumer group": (_NEW_KEY, _NEW, Loads.YES),
    "consumer group cut": (_NEW_KEY, _NEW[:4], Loads.NO),
    "consumer group of version 5": (_NEW_KEY, _short(5) + _NEW[2:], Loads.NO),
    "consumer group without a name": (_short(3) + _short(-1), _NEW, Loads.NO),
    "group with a wrong name": (
        _short(1) + _text(b"\xff\xfe") + _text(b"t") + bytes(4), _COMMIT, Loads.YES,
    ),
}  # fmt: skip
_TRANSACTIONS: dict[str, tuple[bytes | None, bytes | None, Loads]] = {
    "id": (_ID, _TRANSACTION, Loads.YES),
    "cut": (_ID, _TRANSACTION[:9], Loads.NO),
    "version 9": (_ID, _short(9) + _TRANSACTION[2:], Loads.PASSED_OVER),
    "version -1": (_ID, _short(-1) + _TRANSACTION[2:], Loads.PASSED_OVER),
    "and more": (_ID, _TRANSACTION + b"zz", Loads.YES),
    "unknown type": (_short(5) + _ID[2:], _TRANSACTION, Loads.PASSED_OVER),
    "key cut": (_ID[:4], _TRANSACTION, Loads.NO),
    "tombstone with a cut key": (_ID[:4], None, Loads.NO),
    "no key": (None, _TRANSACTION, Loads.NO),
    "empty value": (_ID, b"", Loads.NO),
    "no id": (_short(0) + _short(-1), _TRANSACTION, Loads.NO),
    "status 99": (_ID, _value(TRANSACTION_LOG, 0, **_STATE | {"transactionStatus": 99}), Loads.NO),
    "ongoing without partitions": (
        _ID, _value(TRANSACTION_LOG, 0, **_STATE | {"transactionStatus": 1}), Loads.NO,
    ),
    "version 1 cut": (_ID, _value(TRANSACTION_LOG, 1, **_STATE)[:-3], Loads.NO),
}  # fmt: skip
_SHARES: dict[str, tuple[bytes | None, bytes | None, Loads]] = {
    "snapshot": (_SHARE_KEY, _SHARE, Loads.YES),
    "cut": (_SHARE_KEY, _SHARE[:6], Loads.NO),
    "version 9": (_SHARE_KEY, _short(9) + _SHARE[2:], Loads.NO),
    "and more": (_SHARE_KEY, _SHARE + b"zz", Loads.YES),
    "unknown type": (_short(9) + _SHARE_KEY[2:], _SHARE, Loads.PASSED_OVER),
    "key cut": (_SHARE_KEY[:6], _SHARE, Loads.NO),
    "no key": (None, _SHARE, Loads.NO),
    "empty value": (_SHARE_KEY, b"", Loads.NO),
}

VARIANTS = {
    f"{topic}: {name}": Variant(topic, *parts)
    for topic, table in (
        (OFFSETS_TOPIC, _OFFSETS),
        (TRANSACTION_TOPIC, _TRANSACTIONS),
        (SHARE_STATE_TOPIC, _SHARES),
    )
    for name, parts in table.items()
}
