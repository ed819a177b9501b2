"""States of the logs themselves: segments, indexes, producer snapshots, and the records of
transactions and of coordinators, after a clean stop and after a crash.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.starts.disk import CONTRADICTIONS as AREA
from tests.starts.disk import (
    Change,
    Disk,
    State,
    after_crash,
    changed,
    cut,
    empty,
    gone,
    holds,
    together,
    zeros,
)
from tests.support.packing import pack_control_key
from tests.support.reference.batches import parse_batches

ORDERS, TRANSACTIONS, OFFSETS = "orders-0", "transactions-0", "__consumer_offsets-0"
# orders-0 and transactions-0: three segments each.
O1, O2, O3, O_END = 0, 368, 736, 900
T1, T2, T3, T_END = 0, 216, 414, 434
TIME_MS = 1_764_286_600_000

Bytes = Callable[[bytes], bytes]


def _file(partition: str, offset: int, kind: str) -> str:
    return f"{partition}/{offset:020d}.{kind}"


def _orders(offset: int, kind: str = "log") -> str:
    return _file(ORDERS, offset, kind)


def _transactions(offset: int, kind: str) -> str:
    return _file(TRANSACTIONS, offset, kind)


def _segment_gone(partition: str, base: int) -> Change:
    """All of its files; the snapshot at its base stays, it is of what lies before."""
    kinds = ("log", "index", "timeindex", "txnindex")

    def change(disk: Disk) -> None:
        for kind in kinds:
            disk.path(_file(partition, base, kind)).unlink(missing_ok=True)

    return change


def _all_snapshots(partition: str, change: Callable[[str], Change]) -> Change:
    def every(disk: Disk) -> None:
        for path in sorted(disk.path(partition).glob("*.snapshot")):
            change(f"{partition}/{path.name}")(disk)

    return every


def _flip(at: int) -> Bytes:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _batch(data: bytes, number: int) -> tuple[int, int]:
    """(position, length) of a batch."""
    spans = [(position, header.size_in_bytes) for position, header, _ in parse_batches(data)]
    return spans[number]


def _in_batch(number: int, at: int, new: bytes | None = None) -> Bytes:
    """A byte of a batch is wrong, or bytes become `new`."""

    def change(data: bytes) -> bytes:
        position = _batch(data, number)[0] + at
        if new is None:
            return _flip(position)(data)
        return data[:position] + new + data[position + len(new) :]

    return change


def _without_batch(number: int) -> Bytes:
    def change(data: bytes) -> bytes:
        position, length = _batch(data, number)
        return data[:position] + data[position + length :]

    return change


def _swapped(first: int) -> Bytes:
    def change(data: bytes) -> bytes:
        (a, length), (b, other) = _batch(data, first), _batch(data, first + 1)
        return data[:a] + data[b : b + other] + data[a : a + length] + data[b + other :]

    return change


def _cut_within_last_batch(data: bytes) -> bytes:
    return data[:-20]


def _cut_at_last_batch(data: bytes) -> bytes:
    return data[: _batch(data, -1)[0]]


def _appended(partition: str, base: int, *batches: bytes) -> Change:
    """Batches behind the end, in the segment `base`."""
    return changed(_file(partition, base, "log"), lambda data: data + b"".join(batches))


def _plain(offset: int, value: bytes = b"value", **fields: object) -> bytes:
    fields.setdefault("partition_leader_epoch", 0)
    return pack_batch([Record(offset, TIME_MS, b"key", value)], **fields)  # type: ignore[arg-type]


def _marker(offset: int, key: bytes | None, value: bytes | None) -> bytes:
    """A batch of control records of producer 4711, which has written nothing before."""
    return pack_batch(
        [Record(offset, TIME_MS, key, value)], partition_leader_epoch=0,
        producer_id=4711, producer_epoch=0, is_transactional=True, is_control=True,
    )  # fmt: skip


_COMMIT = pack_control_key(ControlRecordType.COMMIT)
_VALUE = b"\0\0" + bytes(4)


def _copied_segment(base: int, target: int) -> Change:
    def change(disk: Disk) -> None:
        for kind in ("log", "index", "timeindex"):
            shutil.copy2(disk.path(_orders(base, kind)), disk.path(_orders(target, kind)))

    return change


def _offsets(*batches: bytes) -> Change:
    return _appended(OFFSETS, 84, *batches)


def _group_record(offset: int, key: bytes | None, value: bytes | None) -> bytes:
    return pack_batch([Record(offset, TIME_MS, key, value)], partition_leader_epoch=0)


_OFFSET_KEY = b"\0\1" + b"\0\2g1" + b"\0\6orders" + bytes(4)


def _renamed(base: int, target: int) -> Change:
    """All files of a segment of orders-0 under another offset."""

    def change(disk: Disk) -> None:
        for kind in ("log", "index", "timeindex"):
            disk.path(_orders(base, kind)).rename(disk.path(_orders(target, kind)))

    return change


_BOTH = (
    ("segment: torn tail", changed(_orders(O3), _cut_within_last_batch)),
    ("segment: cut between batches", changed(_orders(O3), _cut_at_last_batch)),
    ("segment: zeros behind the end", changed(_orders(O3), lambda data: data + bytes(4096))),
    ("segment: text behind the end", changed(_orders(O3), lambda data: data + b"x" * 200)),
    ("segment: the last one empty", empty(_orders(O3))),
    ("segment: the last one all zeros", zeros(_orders(O3))),
    ("segment: the last .log gone", gone(_orders(O3))),
    ("segment: the last one gone", _segment_gone(ORDERS, O3)),
    ("segment: the middle .log gone", gone(_orders(O2))),
    ("segment: the middle one gone", _segment_gone(ORDERS, O2)),
    ("segment: the middle one empty", empty(_orders(O2))),
    ("segment: the middle one all zeros", zeros(_orders(O2))),
    ("segment: the middle one cut between batches", changed(_orders(O2), _cut_at_last_batch)),
    ("segment: the middle one torn", changed(_orders(O2), _cut_within_last_batch)),
    ("segment: the first one gone", _segment_gone(ORDERS, O1)),
    ("segment: the first one empty", empty(_orders(O1))),
    ("segment: a wrong byte in the last one", changed(_orders(O3), _in_batch(4, 80))),
    ("segment: a wrong byte in the middle one", changed(_orders(O2), _in_batch(4, 80))),
    (
        "segment: a wrong length in the last one",
        changed(_orders(O3), _in_batch(4, 8, b"\0\0\7\0")),
    ),
    (
        "segment: a wrong length in the middle one",
        changed(_orders(O2), _in_batch(4, 8, b"\0\0\7\0")),
    ),
    ("segment: a length below zero", changed(_orders(O3), _in_batch(4, 8, b"\xff\xff\xff\xff"))),
    ("segment: magic 9 in the last one", changed(_orders(O3), _in_batch(4, 16, b"\x09"))),
    ("segment: magic 9 in the middle one", changed(_orders(O2), _in_batch(4, 16, b"\x09"))),
    ("segment: a batch left out of the last one", changed(_orders(O3), _without_batch(4))),
    ("segment: a batch left out of the middle one", changed(_orders(O2), _without_batch(4))),
    ("segment: two batches swapped in the last one", changed(_orders(O3), _swapped(4))),
    ("segment: two batches swapped in the middle one", changed(_orders(O2), _swapped(4))),
    ("segment: the first one once more behind the end", _copied_segment(O1, 2000)),
    ("segment: the middle one renamed to a lower offset", _renamed(O2, O2 - 100)),
    ("segment: the middle one renamed to a higher offset", _renamed(O2, O2 + 100)),
    ("segment: the last one renamed to a lower offset", _renamed(O3, O3 - 100)),
    ("segment: the last one renamed to a higher offset", _renamed(O3, O3 + 100)),
    ("index: gone", gone(_orders(O2, "index"))),
    ("index: empty", empty(_orders(O2, "index"))),
    ("index: zeros", zeros(_orders(O2, "index"))),
    ("index: cut within an entry", cut(_orders(O2, "index"), -3)),
    ("index: of another segment", lambda disk: _copy(disk, _orders(O1, "index"), O2)),
    ("index: of the last segment gone", gone(_orders(O3, "index"))),
    ("index: of the last segment empty", empty(_orders(O3, "index"))),
    ("index: of the last segment zeros", zeros(_orders(O3, "index"))),
    ("index: text", holds(_orders(O2, "index"), b"no index" * 12)),
    ("index: other text", holds(_orders(O2, "index"), b"this is no index at all! " * 8)),
    (
        "index: text behind its entries",
        changed(_orders(O2, "index"), lambda data: data + b"no index" * 9),
    ),
    (
        "index: of the last segment with text behind its entries",
        changed(_orders(O3, "index"), lambda data: data + b"no index" * 9),
    ),
    ("index: of the last segment text", holds(_orders(O3, "index"), b"no index" * 12)),
    ("time index: gone", gone(_orders(O2, "timeindex"))),
    ("time index: empty", empty(_orders(O2, "timeindex"))),
    ("time index: zeros", zeros(_orders(O2, "timeindex"))),
    ("time index: text", holds(_orders(O2, "timeindex"), b"no time index" * 12)),
    ("time index: of the last segment text", holds(_orders(O3, "timeindex"), b"not one " * 12)),
    ("time index: cut within an entry", cut(_orders(O2, "timeindex"), -3)),
    ("time index: of the last segment zeros", zeros(_orders(O3, "timeindex"))),
    ("transaction index: gone", gone(_transactions(T1, "txnindex"))),
    ("transaction index: empty", empty(_transactions(T1, "txnindex"))),
    ("transaction index: zeros", zeros(_transactions(T1, "txnindex"))),
    ("transaction index: cut within an entry", cut(_transactions(T1, "txnindex"), -3)),
    (
        "transaction index: a wrong version",
        changed(_transactions(T1, "txnindex"), lambda data: b"\0\x09" + data[2:]),
    ),
    ("producer snapshot: the newest gone", gone(_transactions(T_END, "snapshot"))),
    ("producer snapshot: the newest empty", empty(_transactions(T_END, "snapshot"))),
    ("producer snapshot: the newest zeros", zeros(_transactions(T_END, "snapshot"))),
    ("producer snapshot: the newest cut", cut(_transactions(T_END, "snapshot"), -7)),
    (
        "producer snapshot: the newest with a wrong byte",
        changed(_transactions(T_END, "snapshot"), _flip(20)),
    ),
    (
        "producer snapshot: the newest of version 2",
        changed(_transactions(T_END, "snapshot"), lambda data: b"\0\2" + data[2:]),
    ),
    (
        "producer snapshot: only the newest left",
        together(gone(_transactions(T2, "snapshot")), gone(_transactions(T3, "snapshot"))),
    ),
    ("producer snapshot: all gone", _all_snapshots(TRANSACTIONS, gone)),
    ("producer snapshot: all empty", _all_snapshots(TRANSACTIONS, empty)),
    ("producer snapshot: the newest of another log", lambda disk: _copy_snapshot(disk)),
    ("producer snapshot: one within a segment", lambda disk: _snapshot_at(disk, 300)),
    ("producer snapshot: all of an idempotent log gone", _all_snapshots("idempotent-0", gone)),
    (
        "control record: a marker without data before it",
        _appended(ORDERS, O3, _marker(O_END, _COMMIT, _VALUE)),
    ),
    ("control record: no value", _appended(ORDERS, O3, _marker(O_END, _COMMIT, None))),
    ("control record: a short value", _appended(ORDERS, O3, _marker(O_END, _COMMIT, b"\0\0"))),
    (
        "control record: a value of a version below zero",
        _appended(ORDERS, O3, _marker(O_END, _COMMIT, b"\xff\xff" + bytes(4))),
    ),
    (
        "control record: a value of version 1",
        _appended(ORDERS, O3, _marker(O_END, _COMMIT, b"\0\1" + bytes(4))),
    ),
    (
        "control record: an unknown type",
        _appended(ORDERS, O3, _marker(O_END, b"\0\0\0\x63", _VALUE)),
    ),
    ("control record: no key", _appended(ORDERS, O3, _marker(O_END, None, _VALUE))),
    ("control record: a short key", _appended(ORDERS, O3, _marker(O_END, b"\0", _VALUE))),
    (
        "control record: a key of a version below zero",
        _appended(ORDERS, O3, _marker(O_END, b"\xff\xff\0\1", _VALUE)),
    ),
    (
        "control record: a leader change",
        _appended(
            ORDERS,
            O3,
            _marker(O_END, pack_control_key(ControlRecordType.LEADER_CHANGE), b"\0\0\0\0"),
        ),
    ),
)
_CLEAN = (
    (
        "batch: a leader epoch above the checkpoint's",
        _appended(ORDERS, O3, _plain(O_END, partition_leader_epoch=1)),
    ),
    ("batch: no leader epoch", _appended(ORDERS, O3, _plain(O_END, partition_leader_epoch=-1))),
    ("batch: an offset comes again", _appended(ORDERS, O3, _plain(O_END - 5))),
    (
        "batch: a timestamp below zero",
        _appended(
            ORDERS, O3, pack_batch([Record(O_END, -5000, b"k", b"v")], partition_leader_epoch=0)
        ),
    ),
    (
        "batch: a null key in a compacted topic",
        _appended(
            "compacted-0",
            840,
            pack_batch([Record(960, TIME_MS, None, b"v")], partition_leader_epoch=0),
        ),
    ),
    (
        "group record: an offset commit cut short",
        _offsets(_group_record(98, _OFFSET_KEY, b"\0\3" + bytes(8))),
    ),
    (
        "group record: a commit of an unknown version",
        _offsets(_group_record(98, _OFFSET_KEY, b"\0\x63" + bytes(24))),
    ),
    (
        "group record: an unknown key version",
        _offsets(_group_record(98, b"\0\x63" + bytes(8), b"\0\0")),
    ),
    ("group record: no key", _offsets(_group_record(98, None, b"\0\0"))),
    ("group record: an empty key", _offsets(_group_record(98, b"", b"\0\0"))),
    ("group record: a key of one byte", _offsets(_group_record(98, b"\0", b"\0\0"))),
    (
        "group record: a key cut short",
        _offsets(_group_record(98, _OFFSET_KEY[:5], b"\0\3" + bytes(24))),
    ),
    ("group record: an empty value", _offsets(_group_record(98, _OFFSET_KEY, b""))),
    (
        "group record: a tombstone of an unknown group",
        _offsets(_group_record(98, _OFFSET_KEY, None)),
    ),
    (
        "transaction record: cut short",
        _appended("__transaction_state-0", 0, _group_record(0, b"\0\0\0\2t1", b"\0\0" + bytes(5))),
    ),
    (
        "transaction record: an unknown version",
        _appended(
            "__transaction_state-0", 0, _group_record(0, b"\0\0\0\2t1", b"\0\x63" + bytes(30))
        ),
    ),
    (
        "transaction record: an unknown key version",
        _appended(
            "__transaction_state-0", 0, _group_record(0, b"\0\x63\0\2t1", b"\0\0" + bytes(30))
        ),
    ),
    (
        "transaction record: no key",
        _appended("__transaction_state-0", 0, _group_record(0, None, b"\0\0" + bytes(30))),
    ),
    (
        "transaction record: a state that is none",
        _appended(
            "__transaction_state-0",
            0,
            _group_record(
                0, b"\0\0\0\2t1", b"\0\0" + bytes(8) + b"\0\0" + b"\0\0\0\1" + b"\x63" + bytes(24)
            ),
        ),
    ),
)


def _copy(disk: Disk, name: str, base: int) -> None:
    shutil.copy2(disk.path(name), disk.path(_orders(base, "index")))


def _copy_snapshot(disk: Disk) -> None:
    source = disk.path(_transactions(T2, "snapshot"))
    shutil.copy2(source, disk.path(_transactions(T_END, "snapshot")))


def _snapshot_at(disk: Disk, offset: int) -> None:
    source = disk.path(_transactions(T3, "snapshot"))
    shutil.copy2(source, disk.path(_transactions(offset, "snapshot")))


STATES = (
    *(State("logs", name, do) for name, do in (*_BOTH, *_CLEAN)),
    *(State("logs", f"{name}, after a crash", after_crash(do)) for name, do in _BOTH),
)
# Only a broker whose log reached an offset has a snapshot of that name; nothing compacts orders-0.
_AGAINST = (
    ("producer snapshot: one beyond the end", lambda disk: _snapshot_at(disk, 9000)),
    ("batch: an offset is left out before it", _appended(ORDERS, O3, _plain(O_END + 5))),
    ("batch: an offset far above the segment's base", _appended(ORDERS, O3, _plain(2**31 + 5000))),
)
CONTRADICTIONS = (
    *(State(AREA, name, do) for name, do in _AGAINST),
    *(State(AREA, f"{name}, after a crash", after_crash(do)) for name, do in _AGAINST),
)
