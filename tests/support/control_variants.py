"""Control records as they should not be, and what Kafka's loader and cleaner make of each (4.3.1;
`tests/oracle/test_control_batches.py` asks them again).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch, with_crc

PRODUCER = 5


@dataclass(frozen=True)
class Variant:
    """A control batch's first record. loads, cleans: whether Kafka's loader (after a crash) and its
    cleaner go on with it. damage: bytes of the batch from a place on.
    """

    key: bytes | None
    value: bytes | None
    loads: bool
    cleans: bool
    producer_id: int = PRODUCER
    codec: int = 0
    damage: tuple[int, bytes] | None = None

    def batch(self, offset: int, timestamp: int) -> bytes:
        has_producer = self.producer_id >= 0
        batch = pack_batch(
            [Record(offset, timestamp, self.key, self.value)],
            producer_id=self.producer_id,
            producer_epoch=0 if has_producer else -1,
            partition_leader_epoch=0,
            is_transactional=has_producer,
            is_control=True,
            codec=self.codec,
        )
        if self.damage is not None:
            at, data = self.damage
            batch = with_crc(batch[:at] + data + batch[at + len(data) :])
        return batch


def _key(version: int, number: int) -> bytes:
    return struct.pack(">hh", version, number)


def _value(version: int, epoch: int = 0) -> bytes:
    return struct.pack(">hi", version, epoch)


_ABORT, _COMMIT, _ENDS = _key(0, 0), _key(0, 1), _value(0)

VARIANTS = {
    "abort": Variant(_ABORT, _ENDS, True, True),
    "commit": Variant(_COMMIT, _ENDS, True, True),
    "in gzip": Variant(_COMMIT, _ENDS, True, True, codec=1),
    "newer versions": Variant(_key(9, 1), _value(1), True, True),
    "longer": Variant(_ABORT + b"zz", _ENDS + b"zz", True, True),
    "negative coordinator epoch": Variant(_ABORT, _value(0, -5), True, True),
    "no value": Variant(_ABORT, None, False, True),
    "empty value": Variant(_COMMIT, b"", False, True),
    "value of 5 bytes": Variant(_ABORT, b"\0" * 5, False, True),
    "value of version -1": Variant(_COMMIT, _value(-1), False, True),
    "no value in gzip": Variant(_COMMIT, None, False, True, codec=1),
    "leader change": Variant(_key(0, 2), _ENDS, False, True),
    "voters": Variant(_key(0, 6), None, False, True),
    "type 7": Variant(_key(0, 7), _ENDS, False, True),
    "type -1": Variant(_key(0, -1), _ENDS, False, True),
    "no key": Variant(None, _ENDS, False, False),
    "key of 3 bytes": Variant(b"\0\0\0", _ENDS, False, False),
    "key of version -1": Variant(_key(-1, 0), _ENDS, False, False),
    "wrong record length": Variant(_ABORT, _ENDS, False, False, damage=(61, b"\x7e")),
    "of no producer: type 7": Variant(_key(0, 7), _ENDS, True, True, producer_id=-1),
    "of no producer: no value": Variant(_ABORT, None, True, True, producer_id=-1),
    "of no producer: no key": Variant(None, _ENDS, True, False, producer_id=-1),
    "of no producer: key of 2 bytes": Variant(b"\0\0", _ENDS, True, False, producer_id=-1),
}
