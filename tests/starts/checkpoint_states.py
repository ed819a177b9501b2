"""States of the small text files: the four offset checkpoints of a log dir, and what each partition
has of its own, `partition.metadata` and `leader-epoch-checkpoint`.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalog.format.checkpoints import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
)
from tests.starts.disk import CONTRADICTIONS as AREA
from tests.starts.disk import (
    METADATA,
    OTHER_ID,
    Change,
    State,
    after_crash,
    changed,
    cut,
    empty,
    gone,
    holds,
    replaced,
    together,
    zeros,
)

ORDERS = "orders-0"
COMPACTED = "compacted-0"
TOPIC_ID = f"{ORDERS}/partition.metadata"
EPOCHS = f"{ORDERS}/leader-epoch-checkpoint"

Lines = list[bytes]


def _topic_id(text: str) -> bytes:
    return f"version: 0\ntopic_id: {text}".encode()


def _lines(name: str, change: Callable[[Lines], Lines]) -> Change:
    return changed(name, lambda data: b"\n".join(change(data.split(b"\n"))))


def _line_of(name: str, topic_partition: str, offset: str) -> Change:
    """The line of a partition says another offset, or is added."""
    topic, _, partition = topic_partition.rpartition("-")
    start = f"{topic} {partition} ".encode()

    def change(lines: Lines) -> Lines:
        others = [line for line in lines[2:] if line and not line.startswith(start)]
        entries = [*others, start + offset.encode()]
        return [lines[0], str(len(entries)).encode(), *entries, b""]

    return _lines(name, change)


def _count(difference: int) -> Callable[[Lines], Lines]:
    return lambda lines: [lines[0], str(int(lines[1]) + difference).encode(), *lines[2:]]


def _extra(*more: bytes) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        entries = [line for line in lines[2:] if line] + list(more)
        return [lines[0], str(len(entries)).encode(), *entries, b""]

    return change


def _of_all(file: str) -> tuple[tuple[str, Change], ...]:
    """What is tried with each of the four checkpoints."""
    return (
        (f"{file}: gone", gone(file)),
        (f"{file}: empty", empty(file)),
        (f"{file}: zeros", zeros(file)),
        (f"{file}: cut within the last line", cut(file, -3)),
        (f"{file}: version 1", _lines(file, lambda lines: [b"1", *lines[1:]])),
        (f"{file}: an offset below zero", _line_of(file, ORDERS, "-5")),
        (f"{file}: an offset that is no number", _line_of(file, ORDERS, "9x")),
    )


_RECOVERY = (
    *_of_all(RECOVERY_POINT_FILE),
    *(
        (f"{RECOVERY_POINT_FILE}: {what}", do)
        for what, do in (
            ("only its version", holds(RECOVERY_POINT_FILE, b"0\n")),
            ("cut behind the first entry", cut(RECOVERY_POINT_FILE, 30)),
            ("two entries more than lines", _lines(RECOVERY_POINT_FILE, _count(2))),
            ("fewer entries than lines", _lines(RECOVERY_POINT_FILE, _count(-1))),
            ("the count is below zero", _lines(RECOVERY_POINT_FILE, lambda _: [b"0", b"-1", b""])),
            (
                "a partition twice",
                _lines(RECOVERY_POINT_FILE, _extra(b"orders 0 10", b"orders 0 900")),
            ),
            (
                "a partition that is not there",
                _lines(RECOVERY_POINT_FILE, _extra(b"nowhere 3 10")),
            ),
            ("an empty line within", _lines(RECOVERY_POINT_FILE, _extra(b"", b"x 0 1"))),
            ("line ends of Windows", replaced(RECOVERY_POINT_FILE, b"\n", b"\r\n")),
            ("an offset too large", _line_of(RECOVERY_POINT_FILE, ORDERS, "9223372036854775808")),
            ("below zero, after a crash", after_crash(_line_of(RECOVERY_POINT_FILE, ORDERS, "-5"))),
            ("no number, after a crash", after_crash(_line_of(RECOVERY_POINT_FILE, ORDERS, "9x"))),
            ("gone, after a crash", after_crash(gone(RECOVERY_POINT_FILE))),
        )
    ),
)
_HIGH_WATERMARK = (*_of_all(HIGH_WATERMARK_FILE),)
_LOG_START = (
    *_of_all(LOG_START_OFFSET_FILE),
    (
        f"{LOG_START_OFFSET_FILE}: beyond the log's end",
        _line_of(LOG_START_OFFSET_FILE, ORDERS, "5000"),
    ),
    # DeleteRecords would have cut the leader epochs as well.
    (
        f"{LOG_START_OFFSET_FILE}: within the log",
        _line_of(LOG_START_OFFSET_FILE, ORDERS, "500"),
    ),
    (
        f"{LOG_START_OFFSET_FILE}: within the log, after a crash",
        after_crash(_line_of(LOG_START_OFFSET_FILE, ORDERS, "500")),
    ),
)
_CLEANER = (
    *_of_all(CLEANER_OFFSET_FILE),
    (
        f"{CLEANER_OFFSET_FILE}: beyond the log's end",
        _line_of(CLEANER_OFFSET_FILE, COMPACTED, "5000"),
    ),
)
_PARTITION_METADATA = (
    ("partition.metadata: gone", gone(TOPIC_ID)),
    ("partition.metadata: empty", empty(TOPIC_ID)),
    ("partition.metadata: zeros", zeros(TOPIC_ID)),
    ("partition.metadata: cut within the id", cut(TOPIC_ID, -5)),
    ("partition.metadata: cut behind the version", cut(TOPIC_ID, 11)),
    ("partition.metadata: of another topic", holds(TOPIC_ID, _topic_id(OTHER_ID))),
    ("partition.metadata: version 1", replaced(TOPIC_ID, b"version: 0", b"version: 1")),
    ("partition.metadata: version -1", replaced(TOPIC_ID, b"version: 0", b"version: -1")),
    ("partition.metadata: the zero id", holds(TOPIC_ID, _topic_id("A" * 22))),
    ("partition.metadata: an id that is none", holds(TOPIC_ID, _topic_id("orders"))),
    ("partition.metadata: a line more", holds(TOPIC_ID, _topic_id(OTHER_ID) + b"\nmore: 1\n")),
    ("partition.metadata: a line end behind it", changed(TOPIC_ID, lambda data: data + b"\n")),
    ("partition.metadata: of the metadata log gone", gone(f"{METADATA}/partition.metadata")),
    ("partition.metadata: of the metadata log empty", empty(f"{METADATA}/partition.metadata")),
)
_EPOCHS = (
    ("leader-epoch-checkpoint: gone", gone(EPOCHS)),
    ("leader-epoch-checkpoint: gone, after a crash", after_crash(gone(EPOCHS))),
    ("leader-epoch-checkpoint: empty", empty(EPOCHS)),
    ("leader-epoch-checkpoint: zeros", zeros(EPOCHS)),
    ("leader-epoch-checkpoint: cut within its entry", cut(EPOCHS, -3)),
    ("leader-epoch-checkpoint: only its version", holds(EPOCHS, b"0\n")),
    ("leader-epoch-checkpoint: version 1", replaced(EPOCHS, b"0\n1\n", b"1\n1\n")),
    ("leader-epoch-checkpoint: an epoch below zero", holds(EPOCHS, b"0\n1\n-1 0\n")),
    ("leader-epoch-checkpoint: three fields", holds(EPOCHS, b"0\n1\n0 0 0\n")),
    ("leader-epoch-checkpoint: falling", holds(EPOCHS, b"0\n2\n1 300\n0 0\n")),
    ("leader-epoch-checkpoint: an epoch twice", holds(EPOCHS, b"0\n2\n0 0\n0 300\n")),
    ("leader-epoch-checkpoint: another epoch than the batches", holds(EPOCHS, b"0\n1\n7 0\n")),
    ("leader-epoch-checkpoint: begins beyond the log's end", holds(EPOCHS, b"0\n1\n0 5000\n")),
    ("leader-epoch-checkpoint: begins within the log", holds(EPOCHS, b"0\n1\n0 300\n")),
    (
        "leader-epoch-checkpoint: of the metadata log gone",
        gone(f"{METADATA}/leader-epoch-checkpoint"),
    ),
    (
        "leader-epoch-checkpoint: of the metadata log empty",
        empty(f"{METADATA}/leader-epoch-checkpoint"),
    ),
    (
        "leader-epoch-checkpoint: of the metadata log cut",
        cut(f"{METADATA}/leader-epoch-checkpoint", -3),
    ),
)

STATES = (
    *(
        State("checkpoints", name, do)
        for name, do in (*_RECOVERY, *_HIGH_WATERMARK, *_LOG_START, *_CLEANER)
    ),
    *(State("partition files", name, do) for name, do in (*_PARTITION_METADATA, *_EPOCHS)),
)
# A broker lowers such a line when it cuts the log.
CONTRADICTIONS = tuple(
    State(AREA, f"{file}: beyond the log's end{suffix}", how(_line_of(file, ORDERS, "5000")))
    for file in (RECOVERY_POINT_FILE, HIGH_WATERMARK_FILE)
    for suffix, how in (("", together), (", after a crash", after_crash))
)
