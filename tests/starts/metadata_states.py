"""States of the cluster's metadata log, `__cluster_metadata-0`: its segments, its records, and the
snapshots beside them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.metadata_records import read_metadata_records
from tests.starts.disk import CONTRADICTIONS as AREA
from tests.starts.disk import (
    METADATA,
    OTHER_ID,
    Change,
    Disk,
    State,
    after_crash,
    changed,
    empty,
    gone,
    holds,
    together,
    zeros,
)
from tests.support import metadata_builder as records
from tests.support.packing import pack_control_key
from tests.support.reference.batches import parse_batches

LOG = f"{METADATA}/{0:020d}.log"
END, EPOCH, TIME_MS = 167, 1, 1_764_286_600_000
# Behind the creation of the topics, in front of the node's last stop.
MIDDLE = 140
EVERYTHING_LATER = (".index", ".timeindex")


def _snapshot_bytes(disk: Disk, end: int, more: tuple[bytes, ...] = ()) -> bytes:
    """A snapshot at offset `end` of what the log says below it."""
    read = read_metadata_records([(0, disk.path(LOG))], 0)
    values = [r.value for r in read if r.offset < end and r.control_type is None]
    # Frame version 1, then the type: a snapshot has no transactions.
    values = [value for value in values if value and value[1] not in (23, 24)]
    data = [Record(1 + n, TIME_MS, None, value) for n, value in enumerate([*values, *more])]
    parts = [_control(0, ControlRecordType.SNAPSHOT_HEADER, bytes(11))]
    parts += [
        pack_batch(data[at : at + 50], partition_leader_epoch=EPOCH)
        for at in range(0, len(data), 50)
    ]
    parts.append(_control(1 + len(data), ControlRecordType.SNAPSHOT_FOOTER, bytes(3)))
    return b"".join(parts)


def _control(offset: int, kind: ControlRecordType, value: bytes) -> bytes:
    return pack_batch([Record(offset, TIME_MS, pack_control_key(kind), value)], is_control=True)


def _snapshot_path(end: int, epoch: int = EPOCH, suffix: str = "") -> str:
    return f"{METADATA}/{end:020d}-{epoch:010d}.checkpoint{suffix}"


def _snapshot(
    end: int = MIDDLE,
    change: Callable[[bytes], bytes] = lambda data: data,
    *,
    suffix: str = "",
    epoch: int = EPOCH,
    more: tuple[bytes, ...] = (),
) -> Change:
    def do(disk: Disk) -> None:
        data = change(_snapshot_bytes(disk, end, more))
        disk.path(_snapshot_path(end, epoch, suffix)).write_bytes(data)

    return do


def _without_last_batches(data: bytes) -> bytes:
    """Neither the footer nor the last batch of data."""
    return b"".join(batch for _, batch in list(_batches(data))[:-2])


def _without_footer(data: bytes) -> bytes:
    return b"".join(batch for _, batch in list(_batches(data))[:-1])


def _batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position, header, _ in parse_batches(data):
        yield header.base_offset, data[position : position + header.size_in_bytes]


def _log_from(start: int) -> Change:
    """The log has no batch below that of `start` any more: its segment begins there."""

    def do(disk: Disk) -> None:
        kept = [
            (base, batch) for base, batch in _batches(disk.path(LOG).read_bytes()) if base >= start
        ]
        for suffix in (".log", *EVERYTHING_LATER):
            disk.path(LOG).with_suffix(suffix).unlink(missing_ok=True)
        first = kept[0][0]
        disk.path(f"{METADATA}/{first:020d}.log").write_bytes(b"".join(b for _, b in kept))

    return do


def _batch_at(data: bytes, offset: int) -> int:
    """The position of the batch that holds an offset."""
    position = 0
    for base, batch in _batches(data):
        if base > offset:
            break
        position = data.index(batch)
    return position


def _until(offset: int) -> Change:
    """The log ends in front of the batch that holds `offset`."""
    return changed(LOG, lambda data: data[: _batch_at(data, offset)])


def _flip_at(offset: int) -> Change:
    def change(data: bytes) -> bytes:
        at = _batch_at(data, offset) + 70
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    return changed(LOG, change)


def _appended(*values: bytes | None) -> Change:
    """Records behind the end, as a controller of the same epoch writes them."""
    data = [Record(END + n, TIME_MS, None, value) for n, value in enumerate(values)]
    batch = pack_batch(data, partition_leader_epoch=EPOCH)
    return changed(LOG, lambda old: old + batch)


def _appended_batch(batch: bytes) -> Change:
    return changed(LOG, lambda old: old + batch)


def _no_op_at(offset: int) -> bytes:
    record = Record(offset, TIME_MS, None, records.no_op())
    return pack_batch([record], partition_leader_epoch=EPOCH)


def _directory_gone(disk: Disk) -> None:
    shutil.rmtree(disk.path(METADATA))


def _directory_empty(disk: Disk) -> None:
    for path in disk.path(METADATA).iterdir():
        path.unlink()


NEW_ID = "6L6g3nShT-eMCtK--X86sw"
_FRAME_0 = records.frame(2, 0, records.text("x") + records.uuid(NEW_ID) + b"\0", frame_version=0)

_LOG = (
    ("log: its directory gone", _directory_gone),
    ("log: its directory empty", _directory_empty),
    ("log: the segment gone", gone(LOG)),
    ("log: the segment empty", empty(LOG)),
    ("log: the segment all zeros", zeros(LOG)),
    ("log: torn within a topic", changed(LOG, lambda data: data[: _batch_at(data, 128) + 90])),
    ("log: ends before the last topic", _until(128)),
    ("log: ends before the topics", _until(30)),
    ("log: zeros behind the end", changed(LOG, lambda data: data + bytes(4096))),
    ("log: a wrong byte in the last topic", _flip_at(128)),
    ("log: a wrong byte in the middle", _flip_at(80)),
    ("log: a wrong byte in the first data batch", _flip_at(2)),
    ("log: begins late, no snapshot", _log_from(MIDDLE)),
    ("log: no index", gone(LOG.replace(".log", ".index"))),
    ("log: no time index", gone(LOG.replace(".log", ".timeindex"))),
    ("log: an index of zeros", holds(LOG.replace(".log", ".index"), bytes(80))),
    ("log: no producer snapshot", gone(f"{METADATA}/{END:020d}.snapshot")),
    ("log: an empty producer snapshot", empty(f"{METADATA}/{END:020d}.snapshot")),
    ("log: after a crash", after_crash(lambda disk: None)),
    ("log: a foreign file", holds(f"{METADATA}/old.log", b"x")),
    ("log: a foreign checkpoint", holds(f"{METADATA}/old.checkpoint", b"x")),
)
_RECORDS = (
    ("record: a topic more", _appended(records.topic("x", NEW_ID), records.partition([1], NEW_ID))),
    ("record: no value", _appended(None)),
    ("record: an empty value", _appended(b"")),
    ("record: of an unknown type", _appended(records.frame(999, 0, b"\0"))),
    ("record: of an unknown version", _appended(records.frame(2, 9, b"\0"))),
    ("record: frame version 0", _appended(_FRAME_0)),
    ("record: frame version 2", _appended(records.frame(20, 0, b"\0", frame_version=2))),
    ("record: cut", _appended(records.topic("x", NEW_ID)[:-4])),
    ("record: bytes behind its end", _appended(records.no_op() + b"more")),
    ("record: nothing is to be done", _appended(records.no_op())),
    ("record: a topic is removed that never was", _appended(records.remove_topic(OTHER_ID))),
    ("record: a topic is created twice", _appended(records.topic("orders", NEW_ID))),
    ("record: a partition without its topic", _appended(records.partition([1], NEW_ID))),
    (
        "record: a change of a partition without its topic",
        _appended(records.change_replicas([1], NEW_ID)),
    ),
    ("record: a transaction is begun", _appended(records.begin())),
    ("record: a transaction within another", _appended(records.begin(), records.begin())),
    ("record: a transaction ends that did not begin", _appended(records.end())),
    ("record: a transaction is aborted that did not begin", _appended(records.abort())),
    ("record: an unknown feature", _appended(records.feature("no.such.feature", 1))),
    (
        "record: a metadata.version from the future",
        _appended(records.feature("metadata.version", 999)),
    ),
    ("record: metadata.version of 4.4", _appended(records.feature("metadata.version", 31))),
    # A controller refuses to lower it where something that is there would be lost.
    ("record: metadata.version of 4.2", _appended(records.feature("metadata.version", 29))),
    ("record: metadata.version of 3.7, early", _appended(records.feature("metadata.version", 16))),
    ("record: metadata.version of 3.6", _appended(records.feature("metadata.version", 14))),
    ("record: metadata.version of 3.2", _appended(records.feature("metadata.version", 6))),
    ("record: transaction.version 9", _appended(records.feature("transaction.version", 9))),
    ("record: a setting nobody knows", _appended(records.config("orders", "no.such.setting", "1"))),
    (
        "record: a setting with a wrong value",
        _appended(records.config("orders", "retention.ms", "soon")),
    ),
    (
        "record: a leader epoch falls",
        _appended_batch(
            pack_batch([Record(END, TIME_MS, None, records.no_op())], partition_leader_epoch=0)
        ),
    ),
    (
        "record: a control record without a value",
        _appended_batch(
            pack_batch(
                [Record(END, TIME_MS, pack_control_key(ControlRecordType.LEADER_CHANGE), None)],
                is_control=True,
                partition_leader_epoch=EPOCH,
            )
        ),
    ),
    (
        "record: a control record of an unknown type",
        _appended_batch(
            pack_batch(
                [Record(END, TIME_MS, b"\0\0\0\x63", b"\0\0")],
                is_control=True,
                partition_leader_epoch=EPOCH,
            )
        ),
    ),
    (
        "record: a control record without a key",
        _appended_batch(
            pack_batch(
                [Record(END, TIME_MS, None, b"\0\0")], is_control=True, partition_leader_epoch=EPOCH
            )
        ),
    ),
)
_SNAPSHOTS = (
    ("snapshot: whole, beside the whole log", _snapshot()),
    ("snapshot: empty", _snapshot(change=lambda data: b"")),
    ("snapshot: zeros", _snapshot(change=lambda data: bytes(len(data)))),
    ("snapshot: cut", _snapshot(change=lambda data: data[:-200])),
    ("snapshot: without its footer", _snapshot(change=_without_footer)),
    ("snapshot: one byte short", _snapshot(change=lambda data: data[:-1])),
    ("snapshot: ends within its footer", _snapshot(change=lambda data: data[:-30])),
    (
        "snapshot: without its footer, the log begins at its end",
        together(_snapshot(change=_without_footer), _log_from(MIDDLE)),
    ),
    (
        "snapshot: one byte short, the log begins at its end",
        together(_snapshot(change=lambda data: data[:-1]), _log_from(MIDDLE)),
    ),
    ("snapshot: zeros behind its end", _snapshot(change=lambda data: data + bytes(100))),
    ("snapshot: text behind its end", _snapshot(change=lambda data: data + b"text" * 25)),
    (
        "snapshot: an older one empty, the newest whole",
        together(_snapshot(100, lambda data: b""), _snapshot()),
    ),
    (
        "snapshot: an older one with a wrong byte, the newest whole",
        together(
            _snapshot(100, lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:]),
            _snapshot(),
        ),
    ),
    ("snapshot: ends before the last topic", _snapshot(change=_without_last_batches)),
    (
        "snapshot: a wrong byte",
        _snapshot(change=lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:]),
    ),
    ("snapshot: a record of an unknown type", _snapshot(more=(records.frame(999, 0, b"\0"),))),
    ("snapshot: a cut record", _snapshot(more=(records.topic("x", NEW_ID)[:-4],))),
    ("snapshot: a topic twice", _snapshot(more=(records.topic("orders", NEW_ID),))),
    ("snapshot: a removed topic that never was", _snapshot(more=(records.remove_topic(OTHER_ID),))),
    ("snapshot: ends within a transaction", _snapshot(more=(records.begin(),))),
    ("snapshot: the log begins behind it, at its end", together(_snapshot(), _log_from(MIDDLE))),
    ("snapshot: the log begins before its end", together(_snapshot(), _log_from(100))),
    ("snapshot: a gap to the log's start", together(_snapshot(100), _log_from(MIDDLE))),
    (
        "snapshot: empty, the log begins at its end",
        together(_snapshot(change=lambda data: b""), _log_from(MIDDLE)),
    ),
    (
        "snapshot: the newest empty, an older whole",
        together(_snapshot(100), _snapshot(change=lambda data: b"")),
    ),
    (
        "snapshot: the newest empty, an older whole, the log begins there",
        together(_snapshot(100), _snapshot(MIDDLE, lambda data: b""), _log_from(100)),
    ),
    ("snapshot: ahead of the log", together(_snapshot(END), _until(MIDDLE))),
    ("snapshot: ahead of an empty log", together(_snapshot(END), empty(LOG))),
    ("snapshot: of a higher epoch", _snapshot(epoch=EPOCH + 3)),
    ("snapshot: within a batch of the log", _snapshot(145)),
    ("snapshot: .part left behind", _snapshot(suffix=".part")),
    ("snapshot: .deleted left behind", _snapshot(suffix=".deleted")),
    ("snapshot: of the log's end", _snapshot(END)),
)

STATES = (
    *(State("metadata log", name, do) for name, do in (*_LOG, *_RECORDS)),
    *(State("metadata snapshots", name, do) for name, do in _SNAPSHOTS),
)
# A controller leaves no offset out, and gives none twice.
CONTRADICTIONS = tuple(
    State(AREA, name, do)
    for name, do in (
        ("record: an offset is left out", _appended_batch(_no_op_at(END + 5))),
        ("record: an offset comes again", _appended_batch(_no_op_at(END - 5))),
        ("log: ends before the last record", _until(END - 1)),
        ("log: ends before the node's stop", _until(MIDDLE)),
    )
)
